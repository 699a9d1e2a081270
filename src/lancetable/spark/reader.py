"""How does Spark read one version of a table.

On the driver: filters are translated and the version is divided into partitions. In a task: the
rows of a partition are read in windows, one after the other and only as they are asked for, so that
a limit ends the work early.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from lancetable.commit.leases import reading
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import SchemaError
from lancetable.expression import And, Expression
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import quote
from lancetable.fragment.projection import ROW_OFFSET
from lancetable.fragment.readers import Readers
from lancetable.scan.columns import binding_schema
from lancetable.scan.pace import Pace, guess
from lancetable.scan.plan import ScanPlan, Window, plan, windows
from lancetable.scan.request import ScanRequest, parse_where
from lancetable.scan.result import table_of
from lancetable.scan.window import read_window
from lancetable.spark.casts import Casts, plan_read
from lancetable.spark.codes import coded
from lancetable.spark.filters import push
from lancetable.spark.options import Nanoseconds, ReadOptions
from lancetable.spark.partitions import LancePartition, divide
from lancetable.spark.showing import request_for
from lancetable.spark.types import to_arrow


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of any part of a table: it can be sent to every task."""

    schema: StructType
    options: ReadOptions
    where: tuple[Expression, ...] = ()
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
        stated = () if self.options.where is None else (parse_where(self.options.where),)
        predicates = tuple(one for one in (*stated, *self.where) if one is not None)
        columns = dict.fromkeys(named[name] for name in wanted)
        return request_for(tuple(columns), self.options, _joined(predicates))

    def batches(self, partition: LancePartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, as Spark expects them."""
        schema = partition.part.manifest.schema
        casts = self.casts(plan(schema, self.request(schema, partition.part.version)))
        for batch in self.native_batches(partition):
            yield casts.apply(batch)

    def native_batches(self, partition: LancePartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in the types of the table."""
        schema = partition.part.manifest.schema
        planned = plan(schema, self.request(schema, partition.part.version))
        readers = Readers(partition.part)
        pace = guess((planned.early, planned.late), partition.part.manifest.fragments)
        with reading(partition.part.store, partition.part.version) as hold:
            for window in self._windows(partition, readers, pace):
                hold.tick()
                piece = read_window(planned, readers, window, pace)
                if piece.rows:
                    table = table_of(planned, piece)
                    for batch in table.to_batches(max_chunksize=self.options.batch_rows):
                        yield self._completed(batch)

    def casts(self, planned: ScanPlan) -> Casts:
        """Return how batches of a scan become those of Spark.

        Raises:
            SchemaError: a column cannot be read as the type that is asked for.
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

    def _windows(self, partition: LancePartition, readers: Readers, pace: Pace) -> Iterator[Window]:
        for one in partition.ranges:
            stop = readers[one.position].opened.rows if one.stop is None else one.stop
            yield from windows(one.position, one.start, stop, pace.rows(self.options.batch_bytes))


def _joined(predicates: tuple[Expression, ...]) -> Expression | None:
    if len(predicates) > 1:
        return And(predicates)
    return predicates[0] if predicates else None


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


class LanceReader(DataSourceReader):
    """Reads one version. A copy that is sent to a task does not know its fragments."""

    def __init__(self, snapshot: Snapshot, reading: Reading) -> None:
        self.snapshot = snapshot
        self.reading = reading
        # Spark refuses to read at all when the method is overridden while push-down is switched
        # off; an attribute that looks like the method of the base class works either way.
        self.pushFilters: Any = _PushFilters(self)

    def __getstate__(self) -> dict[str, object]:
        return {"reading": self.reading}

    def partitions(self) -> list[InputPartition]:
        """Divide the version."""
        with coded():
            schema = self.snapshot.manifest.schema
            planned = plan(schema, self.reading.request(schema, self.snapshot.version))
            self.reading.casts(planned)
            return list(divide(self.snapshot, planned, self.reading.options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if not isinstance(partition, LancePartition):
            return
        with coded():
            yield from self.reading.batches(partition)


class _PushFilters:
    """Takes the filters that a scan can apply."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: LanceReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        reader = self._reader
        with coded():
            reading = reader.reading
            pushed = push(
                filters,
                binding_schema(reader.snapshot.manifest.schema),
                is_truncated=reading.options.nanoseconds is Nanoseconds.TRUNCATE,
            )
        reader.reading = replace(reading, where=(*reading.where, *pushed.applied))
        return pushed.left
