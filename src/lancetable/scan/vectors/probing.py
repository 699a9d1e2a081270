"""The partitions of a segment that a search reads, round by round."""

import math

import numpy as np
import numpy.typing as npt

from lancetable.index.vector.live import Live
from lancetable.index.vector.top import Top
from lancetable.index.vector.types import Matrix
from lancetable.scan.vector_request import VectorOptions
from lancetable.scan.vectors.covered import Part

PROBES = 24
"""How many partitions are searched unless the request says it; some more for many rows."""


class Probing:
    """The nearest partitions to each query, and while rows are missing the next ones.

    When a predicate leaves a share of the rows, the nearest of them lie farther apart, so that more
    partitions are searched from the start.
    """

    def __init__(
        self,
        part: Part,
        live: Live,
        queries: Matrix,
        options: VectorOptions,
        share: float,
        wanted: int,
    ) -> None:
        self.part = part
        self._live = live
        self._options = options
        self._queries = part.opened.prepare(queries)
        self._is_limited = options.nprobes is not None and share >= 1
        self._done = 0
        total = len(part.opened)
        first = options.nprobes or PROBES + wanted // 8
        self._next = min(total, math.ceil(first * widened(share)))
        self._ranked = part.opened.ranked(self._queries, self._next)

    @property
    def has_more(self) -> bool:
        """True when further partitions may be searched."""
        return not self._is_limited and self._done < len(self.part.opened)

    def search(self, asked: npt.NDArray[np.int64], top: Top) -> None:
        """Search the next partitions for some of the queries.

        Raises:
            CorruptError: a partition is damaged.
        """
        opened, total = self.part.opened, len(self.part.opened)
        if self._next > self._ranked.shape[1]:
            self._ranked = opened.ranked(self._queries, total)
        chosen: list[npt.NDArray[np.int64]] = [_NONE] * len(self._queries)
        for query in asked.tolist():
            if np.isfinite(self._queries[query].astype(np.float64)).all():
                chosen[query] = self._ranked[query, self._done : self._next]
        opened.search(
            self._queries,
            chosen,
            top,
            live=self._live,
            moved=self.part.moved,
            ef=self._options.ef,
        )
        self._done, self._next = self._next, min(total, 2 * self._next)


_NONE = np.empty(0, np.int64)


def widened(share: float) -> float:
    """Return how many times more partitions are searched for a share of the rows."""
    return 1.0 if share >= FULL else 1 / math.sqrt(max(share, 1e-6))


FULL = 0.25
"""With at least such a share of the rows no more partitions are searched."""
