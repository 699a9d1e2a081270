"""The peer `ours`: lancetable itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.searched import CODE_BITS, NEIGHBOURS, NPROBES, PARTITION_ROWS, SUB_VECTORS
from lancetable import (
    IvfFlat,
    IvfHnswSq,
    IvfPq,
    IvfRq,
    IvfSq,
    JsonPath,
    Table,
    create_table,
    open_table,
)
from lancetable.query import Match, Phrase, Query

_QUERIES: dict[str, Callable[[str], Query]] = {
    "or": Match,
    "and": partial(Match, operator="and"),
    "phrase": Phrase,
    "fuzzy": partial(Match, fuzziness=1),
}
_VECTORS: dict[str, Callable[..., IvfFlat]] = {
    "ivf_flat": IvfFlat,
    "ivf_pq": partial(IvfPq, sub_vectors=SUB_VECTORS),
    "ivf_sq": IvfSq,
    "ivf_rq": partial(IvfRq, bits=CODE_BITS),
    "ivf_hnsw_sq": IvfHnswSq,
}


@dataclass(frozen=True, slots=True)
class _Handle:
    table: Table

    def version(self) -> int:
        return self.table.version

    def count(self, where: str | None = None) -> int:
        return self.table.count(where=where)

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        return self.table.scan(columns=columns, where=where).to_arrow()

    def stream(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        return iter(self.table.scan(columns=columns).to_batches())

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        return self.table.take(rows, columns=columns)

    def head(self, rows: int) -> pa.Table:
        return self.table.head(rows)

    def find_words(self, words: str, how: str, where: str | None = None) -> pa.Table:
        query = _QUERIES[how](words)
        return self.table.search(query, columns=["id"], where=where).to_arrow()

    def find_near(
        self,
        column: str,
        vectors: npt.NDArray[np.float32],
        where: str | None = None,
        refine: int | None = None,
    ) -> pa.Table:
        return self.table.search(
            vectors[0] if len(vectors) == 1 else vectors,
            column=column,
            columns=["id"],
            where=where,
            limit=NEIGHBOURS,
            nprobes=NPROBES,
            refine_factor=refine,
        ).to_arrow()

    def append(self, data: pa.Table) -> None:
        self.table.append(data)

    def delete(self, where: str) -> None:
        self.table.delete(where)

    def update(self, values: dict[str, str], where: str) -> None:
        self.table.update(values, where=where)

    def upsert(self, data: pa.Table | pa.RecordBatchReader, key: str) -> None:
        merge = self.table.merge(data, on=[key])
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def versions(self) -> int:
        return len(self.table.versions())

    def version_names(self) -> int:
        return len(self.table.versions(detail=False))

    def history(self) -> int:
        return len(self.table.history())

    def tag(self, name: str) -> None:
        self.table.tags.create(name)

    def branch(self, name: str) -> None:
        self.table.branches.create(name)

    def add_column(self, name: str, expression: str) -> None:
        self.table.columns.add({name: expression})

    def cleanup(self) -> int:
        return len(self.table.maintenance.cleanup(older_than=timedelta(0)).removed_versions)

    def index(self, column: str, kind: str, memory_bytes: int | None = None) -> None:
        spec: str | JsonPath | IvfFlat = JsonPath("a") if kind == "json" else kind
        if kind in _VECTORS:
            spec = _VECTORS[kind](partitions=max(1, self.count() // PARTITION_ROWS[kind]))
        limit = {} if memory_bytes is None else {"memory_bytes": memory_bytes}
        self.table.indices.create(column, spec, **limit)

    def compact(self, memory_bytes: int | None = None) -> None:
        if memory_bytes is None:
            self.table.compact()
        else:
            self.table.compact(memory_bytes=memory_bytes)


@dataclass(frozen=True, slots=True)
class _Ours:
    name: str = "ours"
    count_program: str = "import sys, lancetable; print(lancetable.open_table(sys.argv[1]).count())"
    is_comparable: bool = True
    can_change: bool = True

    def open(self, uri: str) -> _Handle:
        return _Handle(open_table(uri))

    def create(self, uri: str, data: pa.Table | pa.RecordBatchReader) -> None:
        create_table(uri, data, storage_version="2.1")


PEER = _Ours()
