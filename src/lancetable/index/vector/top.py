"""The nearest rows of some queries, kept while more are offered."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.index.vector.distance import Floats

Rows = npt.NDArray[np.uint64]
Range = tuple[float | None, float | None]


class Nearest(NamedTuple):
    """Rows and their distances, the nearest first; of equal ones the smaller row first."""

    rows: Rows
    distances: Floats


class Top:
    """The ``most`` nearest rows of each query with a distance in a range, its end excluded."""

    def __init__(self, queries: int, most: int, range_: Range = (None, None)) -> None:
        low, high = range_
        self.most = most
        self.range = np.array(
            [-np.inf if low is None else low, np.nan if high is None else high], np.float32
        )
        self.distances = np.empty((queries, most), np.float32)
        self.rows = np.empty((queries, most), np.uint64)
        self.counts = np.zeros(queries, np.int64)

    def __len__(self) -> int:
        return len(self.counts)

    def offer(
        self, distances: Floats, rows: Rows, mask: Mask | None = None, first: int = 0
    ) -> None:
        """Take rows with their distances to each query from the ``first`` on.

        Rows whose ``mask`` is false are left out.
        """
        if DLL is None:
            for place, of_query in enumerate(distances):
                self.offer_to(first + place, of_query, rows, mask)
            return
        whole = np.ascontiguousarray(distances, np.float32)
        chosen = None if mask is None else np.ascontiguousarray(mask, np.uint8)
        named = np.ascontiguousarray(rows, np.uint64)
        DLL.lt_offer(
            address(whole),
            len(whole),
            len(named),
            address(named),
            None if chosen is None else address(chosen),
            address(self.range),
            address(self.distances[first:]),
            address(self.rows[first:]),
            address(self.counts[first:]),
            self.most,
        )

    def offer_to(self, query: int, distances: Floats, rows: Rows, mask: Mask | None) -> None:
        """Take rows with their distances to one query."""
        low, high = self.range
        near = distances >= low
        if not np.isnan(high):
            near &= distances < high
        if mask is not None:
            near &= mask
        known = int(self.counts[query])
        joined = np.concatenate([self.distances[query, :known], distances[near]])
        named = np.concatenate([self.rows[query, :known], rows[near]])
        order = np.lexsort((named, joined))[: self.most]
        self.counts[query] = len(order)
        self.distances[query, : len(order)] = joined[order]
        self.rows[query, : len(order)] = named[order]

    def found(self, query: int) -> Nearest:
        """Return the nearest rows of a query in order."""
        count = int(self.counts[query])
        distances, rows = self.distances[query, :count], self.rows[query, :count]
        order = np.lexsort((rows, distances))
        return Nearest(rows[order], distances[order])
