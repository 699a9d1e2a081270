"""Neighbouring rows of mapped columns, decoded or compared in one compiled walk over their pages.

The pages are described by records (``page_records.py``), checked when the pages were opened.
Whatever has a shape of its own gives None: the open pages then read the same rows themselves, and
say what is wrong if something is.
"""

import ctypes
import struct
from array import array
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.format.encoding.assemble import LeafRun
from lancetable.format.encoding.kernels.addressing import Values
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.ragged import empty_bytes
from lancetable.format.encoding.kernels.records import PageRecord, ScanRecord
from lancetable.format.encoding.leaf import Kind, Shape
from lancetable.format.encoding.listscan import ListScan, ListWalk, list_nodes
from lancetable.format.encoding.repdef import Layers, Mask

_PLAIN = {Values.FLAT, Values.BITS, Values.PACKED}
_KINDS = {"i": (0, "<qqqq"), "u": (1, "<qqqQ"), "f": (2, "<qqqd")}
_OPERATORS = {"<": (0, 0), "<=": (1, 0), "==": (2, 0), ">=": (0, 1), ">": (1, 1), "!=": (2, 1)}
"""The comparison, and whether its opposite is meant."""


class Records(NamedTuple):
    """The records of a column's pages in one file."""

    pages: "ctypes.Array[PageRecord]"
    at: int
    """The address of the records."""


class Test(NamedTuple):
    """A comparison of every value with a constant.

    The values are of the type of the constant, or floats whose bits are compared as integers.
    """

    operator: str
    constant: np.integer[Any] | np.floating[Any]


class Tests(NamedTuple):
    """Comparisons of one column, all of which a row has to pass."""

    width: int
    length: int
    packed: bytes


def packed_tests(tests: list[Test]) -> Tests:
    """Return tests of values of one width as compiled code reads them."""
    packed = []
    for operator, constant in tests:
        code, layout = _KINDS[constant.dtype.kind]
        packed.append(struct.pack(layout, code, *_OPERATORS[operator], constant.item()))
    return Tests(tests[0].constant.itemsize, len(tests), b"".join(packed))


def is_compiled(kind: Kind) -> bool:
    """Return whether columns of a kind are read this way at all."""
    return DLL is not None and kind.shape in {Shape.FIXED, Shape.BOOL}


def is_plain(record: PageRecord) -> bool:
    """Return whether the page of a record holds values, or numbers of the items of a dictionary."""
    return record.kind in _PLAIN


def read_range(records: Records, rows: range, kind: Kind, *, has_levels: bool) -> pa.Array | None:
    """Return rows of a column; ``has_levels`` says that some page may know nulls."""
    count = len(rows)
    width = kind.width
    out = pa.allocate_buffer(count * width if width else (count + 7) // 8)
    validity = pa.allocate_buffer((count + 7) // 8) if has_levels else None
    nulls = DLL.lt_stretch_values(
        records.at,
        len(records.pages),
        rows.start,
        rows.stop,
        width,
        out.address,
        None if validity is None else validity.address,
    )
    if nulls < 0:
        return None
    return pa.Array.from_buffers(kind.type, count, [validity if nulls else None, out], nulls)


def read_lists(records: Records, rows: range, kind: Kind, layers: Layers) -> LeafRun | None:
    """Return rows of lists with one layer; ``kind`` is that of their values."""
    at, pages, width = records.at, len(records.pages), kind.width
    room = array("q", (0, 0, 0))
    if DLL.lt_stretch_list_room(at, pages, rows.start, rows.stop, room.buffer_info()[0]) < 0:
        return None
    values, starting, first = room
    out = pa.allocate_buffer(values * width if width else (values + 7) // 8)
    record = ScanRecord()
    record.max_def, record.max_visible = layers.max_def, layers.max_visible
    # The row before the first that starts goes on from a chunk further ahead.
    edges = empty_bytes(4 * (starting + 2)).view(np.int32)
    edges[0] = 0
    row_levels = empty_bytes(2 * (starting + 1)).view(np.uint16)
    item_levels = empty_bytes(2 * (values + 1)).view(np.uint16)
    outcome = DLL.lt_stretch_lists(
        *(at, pages, rows.start, rows.stop, width),
        ctypes.byref(record),
        address(edges) + edges.itemsize,
        address(row_levels),
        address(item_levels),
        out.address,
        values,
    )
    if outcome < 0:
        return None
    scan = ListWalk(first - 1, edges, row_levels, item_levels, record).rows(rows)
    return LeafRun(_values_of(scan, out, values, kind), list_nodes(scan, layers))


def _values_of(scan: ListScan, out: pa.Buffer, count: int, kind: Kind) -> pa.Array:
    validity, nulls = None, 0
    if scan.item_levels is not None:
        is_there = scan.item_levels == 0
        nulls = count - int(np.count_nonzero(is_there))
        validity = pa.py_buffer(np.packbits(is_there, bitorder="little"))
    values = pa.Array.from_buffers(kind.type, count, [validity, out], nulls)
    is_whole = scan.before == 0 and scan.items == count
    return values if is_whole else values.slice(scan.before, scan.items)


def match_range(records: Records, rows: range, tests: Tests) -> tuple[Mask, int] | None:
    """Return which rows of a column pass all tests, and how many do; nulls pass none."""
    mask = empty_bytes(len(rows)).view(np.bool_)
    found: int = DLL.lt_stretch_compare(
        records.at,
        len(records.pages),
        rows.start,
        rows.stop,
        tests.width,
        tests.packed,
        tests.length,
        address(mask),
    )
    return None if found < 0 else (mask, found)
