"""Search for vectors and in texts at once: both find candidates, and a function joins their ranks.

A function gets the ranks of each candidate in both, from 1 on and NaN where it was not found, with
its distance and its score, and returns how relevant it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError, SchemaError
from lancetable.fragment.readers import Readers
from lancetable.options import check_options, option
from lancetable.scan.search_request import SearchRequest
from lancetable.scan.searcher import Rows, Scored, Searcher
from lancetable.scan.texts.searcher import TextSearcher
from lancetable.scan.vector_request import DEFAULTS
from lancetable.scan.vectors.exact import vector_column
from lancetable.scan.vectors.searcher import VectorSearcher

Floats: TypeAlias = npt.NDArray[np.float32]
CANDIDATES = 10
"""How many candidates for each row wanted both searches find, and at least so many:"""
LEAST = 100


class Ranks(NamedTuple):
    """What both searches found out about some rows; NaN where they did not find them."""

    vector: Floats
    text: Floats
    distance: Floats
    score: Floats


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion: the sum of 1 / (k + rank)."""

    k: int = option(60, minimum=1, help="The larger, the less the first ranks count.")

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, ranks: Ranks) -> Floats:
        """Return how relevant rows are."""
        parts = [np.nan_to_num(1 / (self.k + one)) for one in (ranks.vector, ranks.text)]
        return (parts[0] + parts[1]).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Weighted:
    """The weighted sum of a similarity, which falls with the distance, and of the score."""

    vector: float = option(0.7, minimum=0, maximum=1, help="The weight of the vectors.")

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, ranks: Ranks) -> Floats:
        """Return how relevant rows are."""
        near, good = _scaled(-ranks.distance), _scaled(ranks.score)
        return (self.vector * near + (1 - self.vector) * good).astype(np.float32)


def _scaled(values: Floats) -> Floats:
    """Return values between 0 and 1; 0 for NaN."""
    known = values[np.isfinite(values)]
    if not len(known):
        return np.zeros(len(values), np.float32)
    low, high = known.min(), known.max()
    scaled = (values - low) / (high - low) if high > low else values * 0 + 1
    return np.nan_to_num(scaled, posinf=0, neginf=0).astype(np.float32)


Fuse: TypeAlias = Callable[[Ranks], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Hybrid:
    """A vector and a query of texts, and how their results are joined."""

    vector: object
    text: object
    fuse: Fuse


class HybridSearcher:
    """A search for a vector and in texts in a version."""

    score = "_relevance"
    more = tuple(pa.field(one.score, pa.float32()) for one in (VectorSearcher, TextSearcher))
    reads_predicate = False

    @staticmethod
    def takes(query: object) -> bool:
        """Return whether something is a vector with words."""
        return isinstance(query, Hybrid)

    def __init__(
        self,
        snapshot: Snapshot,
        readers: Readers,
        request: SearchRequest,
        kept: dict[object, Any],
    ) -> None:
        """Prepare both searches.

        Raises:
            InputError: a query cannot be evaluated.
            SchemaError: there is no such column, or it does not fit.
        """
        query = request.query
        assert isinstance(query, Hybrid)
        of_vector = replace(request, query=query.vector)
        of_text = replace(request, query=query.text, vectors=DEFAULTS)
        if request.column is not None:
            try:
                vector_column(snapshot.manifest.schema, request.column)
                of_text = replace(of_text, column=None)
            except SchemaError:
                of_vector = replace(of_vector, column=None)
        if not VectorSearcher.takes(query.vector) or not TextSearcher.takes(query.text):
            raise InputError("give a vector with vector, and words or a query with text")
        vectors = VectorSearcher(snapshot, readers, of_vector, kept)
        if vectors.more:
            raise InputError("several vectors cannot be searched for together with texts")
        self._searchers: tuple[Searcher, Searcher] = (
            vectors,
            TextSearcher(snapshot, readers, of_text, kept),
        )
        self._fuse = query.fuse

    def best(self, allowed: Rows | None, most: int | None) -> Scored:
        """Return the most relevant rows among the candidates of both searches."""
        wanted = None if most is None else max(most * CANDIDATES, LEAST)
        near, good = (one.best(allowed, wanted) for one in self._searchers)
        rows = np.union1d(near.rows, good.rows)
        distance, score = _placed(rows, near, near.scores), _placed(rows, good, good.scores)
        ranks = Ranks(
            _placed(rows, near, np.arange(1, len(near.rows) + 1)),
            _placed(rows, good, np.arange(1, len(good.rows) + 1)),
            distance,
            score,
        )
        relevance = np.asarray(self._fuse(ranks), np.float32)
        if relevance.shape != rows.shape:
            raise InputError(f"fuse returned {relevance.shape} numbers for {len(rows)} rows")
        order = np.lexsort((rows, -relevance))[:most]
        return Scored(rows[order], relevance[order], (distance[order], score[order]))

    def describe(self) -> list[str]:
        """Return in words how the search will be done."""
        return [line for one in self._searchers for line in one.describe()]


def _placed(rows: Rows, found: Scored, values: npt.NDArray[Any]) -> Floats:
    """Return values for the rows of both; NaN for rows that were not found."""
    placed = np.full(len(rows), np.nan, np.float32)
    placed[np.searchsorted(rows, found.rows)] = values
    return placed
