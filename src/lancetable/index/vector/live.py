"""Marks of the rows that a search may find, by the upper half of their numbers."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.index.vector.top import Rows


class Live:
    """Rows by the upper half of their number: all below a count, or those that are marked.

    ``spans`` has for each upper half, ascending, where its marks start, or -1 when all rows are
    meant, and how many rows there are.
    """

    def __init__(self, spans: npt.NDArray[np.int64], marks: npt.NDArray[np.uint8]) -> None:
        self.spans = np.ascontiguousarray(spans.reshape(-1, 3))
        self.marks = marks

    @classmethod
    def of(cls, counts: Mapping[int, int], marked: Mapping[int, Mask]) -> "Live":
        """Return the rows of some upper halves: all of ``counts``, and the marked ones."""
        spans, parts, start = [], [np.empty(0, np.uint8)], 0
        for upper in sorted({*counts, *marked}):
            mask = marked.get(upper)
            if mask is None:
                spans.append((upper, -1, counts[upper]))
                continue
            spans.append((upper, start, len(mask)))
            parts.append(mask.view(np.uint8))
            start += len(mask)
        return cls(np.array(spans, np.int64), np.concatenate(parts))

    @classmethod
    def only(cls, rows: Rows) -> "Live":
        """Return some rows."""
        uppers = rows >> np.uint64(OFFSET_BITS)
        marked = {}
        for upper in np.unique(uppers).tolist():
            lower = (rows[uppers == upper] & np.uint64(MAX_OFFSET)).astype(np.int64)
            marked[upper] = np.zeros(int(lower.max()) + 1, np.bool_)
            marked[upper][lower] = True
        return cls.of({}, marked)

    @classmethod
    def spanning(cls, firsts: Rows, sizes: Rows) -> "Live":
        """Return the rows from each first one on, so many each; the first ones ascend."""
        marked, counts = {}, {}
        uppers = firsts >> np.uint64(OFFSET_BITS)
        for upper in np.unique(uppers).tolist():
            starts = (firsts[uppers == upper] & np.uint64(MAX_OFFSET)).astype(np.int64)
            stops = starts + sizes[uppers == upper].astype(np.int64)
            if len(starts) == 1 and not starts[0]:
                counts[upper] = int(stops[0])
                continue
            changes = np.zeros(int(stops.max()) + 1, np.int8)
            np.add.at(changes, starts, 1)
            np.add.at(changes, stops, -1)
            marked[upper] = np.cumsum(changes[:-1], dtype=np.int8) > 0
        return cls.of(counts, marked)

    def mask(self, rows: Rows) -> Mask:
        """Return which rows may be found."""
        uppers = (rows >> np.uint64(OFFSET_BITS)).astype(np.int64)
        lowers = (rows & np.uint64(MAX_OFFSET)).astype(np.int64)
        if not len(self.spans):
            return np.zeros(len(rows), np.bool_)
        places = np.searchsorted(self.spans[:, 0], uppers).clip(max=len(self.spans) - 1)
        known, starts, counts = self.spans[places].T
        found: Mask = (known == uppers) & (lowers < counts)
        marked = found & (starts >= 0)
        found[marked] = self.marks[starts[marked] + lowers[marked]] != 0
        return found
