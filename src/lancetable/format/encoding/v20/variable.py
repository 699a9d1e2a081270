"""Decode the variable-width encodings of a 2.0 page."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers, Page, Reading, Rows
from lancetable.format.encoding.kernels import fsst
from lancetable.format.encoding.v20.ends import Ends, Extents, read_extents
from lancetable.format.encoding.v20.fixed import read_fixed, read_integers, without_nulls
from lancetable.format.encoding.v20.model import Binary, Flat, Fsst
from lancetable.format.encoding.v20.select import aligned, numbers_array

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
        raise UnsupportedError(f"FSST codes cannot be stored as {binary.describe()}")
    codes = yield from _read_binary(binary, page, rows)
    offsets, data = fsst.decode(table, codes.offsets, codes.data)
    return Strings(offsets, data, codes.valid)


def _read_binary(binary: Binary, page: Page, rows: Rows) -> Reading[Strings]:
    content = without_nulls(binary.content)
    if not isinstance(content, Flat) or content.bits != 8:
        raise UnsupportedError(f"the bytes of strings cannot be stored as {content.describe()}")
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
