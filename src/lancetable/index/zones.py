"""Zones: neighbouring rows of a fragment.

Files list them as ``fragment_id``, ``zone_start`` and ``zone_length`` (u64). The length spans
deleted rows, too.
"""

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.index.base import Numbers
from lancetable.index.files import SegmentFiles
from lancetable.index.row_map import decode_row_map

PLACES = ("fragment_id", "zone_start", "zone_length")


class Zones:
    """The zones that a file lists; addresses in zones are not translated."""

    def __init__(self, files: SegmentFiles, name: str) -> None:
        places = files.read(name, PLACES)
        fragments, starts, lengths = (np.asarray(one).astype(np.uint64) for one in places)
        self._fragments = frozenset(np.unique(fragments).tolist())
        self._starts = (fragments << np.uint64(OFFSET_BITS)) + starts
        self._stops = self._starts + lengths

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that have zones."""
        return fragments & self._fragments

    def counted(self, rows: Numbers) -> npt.NDArray[np.int64]:
        """Return how many of some rows each zone has; -1 when one of them is in no zone."""
        order = np.argsort(self._starts)
        places = np.searchsorted(self._starts[order], rows, side="right") - 1
        zones = order[np.maximum(places, 0)]
        if len(rows) and ((places < 0) | (rows >= self._stops[zones])).any():
            return np.full(len(order), -1)
        return np.bincount(zones, minlength=len(order))

    def rows(self, zones: Mask) -> RowSet:
        """Return the rows of some zones, which may match."""
        places = zip(self._starts[zones].tolist(), self._stops[zones].tolist(), strict=True)
        return RowSet.from_ranges(places, is_exact=False)


def stored_nulls(files: SegmentFiles, name: str) -> Numbers | None:
    """Return the rows with nulls of a segment; None when it does not record them."""
    number = files.metadata(name).get("null_bitmap", "")
    return decode_row_map(files.global_buffer(name, int(number))) if number.isdecimal() else None
