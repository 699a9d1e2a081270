"""ZONEMAP: the least and the largest value of each zone of a fragment.

``zonemap.lance`` has one row per zone: ``min``, ``max``, ``null_count`` and ``nan_count`` (u32),
``fragment_id``, ``zone_start`` and ``zone_length`` (u64). The length spans deleted rows, too. A NaN
hides the true largest value of its zone, so zones with NaN are kept for every comparison.
"""

import numpy as np

from lancetable.expression import Expression
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.index.bounds import Bounds
from lancetable.index.files import SegmentFiles

FILE = "zonemap.lance"


class ZoneMap:
    """An opened segment, whole in memory."""

    def __init__(self, files: SegmentFiles) -> None:
        least, largest, nulls, nans = files.read(FILE, ("min", "max", "null_count", "nan_count"))
        places = files.read(FILE, ("fragment_id", "zone_start", "zone_length"))
        self._fragments, self._starts, self._lengths = (np.asarray(one) for one in places)
        has_nan = np.asarray(nans) > 0
        self._bounds = Bounds(least, largest, np.asarray(nulls) > 0, has_nan)

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that have zones; addresses in zones are not translated."""
        return fragments & frozenset(np.unique(self._fragments).tolist())

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all zones that may hold a match."""
        zones = self._bounds.may_match(part)
        if zones is None:
            return None
        starts = (self._fragments[zones].astype(np.uint64) << np.uint64(OFFSET_BITS)) + (
            self._starts[zones].astype(np.uint64)
        )
        stops = starts + self._lengths[zones].astype(np.uint64)
        return RowSet.from_ranges(zip(starts.tolist(), stops.tolist(), strict=True), is_exact=False)
