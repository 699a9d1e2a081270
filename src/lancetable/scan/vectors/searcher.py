"""Vector search of a version: one vector, several at once, or a list of vectors."""

from typing import Any, cast

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.fragment.readers import Readers
from lancetable.index.vector.types import Vector, is_matrix
from lancetable.scan.search_request import SearchRequest
from lancetable.scan.searcher import QUERY_INDEX, Rows, Scored
from lancetable.scan.vector_request import VectorRequest
from lancetable.scan.vectors.nearest import VectorSearch


class VectorSearcher:
    """A search for near vectors in a version; the nearest rows are the best."""

    score = "_distance"
    reads_predicate = True

    @staticmethod
    def takes(query: object) -> bool:
        """Return whether something is a vector, or several."""
        return isinstance(query, list | tuple | np.ndarray | pa.Array)

    def __init__(
        self,
        snapshot: Snapshot,
        readers: Readers,
        request: SearchRequest,
        kept: dict[object, Any],
    ) -> None:
        """Prepare to search; ``kept`` is what earlier searches of the version found out.

        Raises:
            InputError: the vector has another dimension than the column, or an option is wrong.
            SchemaError: there is no such column, or it does not hold vectors.
        """
        del snapshot
        self._readers = readers
        self._request = request
        self._query = cast("Vector", request.query)
        self._search = self._prepared(kept)
        is_many = is_matrix(self._query) and not self._search.column.type.is_multi
        self.more: tuple[pa.Field, ...] = ()
        if is_many:
            self.more = (pa.field(QUERY_INDEX, pa.int32(), nullable=False),)
            if request.scan.offset:
                raise InputError("offset is given with several vectors; leave it out")

    def _prepared(self, kept: dict[object, Any]) -> VectorSearch:
        request = self._request
        wanted = VectorRequest(
            request.column,
            self._query,
            where=request.scan.where if request.prefilter else None,
            options=request.vectors,
            use_indices=request.scan.use_indices,
            indexed_only=request.indexed_only,
        )
        return VectorSearch(self._readers, wanted, kept)

    def best(self, allowed: Rows | None, most: int | None) -> Scored:
        """Return the nearest rows, all for None; one query after the other."""
        del allowed
        rows = max(self._readers.starts[-1], 1)
        limit = rows if most is None else min(most, rows)
        if not limit:
            return self._joined([Scored(np.empty(0, np.uint64), np.empty(0, np.float32))])
        found = self._search.limited(limit).find()
        return self._joined([Scored(one.rows, one.distances) for one in found])

    def _joined(self, found: list[Scored]) -> Scored:
        if not self.more:
            return found[0]
        counts = [len(one.rows) for one in found]
        numbers = np.repeat(np.arange(len(found), dtype=np.int32), counts)
        return Scored(
            np.concatenate([np.empty(0, np.uint64), *(one.rows for one in found)]),
            np.concatenate([np.empty(0, np.float32), *(one.scores for one in found)]),
            (numbers,),
        )

    def describe(self) -> list[str]:
        """Return in words how the search will be done."""
        return self._search.limited(self._request.scan.limit or 1).describe()
