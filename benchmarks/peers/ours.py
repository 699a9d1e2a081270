"""The peer `ours`: lancetable itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from lancetable import JsonPath, Table, create_table, open_table


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
        spec = JsonPath("a") if kind == "json" else kind
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
