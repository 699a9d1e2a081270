"""Rows and their scores, the best first: the result of every kind of search."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.arrays import Mask

Rows = npt.NDArray[np.uint64]
"""Row ids; addresses where a table has no stable row ids."""


QUERY_INDEX = "query_index"
"""The column, in front of all others, with the number of the query that found a row."""


class Scored(NamedTuple):
    """Rows and their scores, the best first; of equal scores the smaller row first."""

    rows: Rows
    scores: npt.NDArray[np.float32]
    more: tuple[npt.NDArray[Any], ...] = ()
    """The values of further columns; NaN stands for null."""

    def part(self, which: slice | Mask) -> "Scored":
        """Return some of the rows."""
        more = tuple(values[which] for values in self.more)
        return Scored(self.rows[which], self.scores[which], more)


class Searcher(Protocol):
    """One query on one version, its arguments checked."""

    @property
    def score(self) -> str:
        """The name of the column of scores."""
        ...

    @property
    def more(self) -> tuple[pa.Field, ...]:
        """Further columns of the result, before that of the scores."""
        ...

    @property
    def reads_predicate(self) -> bool:
        """True when the searcher finds the rows that match a predicate by itself."""
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
