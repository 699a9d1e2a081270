"""The peer `delta`: the same rows as a Delta table, read and written with deltalake."""

from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.peers.converted import DatasetHandle, converted


def _write(reader: pa.RecordBatchReader, folder: str) -> None:
    write_deltalake(folder, reader)


@dataclass(frozen=True, slots=True)
class _Delta:
    name: str = "delta"
    count_program: str = (
        "import sys; from deltalake import DeltaTable;"
        " print(DeltaTable(sys.argv[1] + '.delta').count())"
    )
    is_comparable: bool = False
    can_change: bool = False

    def open(self, uri: str) -> DatasetHandle:
        table = DeltaTable(converted(uri, "delta", _write))
        return DatasetHandle(table.to_pyarrow_dataset(), table.version())

    def create(self, uri: str, data: pa.Table | pa.RecordBatchReader) -> None:
        write_deltalake(f"{uri}.delta", data)


PEER = _Delta()
