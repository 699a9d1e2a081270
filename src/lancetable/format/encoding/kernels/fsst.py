"""Decode FSST codes to text.

A symbol table maps codes to one to eight bytes. Code 255 escapes: the byte after it is meant
literally. A table is 2312 bytes long:

=============  =====================================================================
0              ``u64`` header, see below
8              ``n`` symbols of 8 bytes, first byte first, padded with zeros
8 + 8 n        ``n`` lengths (``u8``, 1 to 8), then zeros
=============  =====================================================================

Header bits 63..32 spell ``FSST``, bit 24 says whether the data is compressed at all, bits 7..0
are ``n``. The bits between only matter to encoders.

Decoding is a gather: the table becomes an Arrow array of byte strings, the codes become indices
into it, and the bytes of what ``take`` returns are the text. Long inputs are gathered two codes
at a time, from a table of all pairs; that pairs straddle values does not matter, because only
the positions of the value boundaries are looked up afterwards.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import LIBRARY, Library
from lancetable.format.encoding.kernels.ragged import empty_bytes

TABLE_SIZE = 2312
ESCAPE = 255
_MAGIC = 0x46535354
_COMPRESSED_BIT = 1 << 24
_LONGEST_SYMBOL = 8

# Below this many codes the table of pairs costs more than it saves.
_PAIRS_PAY_FROM = 1 << 18
_LITERAL_FIRST = 1 << 16
_LARGEST_INT32 = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class SymbolTable:
    """The symbols of one page; ``is_compressed`` is false when values are stored as they are."""

    is_compressed: bool
    lengths: Bytes
    """Bytes per code, for all 256 codes: zero for the escape and for codes without a symbol."""
    words: npt.NDArray[np.uint64]
    """The 256 symbols as words of eight bytes, the first byte lowest."""

    @cached_property
    def symbols(self) -> tuple[bytes, ...]:
        """The text of each code."""
        text = self.words.tobytes()
        sizes = self.lengths[: int(np.count_nonzero(self.lengths))].tolist()
        return tuple(text[8 * code : 8 * code + size] for code, size in enumerate(sizes))

    @cached_property
    def singles(self) -> pa.Array:
        """Arrow array of 512 byte strings: what each code stands for, then every literal byte."""
        starts = np.zeros(513, np.int32)
        np.cumsum(np.append(self.lengths, np.ones(256, np.uint8)), out=starts[1:])
        text = b"".join(self.symbols) + bytes(range(256))
        return pa.Array.from_buffers(
            pa.binary(), 512, [None, pa.py_buffer(starts), pa.py_buffer(text)]
        )


@lru_cache(maxsize=1024)
def parse_symbol_table(data: bytes) -> SymbolTable:
    """Return the symbol table that the bytes describe.

    Raises:
        CorruptError: the bytes are no symbol table.
    """
    if len(data) != TABLE_SIZE:
        raise CorruptError(f"an FSST symbol table has {len(data)} bytes, {TABLE_SIZE} expected")
    header = int.from_bytes(data[:8], "little")
    if header >> 32 != _MAGIC:
        raise CorruptError("an FSST symbol table does not start with its mark")
    is_compressed = bool(header & _COMPRESSED_BIT)
    count = header & 0xFF if is_compressed else 0
    sizes = data[8 + 8 * count : 8 + 9 * count]
    if count and not (min(sizes) >= 1 and max(sizes) <= _LONGEST_SYMBOL):
        raise CorruptError("an FSST symbol is not 1 to 8 bytes long")
    lengths = np.zeros(256, np.uint8)
    lengths[:count] = np.frombuffer(sizes, np.uint8)
    words = np.zeros(256, np.uint64)
    words[:count] = np.frombuffer(data[8 : 8 + 8 * count], "<u8")
    return SymbolTable(is_compressed, lengths, words)


def decode_value(table: SymbolTable, codes: bytes) -> bytes:
    """Return the text of a single value.

    Raises:
        CorruptError: a code has no symbol, or the value ends with an escape.
    """
    if not table.is_compressed:
        return bytes(codes)
    symbols = table.symbols
    parts: list[bytes] = []
    remaining = iter(codes)
    for code in remaining:
        if code < len(symbols):
            parts.append(symbols[code])
        elif code == ESCAPE:
            literal = next(remaining, None)
            if literal is None:
                raise _escape_at_end()
            parts.append(bytes((literal,)))
        else:
            raise _no_symbol(table)
    return b"".join(parts)


def decode(table: SymbolTable, offsets: Integers, codes: Bytes) -> tuple[Integers, Bytes]:
    """Return the texts of many values as offsets and data.

    Args:
        table: the symbol table of the page.
        offsets: where each value starts in ``codes``, and where the last one ends.
        codes: the codes of all values, one value after the other.

    Raises:
        CorruptError: an offset lies outside the codes or before the one it follows, a code has
            no symbol, or a value ends with an escape.
    """
    _check_offsets(offsets, len(codes))
    first = int(offsets[0])
    used = np.ascontiguousarray(codes[first : int(offsets[-1])])
    starts = offsets - first if first else offsets
    if not table.is_compressed:
        return starts, used
    if LIBRARY is not None:
        return _decode_compiled(LIBRARY, table, starts, used)
    literals = _find_literals(table, starts, used)
    if len(used) < _PAIRS_PAY_FROM:
        return _take_singles(table, starts, used, literals)
    return _take_pairs(table, starts, used, literals)


def _decode_compiled(
    library: Library, table: SymbolTable, starts: Integers, codes: Bytes
) -> tuple[Integers, Bytes]:
    # A code stands for at most eight bytes, and every copy writes eight.
    text = empty_bytes(len(codes) * _LONGEST_SYMBOL + _LONGEST_SYMBOL)
    offsets = empty_bytes(len(starts) * 8).view(np.int64)
    starts = np.ascontiguousarray(starts, np.int64)
    total = library.fsst_decode((table.words, table.lengths), codes, starts, (text, offsets))
    if total < 0:
        raise _no_symbol(table) if total == -1 else _escape_at_end()
    return offsets, text[:total]


def _escape_at_end() -> CorruptError:
    return CorruptError("an FSST value ends with an escape")


def _no_symbol(table: SymbolTable) -> CorruptError:
    return CorruptError(f"an FSST code has no symbol, the table has {len(table.symbols)}")


def _check_offsets(offsets: Integers, size: int) -> None:
    if not len(offsets) or int(offsets[0]) < 0 or int(offsets[-1]) > size:
        raise CorruptError(f"the values of an FSST page do not lie inside its {size} bytes")
    if (offsets[1:] < offsets[:-1]).any():
        raise CorruptError("the values of an FSST page are not in ascending order")


def _find_literals(table: SymbolTable, starts: Integers, codes: Bytes) -> Integers:
    """Return the positions of escaped bytes, after checking that every code has a meaning."""
    # One comparison finds escapes, literals and codes without a symbol alike; in sound data
    # nearly nothing is left to look at.
    suspects = np.flatnonzero(codes >= len(table.symbols))
    if not len(suspects):
        return suspects
    marks = suspects[codes[suspects] == ESCAPE]
    # Within a run of 255s every second one is the literal of the one before it.
    begins = np.empty(len(marks), np.bool_)
    begins[:1] = True
    np.not_equal(marks[1:], marks[:-1] + 1, out=begins[1:])
    run_start = np.maximum.accumulate(np.where(begins, marks, 0))
    escapes = marks[(marks - run_start) & 1 == 0]
    ends_here = np.zeros(len(codes) + 1, np.bool_)
    ends_here[starts] = True
    literals: Integers = escapes + 1
    if ends_here[literals].any():
        raise _escape_at_end()
    explained = np.zeros(len(codes), np.bool_)
    explained[escapes] = True
    explained[literals] = True
    if not explained[suspects].all():
        raise _no_symbol(table)
    return literals


def _take(strings: pa.Array, indices: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Bytes]:
    """Gather byte strings; return where each one starts and the bytes of all of them."""
    width: npt.DTypeLike = np.int32
    if len(indices) * 2 * _LONGEST_SYMBOL > _LARGEST_INT32:
        strings, width = strings.cast(pa.large_binary()), np.int64
    kind = pa.from_numpy_dtype(indices.dtype)
    taken = strings.take(pa.Array.from_buffers(kind, len(indices), [None, pa.py_buffer(indices)]))
    _, offsets, data = taken.buffers()
    positions = np.frombuffer(offsets, width)[: len(indices) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return positions, text


def _take_singles(
    table: SymbolTable, starts: Integers, codes: Bytes, literals: Integers
) -> tuple[Integers, Bytes]:
    indices: npt.NDArray[Any] = codes
    if len(literals):
        indices = codes.astype(np.uint16)
        indices[literals] += 256
    positions, text = _take(table.singles, indices)
    ends = positions[starts].astype(np.int64)
    return ends, text[: int(ends[-1])]


def _take_pairs(
    table: SymbolTable, starts: Integers, codes: Bytes, literals: Integers
) -> tuple[Integers, Bytes]:
    if len(codes) & 1:
        codes = np.append(codes, np.uint8(0))
    indices: npt.NDArray[Any] = codes.view(np.uint16)
    leading = literals[literals & 1 == 0] >> 1
    if len(literals):
        indices = indices.astype(np.uint32)
        indices[leading] += _LITERAL_FIRST
    positions, text = _take(_pairs(table, with_literals=bool(len(literals))), indices)
    ends = positions[starts >> 1].astype(np.int64)
    halves = np.flatnonzero(starts & 1)
    pair = starts[halves] >> 1
    first = table.lengths[codes[starts[halves] - 1]]
    first[indices[pair] >= _LITERAL_FIRST] = 1
    ends[halves] += first
    return ends, text[: int(ends[-1])]


@lru_cache(maxsize=4)
def _pairs(table: SymbolTable, *, with_literals: bool) -> pa.Array:
    """Return what every pair of codes stands for, the first code in the low byte of the index.

    With literals there is a second half, for pairs whose first byte is a literal. In the first
    half a pair that begins with an escape stands for the literal after it.
    """
    both = np.arange(_LITERAL_FIRST, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    codes = both.astype(np.uint16)
    if with_literals:
        codes[both[:, 0] == ESCAPE, 1] += 256
        literal_first = both.astype(np.uint16)
        literal_first[:, 0] += 256
        codes = np.concatenate([codes, literal_first])
    positions, text = _take(table.singles, codes.reshape(-1))
    starts = np.ascontiguousarray(positions[::2])
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.binary(), len(codes), buffers)
