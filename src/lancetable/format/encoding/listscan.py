"""Whole ranges of rows of lists in one walk over their levels, where there is one layer of lists.

The general way takes layer after layer off the levels (``repdef.py``). With a single list between
the leaf and the root, one walk gives everything: the offsets, a level for every value and one for
every row that is no filled list.
"""

import ctypes
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Integers, Levels
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import ScanRecord
from lancetable.format.encoding.repdef import Layer, Layers, Mask, Node


class ListScan(NamedTuple):
    """Rows of lists: which values are theirs, and what is null or empty.

    ``before`` values of the decoded chunks come first, ``items`` belong to the rows. Levels are
    None when all of them are 0; those of values stand for all that were decoded.
    """

    before: int
    items: int
    offsets: npt.NDArray[np.int32]
    row_levels: Levels | None
    item_levels: Levels | None


class ListWalk(NamedTuple):
    """The output of a walk over whole chunks, from one row before the first that starts there."""

    first: int
    edges: npt.NDArray[np.int32]
    row_levels: Levels
    item_levels: Levels
    record: ScanRecord

    def rows(self, rows: range) -> ListScan:
        """Return some of the rows."""
        offsets = self.edges[rows.start - self.first : rows.stop - self.first + 1]
        before = int(offsets[0])
        levels = self.row_levels[rows.start - self.first : rows.stop - self.first]
        return ListScan(
            before,
            int(offsets[-1]) - before,
            offsets - np.int32(before) if before else offsets,
            levels if self.record.any_row else None,
            self.item_levels[:-1] if self.record.any_item else None,
        )


class ListChunks(NamedTuple):
    """Chunks of a page: entries and values of each, and the rows that start before each."""

    levels: Integers
    counts: Integers
    firsts: Integers


def can_scan(layers: Layers) -> bool:
    """Return whether a page of such layers can be read this way."""
    return DLL is not None and layers.max_rep == 1


def scan_lists(
    rows: range, rep: Levels, def_: Levels | None, chunks: ListChunks, layers: Layers
) -> ListScan | None:
    """Walk over the levels of chunks; None when they contradict what the page says."""
    if DLL is None:
        return None
    record = ScanRecord(layers.max_def, layers.max_visible)
    first = int(chunks.firsts[0]) - 1
    count = int(chunks.firsts[-1]) - first
    edges = np.zeros(count + 1, np.int32)
    row_levels = np.empty(count, np.uint16)
    item_levels = np.empty(int(chunks.counts.sum()) + 1, np.uint16)
    rep = np.ascontiguousarray(rep)
    def_ = None if def_ is None else np.ascontiguousarray(def_)
    kept = [np.ascontiguousarray(each) for each in chunks]
    outcome = DLL.lt_list_scan(
        address(rep),
        None if def_ is None else address(def_),
        *map(address, kept),
        len(chunks.counts),
        ctypes.byref(record),
        address(edges) + edges.itemsize,
        address(row_levels),
        address(item_levels),
    )
    if outcome < 0:
        return None
    return ListWalk(first, edges, row_levels, item_levels, record).rows(rows)


def list_nodes(scan: ListScan, layers: Layers) -> tuple[Node, ...]:
    """Return the nodes above the leaf, inner-most first, as ``unravel`` does."""
    return tuple(_nodes(scan, layers))[1:]


def _nodes(scan: ListScan, layers: Layers) -> Iterator[Node]:
    levels = scan.item_levels
    if levels is not None:
        levels = levels[scan.before : scan.before + scan.items]
    length, taken = scan.items, 0
    for layer in layers.items:
        if layer.is_list:
            levels, length = scan.row_levels, len(scan.offsets) - 1
            yield Node(length, _list_validity(levels, layer, taken), scan.offsets)
        elif layer.levels:
            yield Node(length, None if levels is None else levels <= taken, None)
        else:
            yield Node(length, None, None)
        taken += layer.levels


def _list_validity(levels: Levels | None, layer: Layer, taken: int) -> Mask | None:
    if levels is None:
        return None
    null = taken + 1 if layer in {Layer.NULLABLE_LIST, Layer.NULL_AND_EMPTY_LIST} else -1
    is_null: Mask = (levels == null) | (levels > taken + layer.levels)
    return ~is_null if is_null.any() else None
