"""Zones: neighbouring rows of a fragment, as ``fragment_id``, ``zone_start`` and ``zone_length``.

The three columns are u64. The length spans deleted rows, too.
"""

import numpy as np

from lancetable.format.arrays import Mask
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.index.files import SegmentFiles


class Zones:
    """The zones that a file lists; addresses in zones are not translated."""

    def __init__(self, files: SegmentFiles, name: str) -> None:
        places = files.read(name, ("fragment_id", "zone_start", "zone_length"))
        fragments, starts, lengths = (np.asarray(one).astype(np.uint64) for one in places)
        self._fragments = frozenset(np.unique(fragments).tolist())
        self._starts = (fragments << np.uint64(OFFSET_BITS)) + starts
        self._stops = self._starts + lengths

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that have zones."""
        return fragments & self._fragments

    def rows(self, zones: Mask) -> RowSet:
        """Return the rows of some zones, which may match."""
        places = zip(self._starts[zones].tolist(), self._stops[zones].tolist(), strict=True)
        return RowSet.from_ranges(places, is_exact=False)
