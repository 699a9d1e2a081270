"""What every kind of search gives: rows and their scores, the best first."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask

Rows = npt.NDArray[np.uint64]
"""Row ids; addresses where a table has no stable row ids."""


class Scored(NamedTuple):
    """Rows and their scores, the best first; of equal scores the smaller row first."""

    rows: Rows
    scores: npt.NDArray[np.float32]

    def part(self, which: slice | Mask) -> "Scored":
        """Return some of the rows."""
        return Scored(self.rows[which], self.scores[which])


class Searcher(Protocol):
    """One query on one version, its arguments checked."""

    @property
    def score(self) -> str:
        """The name of the column of scores."""
        ...

    def best(self, allowed: Rows | None, most: int | None) -> Scored:
        """Return the best rows, all for None, among ascending rows that are allowed.

        Raises:
            CorruptError: a file of an index, or a value, is damaged.
        """
        ...

    def describe(self) -> list[str]:
        """Return in words how the search will be done."""
        ...
