"""The peer `pylance`: the reference implementation with its default settings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.indices import IndexConfig
from lance.query import FullTextOperator, FullTextQuery, MatchQuery, PhraseQuery

from benchmarks.searched import CODE_BITS, NEIGHBOURS, NPROBES, PARTITION_ROWS, SUB_VECTORS

_INDEX_CONFIGS = {
    "full_text": "INVERTED",
    "rtree": IndexConfig("rtree", {}),
    "json": IndexConfig("json", {"target_index_type": "btree", "path": "a"}),
}
_QUERIES: dict[str, Callable[[str, str], FullTextQuery]] = {
    "or": MatchQuery,
    "and": partial(MatchQuery, operator=FullTextOperator.AND),
    "phrase": PhraseQuery,
    "fuzzy": partial(MatchQuery, fuzziness=1),
}
_VECTOR_OPTIONS = {
    "ivf_pq": {"num_sub_vectors": SUB_VECTORS},
    "ivf_rq": {"num_bits": CODE_BITS},
}


@dataclass(frozen=True, slots=True)
class _Handle:
    dataset: lance.LanceDataset

    def version(self) -> int:
        return int(self.dataset.version)

    def count(self, where: str | None = None) -> int:
        if where is None:
            return int(self.dataset.count_rows())
        # `count_rows(filter)` of the dataset takes two to three times as long for the same answer.
        return int(self.dataset.scanner(filter=where).count_rows())

    def scan(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        return self.dataset.to_table(columns=columns, filter=where)

    def stream(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        return iter(self.dataset.to_batches(columns=columns))

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        return self.dataset.take(rows, columns=columns)

    def head(self, rows: int) -> pa.Table:
        return self.dataset.head(rows)

    def find_words(self, words: str, how: str, where: str | None = None) -> pa.Table:
        return self.dataset.to_table(
            columns=["id", "_score"],
            full_text_query=_QUERIES[how](words, "text"),
            filter=where,
            prefilter=True,
            limit=10,
        )

    def find_near(
        self,
        column: str,
        vectors: npt.NDArray[np.float32],
        where: str | None = None,
        refine: int | None = None,
    ) -> pa.Table:
        several = len(vectors) > 1
        return self.dataset.to_table(
            columns=[*["query_index"][:several], "id", "_distance"],
            nearest={
                "column": column,
                "q": vectors if several else vectors[0],
                "k": NEIGHBOURS,
                "nprobes": NPROBES,
                "refine_factor": refine,
            },
            filter=where,
            prefilter=True,
        )

    def append(self, data: pa.Table) -> None:
        lance.write_dataset(data, self.dataset, mode="append")

    def delete(self, where: str) -> None:
        self.dataset.delete(where)

    def update(self, values: dict[str, str], where: str) -> None:
        self.dataset.update(values, where=where)

    def upsert(self, data: pa.Table | pa.RecordBatchReader, key: str) -> None:
        merge = self.dataset.merge_insert(key)
        merge.when_matched_update_all().when_not_matched_insert_all().execute(data)

    def versions(self) -> int:
        return len(self.dataset.versions())

    def version_names(self) -> int:
        # There is no other way to learn the numbers.
        return len(self.dataset.versions())

    def history(self) -> int:
        # The number of transactions to look for has to be given.
        return len(self.dataset.get_transactions(self.dataset.version))

    def tag(self, name: str) -> None:
        self.dataset.tags.create(name, self.dataset.version)

    def branch(self, name: str) -> None:
        self.dataset.create_branch(name)

    def add_column(self, name: str, expression: str) -> None:
        self.dataset.add_columns({name: expression})

    def cleanup(self) -> int:
        return int(self.dataset.cleanup_old_versions(timedelta(0)).old_versions)

    def index(self, column: str, kind: str, memory_bytes: int | None = None) -> None:
        # There is no such limit.
        del memory_bytes
        if kind in PARTITION_ROWS:
            self.dataset.create_index(
                column,
                kind.upper(),
                num_partitions=max(1, self.count() // PARTITION_ROWS[kind]),
                **_VECTOR_OPTIONS.get(kind, {}),
            )
        else:
            self.dataset.create_scalar_index(column, _INDEX_CONFIGS.get(kind, kind.upper()))

    def compact(self, memory_bytes: int | None = None) -> None:
        # There is no such limit.
        del memory_bytes
        self.dataset.optimize.compact_files()


@dataclass(frozen=True, slots=True)
class _Pylance:
    name: str = "pylance"
    count_program: str = "import sys, lance; print(lance.dataset(sys.argv[1]).count_rows())"
    is_comparable: bool = True
    can_change: bool = True

    def open(self, uri: str) -> _Handle:
        return _Handle(lance.dataset(uri))

    def create(self, uri: str, data: pa.Table | pa.RecordBatchReader) -> None:
        lance.write_dataset(data, uri, data_storage_version="2.1")


PEER = _Pylance()
