"""Read one version of a table in Spark.

On the driver the version is divided into partitions. A task reads the rows of a partition window by
window and only on demand, so that a limit ends the work early.

Filters of a query are left to Spark: no reader overrides ``pushFilters``. Spark keeps the read plan
of pushed filters in the object that all queries of a data frame or view share, so that a filter of
one query would drop rows of the others. The option ``where`` belongs to the data frame itself.

A function can be applied to the rows without sending them through the JVM: partitions travel inside
the function that the workers run, one for each partition of a range of numbers. A worker reads the
rows and hands them to the function in the same process.
"""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lancetable.commit.leases import reading
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import SchemaError
from lancetable.expression import Expression
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import quote
from lancetable.fragment.projection import ROW_OFFSET
from lancetable.fragment.readers import Readers
from lancetable.scan.answers import Known
from lancetable.scan.named_rows import Part, named_windows
from lancetable.scan.plan import ScanPlan, Window, plan, windows
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanRequest, parse_where
from lancetable.scan.result import table_of
from lancetable.scan.row_size import Pace, measured
from lancetable.scan.window import read_parts
from lancetable.spark.casts import Casts, plan_read
from lancetable.spark.errors import all_coded, coded
from lancetable.spark.options import ReadOptions
from lancetable.spark.read.partitions import LancePartition, divide
from lancetable.spark.read.schema import request_for, shown_schema
from lancetable.spark.types import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """Reads any part of a table; it can be sent to every task."""

    schema: StructType
    options: ReadOptions
    complete_from: int = 0
    """Versions before this one may lack columns, which are null then."""

    def request(self, schema: Schema, version: int) -> ScanRequest:
        """Return the request for a version that has a schema.

        Raises:
            SchemaError: the table has no such column.
        """
        named = _named(schema, self.options)
        wanted = [name for name in self.schema.names if name in named]
        missing = [name for name in self.schema.names if name not in named]
        if missing and version >= self.complete_from:
            raise SchemaError(
                f"the table has no column {missing[0]!r}; it has {', '.join(named) or 'none'}"
            )
        columns = dict.fromkeys(named[name] for name in wanted)
        return request_for(tuple(columns), self.options, parse_where(self.options.where))

    def batches(self, partition: LancePartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, as Spark expects them."""
        schema = partition.part.manifest.schema
        casts = self.casts(plan(schema, self.request(schema, partition.part.version)))
        for batch in self.native_batches(partition):
            yield casts.apply(batch)

    def native_batches(self, partition: LancePartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in the types of the table."""
        schema = partition.part.manifest.schema
        request, plans = self.request(schema, partition.part.version), Plans(schema)
        planned = plans.of(request)
        readers = Readers(partition.part)
        pace = measured((planned.early, planned.late), readers.source)
        with reading(partition.part.store, partition.part.version) as hold:
            for window in self._windows(partition, readers, pace, partial(plans.narrowed, request)):
                hold.tick()
                for _, piece in read_parts(window.plan or planned, readers, window, pace):
                    if not piece.rows:
                        continue
                    table = table_of(planned, piece)
                    for batch in table.to_batches(max_chunksize=self.options.batch_rows):
                        yield self._completed(batch)

    def casts(self, planned: ScanPlan) -> Casts:
        """Return how batches of a scan become those of Spark.

        Raises:
            SchemaError: a column cannot be read as the requested type.
        """
        known = set(planned.schema.names)
        source = pa.schema(
            [
                planned.schema.field(name) if name in known else pa.field(name, pa.null())
                for name in self.schema.names
            ]
        )
        return plan_read(source, to_arrow(self.schema), self.options.nanoseconds)

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with its columns in order, those that it lacks as nulls."""
        names, known = self.schema.names, set(batch.schema.names)
        if known.issuperset(names):
            return batch.select(names)
        nulls = pa.nulls(batch.num_rows)
        arrays = [batch.column(name) if name in known else nulls for name in names]
        return pa.RecordBatch.from_arrays(arrays, names)

    def _windows(
        self,
        partition: LancePartition,
        readers: Readers,
        pace: Pace,
        plan_of: Callable[[Expression | None], ScanPlan],
    ) -> Iterator[Window]:
        for one in partition.ranges:
            step = pace.rows(self.options.batch_bytes)
            named = partition.named.get(partition.part.manifest.fragments[one.position].id)
            if named is None:
                stop = readers[one.position].opened.rows if one.stop is None else one.stop
                yield from windows(one.position, one.start, stop, step)
            else:
                known = Known(named.rows.offsets(), named.rest)
                yield from named_windows(Part(one.position, known), plan_of, step)


def _named(schema: Schema, options: ReadOptions) -> dict[str, str]:
    """Return the columns that can be read, with the path that asks for each."""
    if options.columns is None:
        named = {field.name: quote(field.name) for field in schema.fields}
    else:
        named = {}
        for path in options.columns:
            if path == ROW_OFFSET:
                raise SchemaError(
                    f"{ROW_OFFSET} counts rows of the whole table, which a task cannot; use "
                    "withRowAddress"
                )
            (field,) = plan(schema, ScanRequest(columns=(path,))).schema
            named[field.name] = path
    system = ("_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version")
    return named | {name: name for name in system if name not in named}


@all_coded
class LanceReader(DataSourceReader):
    """Reads one version. A copy that is sent to a task does not know its fragments."""

    def __init__(self, snapshot: Snapshot, reader: PartitionReader) -> None:
        self.snapshot = snapshot
        self.reader = reader

    def __getstate__(self) -> dict[str, object]:
        return {"reader": self.reader}

    def partitions(self) -> list[InputPartition]:
        """Divide the version."""
        schema = self.snapshot.manifest.schema
        planned = plan(schema, self.reader.request(schema, self.snapshot.version))
        self.reader.casts(planned)
        return list(divide(self.snapshot, planned, self.reader.options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if not isinstance(partition, LancePartition):
            return
        yield from self.reader.batches(partition)


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
