"""Decode the fixed-width encodings of a 2.0 page.

Everything here answers with the bytes of the wanted values, as Arrow lays them out: whole bytes
one value after the other, or a bitmap for values of one bit.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Bytes, Page, Reading, Rows
from lancetable.format.encoding.kernels import bitpack
from lancetable.format.encoding.kernels.compression import decompress
from lancetable.format.encoding.v20.model import (
    ArrayEncoding,
    Bitpacked,
    BitpackedBlocks,
    Constant,
    Flat,
    NoNulls,
)
from lancetable.format.encoding.v20.select import (
    cover,
    pick_bits,
    pick_bytes,
    relative,
    set_bits,
    span_of,
    zeros,
)


def without_nulls(encoding: ArrayEncoding) -> ArrayEncoding:
    """Return the encoding below any layers that only say that nothing is null."""
    while isinstance(encoding, NoNulls):
        encoding = encoding.values
    return encoding


def read_fixed(encoding: ArrayEncoding, page: Page, rows: Rows, bits: int) -> Reading[Bytes]:
    """Return the values of ``bits`` bits each.

    Raises:
        CorruptError: the encoding holds values of another width.
        UnsupportedError: the encoding does not hold values of a fixed width.
    """
    encoding = without_nulls(encoding)
    if bits == 0 or not len(rows):
        return np.empty(0, np.uint8)
    match encoding:
        case Flat():
            return (yield from _flat(encoding, page, rows, bits))
        case Bitpacked():
            return (yield from _bitpacked(encoding, page, rows, bits))
        case BitpackedBlocks():
            return (yield from _blocks(encoding, page, rows, bits))
        case Constant():
            return _constant(encoding, len(rows), bits)
    raise UnsupportedError(f"values of a fixed width cannot be stored as {encoding}")


def read_integers(
    encoding: ArrayEncoding, page: Page, rows: Rows
) -> Reading[npt.NDArray[np.uint64]]:
    """Return unsigned integers of whatever width they are stored in."""
    bits = width_of(encoding)
    if bits not in {8, 16, 32, 64}:
        raise CorruptError(f"positions are stored as {encoding}")
    data = yield from read_fixed(encoding, page, rows, bits)
    return data.view(f"<u{bits // 8}").astype(np.uint64, copy=False)


def width_of(encoding: ArrayEncoding) -> int:
    """Return the bits per value of an encoding of fixed width, 0 for others."""
    encoding = without_nulls(encoding)
    match encoding:
        case Flat() | Bitpacked() | BitpackedBlocks():
            return encoding.bits
        case Constant():
            return len(encoding.value) * 8
    return 0


def joined(encoding: ArrayEncoding, count: int) -> ArrayEncoding:
    """Return the encoding in which ``count`` neighbouring values of a flat one are one value."""
    encoding = without_nulls(encoding)
    if isinstance(encoding, Flat):
        return replace(encoding, bits=encoding.bits * count)
    return encoding


def check_width(found: int, expected: int) -> None:
    """Refuse values that are wider or narrower than the column's type."""
    if found != expected:
        raise CorruptError(f"a page holds values of {found} bits, the column has {expected}")


def _flat(flat: Flat, page: Page, rows: Rows, bits: int) -> Reading[Bytes]:
    check_width(flat.bits, bits)
    if bits % 8 and bits != 1:
        raise UnsupportedError(f"values of {bits} bits are not made of whole bytes")
    buffer = page.buffer(flat.buffer)
    if flat.scheme not in {"", "none"}:
        return (yield from _compressed(flat, page, rows, bits))
    (data,) = yield [span_of(buffer, rows, bits)]
    return pick_bits(data, rows) if bits == 1 else pick_bytes(data, rows, bits // 8)


def _compressed(flat: Flat, page: Page, rows: Rows, bits: int) -> Reading[Bytes]:
    (data,) = yield [page.buffer(flat.buffer).whole()]
    content = memoryview(decompress(flat.scheme, data, -(-page.rows * bits // 8)))
    covering = cover(rows)
    start, stop = covering.start * bits // 8, -(-covering.stop * bits // 8)
    if stop > len(content):
        raise CorruptError(f"a compressed buffer holds {len(content)} bytes, {stop} are needed")
    part = content[start:stop]
    return pick_bits(part, rows) if bits == 1 else pick_bytes(part, rows, bits // 8)


def _check_packed(packed_bits: int, bits: int) -> None:
    if bits not in bitpack.WORDS or not 1 <= packed_bits <= bits:
        raise CorruptError(f"integers of {bits} bits cannot be packed to {packed_bits}")


def _bitpacked(encoding: Bitpacked, page: Page, rows: Rows, bits: int) -> Reading[Bytes]:
    check_width(encoding.bits, bits)
    packed = encoding.packed_bits
    _check_packed(packed, bits)
    (data,) = yield [span_of(page.buffer(encoding.buffer), rows, packed)]
    covering = cover(rows)
    first = covering.start * packed % 8
    every = set_bits(np.frombuffer(data, np.uint8), first + len(covering) * packed)
    planes = every[first:].reshape(len(covering), packed)
    if not isinstance(rows, range):
        planes = planes[relative(rows)]
    values = np.zeros(len(rows), np.uint64)
    for place in range(packed):
        values |= planes[:, place].astype(np.uint64) << np.uint64(place)
    if encoding.is_signed and packed < 64:
        negative = planes[:, packed - 1]
        values[negative] |= np.uint64((1 << 64) - (1 << packed))
    return _narrow(values, bits)


def _blocks(encoding: BitpackedBlocks, page: Page, rows: Rows, bits: int) -> Reading[Bytes]:
    check_width(encoding.bits, bits)
    packed = encoding.packed_bits
    _check_packed(packed, bits)
    size = bitpack.BLOCK * packed // 8
    covering = cover(rows)
    first, last = covering.start // bitpack.BLOCK, -(-covering.stop // bitpack.BLOCK)
    (data,) = yield [page.buffer(encoding.buffer).part(first * size, last * size)]
    words = np.frombuffer(bytes(data), bitpack.WORDS[bits]).reshape(last - first, -1)
    values = bitpack.unpack(words, packed).reshape(-1)
    start = first * bitpack.BLOCK
    if isinstance(rows, range):
        return values[rows.start - start : rows.stop - start].view(np.uint8)
    return values[rows - start].view(np.uint8)


def _narrow(values: npt.NDArray[Any], bits: int) -> Bytes:
    return values.astype(bitpack.WORDS[bits]).view(np.uint8)


def _constant(encoding: Constant, count: int, bits: int) -> Bytes:
    value = encoding.value
    if bits == 1:
        check_width(min(len(value), 1), bits)
        size = -(-count // 8)
        filled = 0xFF if any(value) else 0
    else:
        check_width(len(value) * 8, bits)
        size = count * len(value)
        filled = 0
    out = np.frombuffer(zeros(size, count), np.uint8)
    if not any(value):
        return out
    if bits == 1:
        return np.full(size, filled, np.uint8)
    return np.tile(np.frombuffer(value, np.uint8), count)
