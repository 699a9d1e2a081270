"""Decode the variable-width encodings of a 2.0 page.

A page of values or lists stores only their ends. Adding the null adjustment, which is larger than
every end, marks a null; a value starts where the one before it ends, the first one at 0. With
adjustment 4::

    value     "a"   null   ""   "dd"
    stored     1      5     1     3
    end        1      1     1     3
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers, Page, Reading, Rows
from lancetable.format.encoding.kernels import fsst
from lancetable.format.encoding.v20.fixed import read_fixed, read_integers, without_nulls
from lancetable.format.encoding.v20.model import ArrayEncoding, Binary, Flat, Fsst
from lancetable.format.encoding.v20.select import aligned, numbers_array


class Extents(NamedTuple):
    """Value i is ``[starts[i], stops[i])``, in ascending order; ``valid`` is None without nulls.

    The stops of a range of rows are the starts of the next ones.
    """

    starts: Integers
    stops: Integers
    valid: npt.NDArray[np.bool_] | None

    @property
    def first(self) -> int:
        """Start of the first value."""
        return int(self.starts[0]) if len(self.starts) else 0

    @property
    def last(self) -> int:
        """End of the last value."""
        return int(self.stops[-1]) if len(self.stops) else 0

    def offsets(self) -> Integers:
        """Return the offsets of the values once they are joined."""
        out = np.zeros(len(self.starts) + 1, np.int64)
        if self.last - self.first == 0:
            return out
        np.cumsum(self.stops - self.starts, out=out[1:])
        return out

    def numbers(self) -> Rows:
        """Return everything inside the extents, as a range when there are no gaps."""
        sizes = self.stops - self.starts
        total = int(sizes.sum())
        if self.last - self.first == total:
            return range(self.first, self.last)
        before = np.cumsum(sizes) - sizes
        numbers: Integers = np.arange(total, dtype=np.int64)
        numbers += np.repeat(self.starts - before, sizes)
        return numbers


class Ends(NamedTuple):
    """The ends that a page stores; ``limit`` is the largest one it can have."""

    stored: ArrayEncoding
    null_adjustment: int
    limit: int


def read_extents(ends: Ends, page: Page, rows: Rows) -> Reading[Extents]:
    """Return where the wanted values start and end.

    Raises:
        CorruptError: the ends decrease or exceed the limit.
    """
    if isinstance(rows, range):
        wanted: Rows = range(max(rows.start - 1, 0), rows.stop)
    else:
        wanted = np.maximum(np.repeat(rows, 2) - np.tile([1, 0], len(rows)), 0)
    stored = yield from read_integers(ends.stored, page, wanted)
    positions, valid = _positions(stored, ends)
    extents = (
        _of_range(positions, valid, rows)
        if isinstance(rows, range)
        else _of_many(positions, valid, rows)
    )
    if (extents.stops < extents.starts).any() or (extents.starts[1:] < extents.stops[:-1]).any():
        raise CorruptError("the ends of values or lists are not in ascending order")
    return extents


def _positions(
    stored: npt.NDArray[np.uint64], ends: Ends
) -> tuple[Integers, npt.NDArray[np.bool_] | None]:
    if ends.null_adjustment > np.iinfo(np.int64).max:
        raise CorruptError(f"the null adjustment {ends.null_adjustment} is not a position")
    adjustment = np.uint64(ends.null_adjustment)
    valid: npt.NDArray[np.bool_] = stored < adjustment
    has_nulls = not valid.all()
    if has_nulls:
        stored = np.where(valid, stored, stored - adjustment)
    if len(stored) and int(stored.max()) > ends.limit:
        raise CorruptError(f"a value or list ends at {int(stored.max())}, the last at {ends.limit}")
    return stored.view(np.int64), valid if has_nulls else None


def _of_range(positions: Integers, valid: npt.NDArray[np.bool_] | None, rows: range) -> Extents:
    if rows.start:
        return Extents(positions[:-1], positions[1:], None if valid is None else valid[1:])
    starts = np.zeros(len(positions), np.int64)
    starts[1:] = positions[:-1]
    return Extents(starts, positions, valid)


def _of_many(positions: Integers, valid: npt.NDArray[np.bool_] | None, rows: Integers) -> Extents:
    starts = positions[0::2]
    if rows[0] == 0:
        starts = starts.copy()
        starts[0] = 0
    return Extents(starts, positions[1::2], None if valid is None else valid[1::2])


LARGEST_INT32 = (1 << 31) - 1
_LARGEST_POSITION = (1 << 63) - 1


class Strings(NamedTuple):
    """Value i is ``data[offsets[i] : offsets[i + 1]]``; ``valid`` is None without nulls."""

    offsets: Integers
    data: Bytes
    valid: npt.NDArray[np.bool_] | None


def read_strings(encoding: Binary | Fsst, page: Page, rows: Rows) -> Reading[Strings]:
    """Return the byte strings of the wanted rows."""
    if isinstance(encoding, Binary):
        return (yield from _read_binary(encoding, page, rows))
    table = fsst.parse_symbol_table(encoding.symbol_table)
    binary = without_nulls(encoding.binary)
    if not isinstance(binary, Binary):
        raise UnsupportedError(f"FSST codes cannot be stored as {binary}")
    codes = yield from _read_binary(binary, page, rows)
    offsets, data = fsst.decode(table, codes.offsets, codes.data)
    return Strings(offsets, data, codes.valid)


def _read_binary(binary: Binary, page: Page, rows: Rows) -> Reading[Strings]:
    content = without_nulls(binary.content)
    if not isinstance(content, Flat) or content.bits != 8:
        raise UnsupportedError(f"the bytes of strings cannot be stored as {content}")
    if content.scheme in {"", "none"}:
        limit = page.buffer(content.buffer).size
    else:
        limit = yield from _total(binary, page)
    extents = yield from read_extents(
        Ends(binary.indices, binary.null_adjustment, limit), page, rows
    )
    inside = range(extents.first, extents.last)
    data = yield from read_fixed(content, page._replace(rows=limit), inside, 8)
    if isinstance(rows, range):
        return Strings(extents.offsets(), data, extents.valid)
    return gather_strings(extents, data)


def _total(binary: Binary, page: Page) -> Reading[int]:
    """Return where the last value of the page ends: how long the bytes are uncompressed."""
    last = range(max(page.rows - 1, 0), page.rows)
    ends = Ends(binary.indices, binary.null_adjustment, _LARGEST_POSITION)
    stored = yield from read_integers(ends.stored, page, last)
    if not len(stored):
        return 0
    end = int(stored[0])
    return end - ends.null_adjustment if end >= ends.null_adjustment else end


def gather_strings(extents: Extents, data: Bytes) -> Strings:
    """Return the values of scattered extents; the data begins where the first one does."""
    # Wanted values and the gaps between them take turns; Arrow picks every second one.
    count = len(extents.starts)
    turns = np.empty(2 * count, np.int64)
    turns[0::2] = extents.starts
    turns[1::2] = extents.stops
    turns -= extents.first
    buffers = [None, pa.py_buffer(turns), pa.py_buffer(data)]
    both = pa.Array.from_buffers(pa.large_binary(), 2 * count - 1, buffers)
    wanted = both.take(numbers_array(np.arange(0, 2 * count, 2), pa.int64()))
    _, offsets, joined = wanted.buffers()
    text = np.empty(0, np.uint8) if joined is None else np.frombuffer(joined, np.uint8)
    return Strings(np.frombuffer(offsets, np.int64)[: count + 1], text, extents.valid)


def strings_array(strings: Strings, kind: pa.DataType) -> pa.Array:
    """Return byte strings as an Arrow array of a string or binary type."""
    total = int(strings.offsets[-1])
    offsets: npt.NDArray[np.int32] | Integers = strings.offsets
    if kind in {pa.string(), pa.binary()}:
        check_int32(total, "bytes")
        offsets = strings.offsets.astype(np.int32)
    elif kind not in {pa.large_string(), pa.large_binary()}:
        raise CorruptError(f"a page holds byte strings, the column has type {kind}")
    validity = None
    if strings.valid is not None:
        validity = pa.py_buffer(np.packbits(strings.valid, bitorder="little"))
    buffers = [validity, aligned(offsets, offsets.itemsize), pa.py_buffer(strings.data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def check_int32(total: int, what: str) -> None:
    """Refuse a result that needs larger offsets than its type has."""
    if total > LARGEST_INT32:
        raise UnsupportedError(
            f"{total} {what} do not fit into one Arrow array of this type; read fewer rows at once"
        )


def of_width(data: Bytes, width: int, count: int) -> Strings:
    """Return byte strings that all have the same length."""
    return Strings(np.arange(count + 1, dtype=np.int64) * width, data, None)
