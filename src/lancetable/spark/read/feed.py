"""Read the changes of versions in Spark: rows with the kind of the change and its commit.

A read returns the changes of some versions at once. A stream returns those of a few versions in
each micro-batch, and never cuts a version in two: both images of an update come together.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.errors import InputError
from lancetable.operations.feed.feed import Changes
from lancetable.operations.feed.task import ADDED_FIELDS, ChangeTask
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.spark.casts import plan_read
from lancetable.spark.errors import all_coded
from lancetable.spark.options import ReadOptions
from lancetable.spark.read.reader import PartitionReader
from lancetable.spark.read.schema import shown_schema
from lancetable.spark.read.versions import Follower, Position
from lancetable.spark.types import to_arrow, to_spark

_ADDED = tuple(field.name for field in ADDED_FIELDS)


class FeedPartition(InputPartition):
    """Some changed rows."""

    def __init__(self, tasks: tuple[ChangeTask, ...]) -> None:
        super().__init__(None)
        self.tasks = tasks


def feed_schema(snapshot: Snapshot, options: ReadOptions) -> StructType:
    """Return the Spark schema of the changes of a table: its columns, and those of the feed."""
    shown = shown_schema(snapshot.manifest.schema, options)
    added = to_spark(pa.schema(ADDED_FIELDS), options.vectors)
    return StructType([*shown.fields, *added.fields])


@dataclass(frozen=True, slots=True)
class FeedReader:
    """Reads changes of a table; it can be sent to every task."""

    reader: PartitionReader

    def changes(self, snapshot: Snapshot, from_version: int) -> Changes:
        """Return the changes after a version up to another.

        Raises:
            InputError: the feed cannot give what options ask for.
        """
        if self.reader.options.where is not None:
            raise InputError(
                "the option 'where' does not apply to changes; filter the data frame instead"
            )
        inner = self._columns(snapshot)
        return Changes(snapshot, from_version, inner, ScanOptions())

    def _columns(self, snapshot: Snapshot) -> ScanRequest:
        own = [one for one in self.reader.schema.fields if one.name not in _ADDED]
        reader = PartitionReader(
            StructType(own), self.reader.options, complete_from=self.reader.complete_from
        )
        return reader.request(snapshot.manifest.schema, snapshot.version)

    def divided(self, tasks: Iterable[ChangeTask]) -> list[InputPartition]:
        """Return partitions of about as many rows as options ask for, in the order of tasks."""
        bundles: list[list[ChangeTask]] = []
        held = 0
        for task in tasks:
            if not bundles or held + task.rows > self.reader.options.partition_rows:
                bundles.append([])
                held = 0
            bundles[-1].append(task)
            held += task.rows
        return [FeedPartition(tuple(bundle)) for bundle in bundles] or [FeedPartition(())]

    def batches(self, tasks: Sequence[ChangeTask]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tasks, as Spark expects them."""
        names = self.reader.schema.names
        target = to_arrow(self.reader.schema)
        for task in tasks:
            known = {field.name: field for field in task.schema}
            source = pa.schema([known.get(name, pa.field(name, pa.null())) for name in names])
            casts = plan_read(source, target, self.reader.options.nanoseconds)
            for batch in task.read():
                yield casts.apply(_completed(batch, names))


def _completed(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    known = set(batch.schema.names)
    nulls = pa.nulls(batch.num_rows)
    arrays = [batch.column(name) if name in known else nulls for name in names]
    return pa.RecordBatch.from_arrays(arrays, list(names))


@all_coded
class LanceChangesReader(DataSourceReader):
    """Reads the changes of some versions. A copy that is sent to a task does not know them."""

    def __init__(self, snapshot: Snapshot, from_version: int, reader: PartitionReader) -> None:
        self.snapshot = snapshot
        self.from_version = from_version
        self.feed = FeedReader(reader)

    def __getstate__(self) -> dict[str, object]:
        return {"feed": self.feed}

    def partitions(self) -> list[InputPartition]:
        """Divide the changes."""
        changes = self.feed.changes(self.snapshot, self.from_version)
        return self.feed.divided(changes.tasks(rows=self.feed.reader.options.partition_rows))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        if not isinstance(partition, FeedPartition):
            return
        yield from self.feed.batches(partition.tasks)


class FeedUnit(NamedTuple):
    """The changes of one version, and the position after it."""

    end: Position
    tasks: tuple[ChangeTask, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(task.rows for task in self.tasks)

    @property
    def bytes_(self) -> int:
        """About how many bytes of files they take."""
        return int(sum(map(_bytes, self.tasks)))


def _bytes(task: ChangeTask) -> float:
    (fragment,) = task.part.manifest.fragments
    size = sum(file.size or 0 for file in fragment.files)
    return size * task.rows / max(fragment.physical_rows or 1, 1)


class FeedFollower(NamedTuple):
    """A branch of a table whose changes are followed."""

    follower: Follower
    feed: FeedReader

    def units(self, start: Position, last: int) -> Iterator[FeedUnit]:
        """Yield the changes after a position, version by version."""
        rows = self.feed.reader.options.partition_rows
        for version in range(start.version, last + 1):
            snapshot = load(self.follower.location, version=version, branch=self.follower.branch)
            changes = self.feed.changes(snapshot, version - 1)
            is_first = version == start.snapshot
            tasks = changes.all_rows(rows=rows) if is_first else changes.tasks(rows=rows)
            yield FeedUnit(Position(version + 1).after(snapshot), tuple(tasks))

    def partitions(self, start: Position, end: Position) -> list[InputPartition]:
        """Divide the changes between two positions."""
        units = self.units(start, end.version - 1)
        return self.feed.divided(task for unit in units for task in unit.tasks)
