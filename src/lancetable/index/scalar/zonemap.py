"""ZONEMAP: the least and the largest value of each zone of a fragment.

``zonemap.lance`` has one row per zone: its place, ``min``, ``max``, ``null_count`` and
``nan_count`` (u32). A NaN hides the true largest value of its zone, so zones with NaN are kept for
every comparison.
"""

import numpy as np

from lancetable.expression import Expression
from lancetable.format.rows import RowSet
from lancetable.index.bounds import Bounds
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar.zones import Zones

FILE = "zonemap.lance"


class ZoneMap:
    """An opened segment, whole in memory."""

    def __init__(self, files: SegmentFiles) -> None:
        least, largest, nulls, nans = files.read(FILE, ("min", "max", "null_count", "nan_count"))
        self._zones = Zones(files, FILE)
        has_nan = np.asarray(nans) > 0
        self._bounds = Bounds(least, largest, np.asarray(nulls) > 0, has_nan)
        self.covered = self._zones.covered

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all zones that may hold a match."""
        zones = self._bounds.may_match(part)
        return None if zones is None else self._zones.rows(zones)
