"""The peer `parquet`: the same rows in one Parquet file, read with pyarrow."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.peers.converted import DatasetHandle, converted


def _write(reader: pa.RecordBatchReader, folder: str) -> None:
    with pq.ParquetWriter(f"{folder}/rows.parquet", reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


@dataclass(frozen=True, slots=True)
class _Parquet:
    name: str = "parquet"
    count_program: str = (
        "import sys, pyarrow.parquet as pq;"
        " print(pq.read_metadata(sys.argv[1] + '.parquet/rows.parquet').num_rows)"
    )
    is_comparable: bool = False
    can_change: bool = False

    def open(self, uri: str) -> DatasetHandle:
        return DatasetHandle(ds.dataset(converted(uri, "parquet", _write), format="parquet"), 1)

    def create(self, uri: str, data: pa.Table | pa.RecordBatchReader) -> None:
        from pathlib import Path

        folder = Path(f"{uri}.parquet")
        folder.mkdir(parents=True)
        table = data if isinstance(data, pa.Table) else data.read_all()
        pq.write_table(table, folder / "rows.parquet")


PEER = _Parquet()
