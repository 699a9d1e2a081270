"""BTREE: all values of a column in ascending order, cut into pages.

====================  ===========================================================================
file                  columns
====================  ===========================================================================
``page_data.lance``   ``values`` in ascending order, nulls first; ``ids``: the row of each (u64)
``page_lookup.lance`` one row per page: ``min``, ``max``, ``null_count`` (u32), ``page_idx`` (u32)
====================  ===========================================================================

A page holds ``batch_size`` rows, which the schema metadata of ``page_lookup.lance`` records; 4096
without it. ``min`` is null for a page that begins with nulls, and then tells nothing.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.expression import Expression
from lancetable.format.rows import RowSet
from lancetable.index.base import matching
from lancetable.index.bounds import Bounds
from lancetable.index.files import SegmentFiles

DATA, LOOKUP = "page_data.lance", "page_lookup.lance"
USUAL_PAGE = 4096
MOST_PAGES, SCAN_FROM = 64, 0.3
"""A part that needs more pages than these, and a larger share of all, is not answered."""


class BTree:
    """An opened segment: the table of pages is in memory, pages are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        size = files.metadata(LOOKUP).get("batch_size", str(USUAL_PAGE))
        least, largest, nulls, numbers = files.read(
            LOOKUP, ("min", "max", "null_count", "page_idx")
        )
        self._page_rows = int(size) if size.isdecimal() else 0
        self._rows = files.rows(DATA)
        pages = np.asarray(numbers)
        is_whole = self._page_rows > 0 and len(pages) == -(-self._rows // self._page_rows)
        if not is_whole or not np.array_equal(pages, np.arange(len(pages))):
            raise CorruptError(
                f"the page table lists {len(pages)} pages of {size} rows for {self._rows} rows"
            )
        self._bounds = Bounds(least, largest, np.asarray(nulls) > 0)

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows for which a part of a predicate is true."""
        may_match = self._bounds.may_match(part)
        if may_match is None:
            return None
        pages = np.flatnonzero(may_match)
        if len(pages) > max(MOST_PAGES, SCAN_FROM * len(may_match)):
            return None
        found = [self._matches(part, *edges) for edges in _runs(pages)]
        return RowSet.from_addresses(np.concatenate([*found, np.empty(0, np.uint64)]))

    def _matches(self, part: Expression, first: int, last: int) -> npt.NDArray[np.uint64]:
        """Return the rows of some neighbouring pages that match."""
        rows = range(first * self._page_rows, min((last + 1) * self._page_rows, self._rows))
        values, ids = self._files.read(DATA, ("values", "ids"), rows)
        if ids.null_count or ids.type != pa.uint64():
            raise CorruptError("the row ids of a btree page are not valid")
        chosen: npt.NDArray[np.uint64] = ids.to_numpy()[matching(part, values)]
        return chosen


def _runs(pages: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first and the last page of each run of neighbouring pages."""
    if not len(pages):
        return []
    edges = np.flatnonzero(np.diff(pages) > 1)
    firsts = pages[np.concatenate([[0], edges + 1])]
    lasts = pages[np.concatenate([edges, [len(pages) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
