"""Locate the bytes of the wanted rows of a buffer and gather the rows.

Rows of a range are contiguous and need no copy. For scattered rows the bytes from the first to
the last one are asked for, which costs nothing on a mapped file, and gathered in one step.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, ShortageError
from lancetable.format.encoding.base import Bytes, PageBuffer, Reading, Rows, Span
from lancetable.format.limits import read_limits

_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def cover(rows: Rows) -> range:
    """Return the smallest range that holds all rows."""
    if isinstance(rows, range):
        return rows
    return range(int(rows[0]), int(rows[-1]) + 1) if len(rows) else range(0)


def relative(rows: Rows) -> Rows:
    """Return the rows counted from the first one."""
    if isinstance(rows, range):
        return range(len(rows))
    return rows - rows[0] if len(rows) else rows


def multiply(rows: Rows, factor: int) -> Rows:
    """Return the items of the rows when each row has ``factor`` of them."""
    if isinstance(rows, range):
        return range(rows.start * factor, rows.stop * factor)
    return (rows[:, None] * factor + np.arange(factor, dtype=np.int64)).reshape(-1)


def span_of(buffer: PageBuffer, rows: Rows, bits: int) -> Span:
    """Return the span that holds the rows of a buffer of values of ``bits`` bits."""
    covering = cover(rows)
    return buffer.part(covering.start * bits // 8, -(-covering.stop * bits // 8))


def pick_bytes(data: memoryview, rows: Rows, width: int) -> Bytes:
    """Return the rows from the bytes of their span, for values of ``width`` bytes."""
    found = np.frombuffer(data, np.uint8)
    if isinstance(rows, range):
        return found
    inside = relative(rows)
    word: Any = _WORDS.get(width)
    if word is not None:
        picked: Bytes = found.view(word)[inside].view(np.uint8)
        return picked
    return found.reshape(-1, width)[inside].reshape(-1)


def pick_bits(data: memoryview, rows: Rows) -> Bytes:
    """Return the rows from the bytes of their span, for values of one bit, as a bitmap."""
    found = np.frombuffer(data, np.uint8)
    shift = cover(rows).start % 8
    if not isinstance(rows, range):
        inside = rows - (rows[0] - shift) if len(rows) else rows
        wanted: Bytes = (found[inside >> 3] >> (inside & 7).astype(np.uint8)) & np.uint8(1)
        return np.packbits(wanted, bitorder="little")
    if shift == 0 or not len(rows):
        return found
    out: Bytes = found >> np.uint8(shift)
    out[:-1] |= found[1:] << np.uint8(8 - shift)
    return out


def set_bits(bitmap: Bytes, count: int) -> npt.NDArray[np.bool_]:
    """Return the first ``count`` bits of a bitmap as booleans."""
    return np.unpackbits(bitmap, count=count, bitorder="little").view(np.bool_)


def aligned(data: npt.NDArray[Any], width: int) -> pa.Buffer:
    """Return an Arrow buffer over an array, copied when a value would straddle its alignment."""
    buffer = pa.py_buffer(data)
    unit = min(width, 8)
    if unit in _WORDS and buffer.address % unit:
        return pa.py_buffer(data.copy())
    return buffer


def numbers_array(
    values: npt.NDArray[Any], kind: pa.DataType, valid: npt.NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return numbers as an Arrow array over their own memory.

    ``pa.array`` would do, but loads pandas first, which takes longer than most reads.
    """
    validity = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)])


def zeros(size: int, rows: int) -> pa.Buffer:
    """Return a buffer of zeros for some rows, which takes no memory until it is touched.

    Raises:
        CorruptError: there cannot be so many.
        ShortageError: there is not enough memory, or the page takes more than the limit.
    """
    read_limits().check_page(size, rows)
    try:
        return pa.py_buffer(np.zeros(size, np.uint8))
    except MemoryError:
        raise ShortageError(f"not enough memory for a page of {size} bytes") from None
    except ValueError:
        raise CorruptError(f"a page asks for {size} bytes that it does not have") from None


T = TypeVar("T")


def together(readings: Sequence[Reading[T]]) -> Reading[list[T]]:
    """Run readings side by side: each round asks for the spans of all that still need some."""
    if len(readings) == 1:
        return [(yield from readings[0])]
    results: dict[int, T] = {}
    wanted: dict[int, Sequence[Span]] = {}
    for number, reading in enumerate(readings):
        try:
            wanted[number] = next(reading)
        except StopIteration as done:
            results[number] = done.value
    while wanted:
        received = yield [span for spans in wanted.values() for span in spans]
        asked, wanted, first = wanted, {}, 0
        for number, spans in asked.items():
            part = received[first : first + len(spans)]
            first += len(spans)
            try:
                wanted[number] = readings[number].send(part)
            except StopIteration as done:
                results[number] = done.value
    return [results[number] for number in range(len(readings))]
