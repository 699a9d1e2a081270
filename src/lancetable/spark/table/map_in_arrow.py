"""Apply a function to the rows of a table without sending them through the JVM.

Partitions travel inside the function that the workers run, one for each partition of a range of
numbers. A worker reads the rows and hands them to the function in the same process.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle

from lancetable.commit.snapshot import Snapshot
from lancetable.scan.plan import plan
from lancetable.spark.errors import coded
from lancetable.spark.options import ReadOptions
from lancetable.spark.read.partitions import divide
from lancetable.spark.read.reader import PartitionReader
from lancetable.spark.read.schema import shown_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Function: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_dumps: Any = cloudpickle.dumps


def fused(
    spark: "SparkSession",
    snapshot: Snapshot,
    options: ReadOptions,
    function: Function,
    schema: "StructType | str",
) -> "DataFrame":
    """Return what a function gives for the rows of a version.

    Raises:
        SchemaError: there is no such column.
        ExpressionError: the predicate cannot be understood or does not fit the columns.
    """
    own = snapshot.manifest.schema
    reader = PartitionReader(shown_schema(own, options), options)
    planned = plan(own, reader.request(own, snapshot.version))
    payloads = [_dumps(partition) for partition in divide(snapshot, planned, options)]
    rows = spark.range(0, len(payloads), 1, len(payloads))
    return rows.mapInArrow(_Work(payloads, reader, function), schema)


@dataclass(frozen=True, slots=True)
class _Work:
    """Reads partitions on a worker and calls the function."""

    payloads: list[bytes]
    reader: PartitionReader
    function: Function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                partition = pickle.loads(self.payloads[place])  # noqa: S301 - the driver's
                yield from self.function(_read(self.reader, partition))


@coded
def _read(reader: PartitionReader, partition: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    yield from reader.native_batches(partition)
