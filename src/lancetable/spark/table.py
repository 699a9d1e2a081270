"""The table API for those who know DeltaTable: the core's operations, run on Spark.

Conditions and values are SQL of this library, given as texts. Each call works on the latest version
and commits one; errors keep their classes, as all of it runs in the caller's own process.
"""

# ruff: noqa: N802 - the names are those PySpark users know

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Unpack, cast

import pyarrow as pa

from lancetable.commit.history import read_history
from lancetable.commit.place import locate
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.errors import InputError, TableNotFoundError
from lancetable.format.manifest.codec import live_rows
from lancetable.operations.add_columns import (
    FunctionOptions,
    add_columns_by,
    add_computed_columns,
    add_joined_columns,
)
from lancetable.operations.changes import ChangeOptions, MergeResult
from lancetable.operations.clauses import TARGET, Clause
from lancetable.operations.cleanup.options import CleanupOptions
from lancetable.operations.cleanup.run import cleanup
from lancetable.operations.clone import clone
from lancetable.operations.compact_options import CompactOptions, CompactSettings
from lancetable.operations.delete import delete
from lancetable.operations.merge import MergeOptions
from lancetable.operations.merge_builder import MergeBuilder
from lancetable.operations.restore import restore
from lancetable.operations.update import update
from lancetable.spark.codes import coded
from lancetable.spark.creating import LanceTableBuilder
from lancetable.spark.fused import fused
from lancetable.spark.merge_frame import Join, merge_frame, stored_rows
from lancetable.spark.merging import LanceMergeBuilder, as_keys
from lancetable.spark.optimizing import LanceOptimizeBuilder
from lancetable.spark.options import STORAGE_PREFIX, ReadOptions
from lancetable.spark.reports import (
    DESCRIBED,
    MERGED,
    REMOVED,
    TOLD,
    described,
    merged,
    removed,
    told,
)
from lancetable.spark.runner import PATIENT, SparkRunner
from lancetable.store import TableLocation
from lancetable.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class LanceTable:
    """One table, at its latest version."""

    spark: "SparkSession"
    location: TableLocation
    branch: str | None = None
    name: str = TARGET

    @classmethod
    def forPath(
        cls,
        spark: "SparkSession",
        path: str,
        options: Mapping[str, str] | None = None,
        *,
        branch: str | None = None,
    ) -> "LanceTable":
        """Return the table at a path; ``options`` are those of the store.

        Raises:
            TableNotFoundError: there is none.
        """
        found = cls(spark, locate(path, options), branch)
        with coded():
            found.snapshot()
        return found

    @classmethod
    def isLanceTable(cls, spark: "SparkSession", path: str) -> bool:
        """Say whether there is a table at a path."""
        try:
            load(locate(path))
        except TableNotFoundError:
            return False
        return True

    @classmethod
    def create(cls, spark: "SparkSession") -> "LanceTableBuilder":
        """Describe a new table; there must be none."""
        return LanceTableBuilder(spark, "error")

    @classmethod
    def createIfNotExists(cls, spark: "SparkSession") -> "LanceTableBuilder":
        """Describe a table that is made unless there is one."""
        return LanceTableBuilder(spark, "ignore")

    @classmethod
    def createOrReplace(cls, spark: "SparkSession") -> "LanceTableBuilder":
        """Describe a table that takes the place of one that may be there."""
        return LanceTableBuilder(spark, "overwrite")

    def snapshot(self) -> Snapshot:
        """Open the latest version."""
        return load(self.location, branch=self.branch)

    def alias(self, name: str) -> "LanceTable":
        """Return the table under the name that conditions of a merge use."""
        return LanceTable(self.spark, self.location, self.branch, name)

    def toDF(self) -> "DataFrame":
        """Return the rows of the latest version as a data frame."""
        return self._read(self.snapshot().version, {}).alias(self.name)

    def mapInArrow(
        self,
        function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: "StructType | str",
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
    ) -> "DataFrame":
        """Return what a function makes of the rows, in the process that reads them.

        Other than ``toDF().mapInArrow(...)`` nothing goes through the JVM before the function, and
        batches have the types of the table: vectors are fixed size lists. That is many times
        quicker for wide columns.

        Args:
            function: gets an iterator of batches for each partition, and gives another.
            schema: what it gives, in Spark's types.
            columns: what it gets; all columns when left out.
            where: which rows it gets, in SQL of this library.
        """
        chosen = None if columns is None else tuple(columns)
        options = ReadOptions(columns=chosen, where=where)
        with coded():
            return fused(self.spark, self.snapshot(), options, function, schema)

    def changes(self, fromVersion: int, toVersion: int | None = None) -> "DataFrame":  # noqa: N803
        """Return what the versions after one, up to another, changed.

        Beside the columns of the table each row has ``_change_type``, ``_commit_version`` and
        ``_commit_timestamp``. Applied in order, the changes turn the rows of one version into those
        of the other.

        Args:
            fromVersion: the version to start from; 0 is the empty table before the first.
            toVersion: the last version to tell about; the latest when left out.
        """
        last = self.snapshot().version if toVersion is None else toVersion
        if not 0 <= fromVersion <= last:
            raise InputError(
                f"changes go from a version up to a later one, not from {fromVersion} to {last}"
            )
        options = {"changes": "feed", "startingVersion": str(fromVersion + 1)}
        return self._read(last, options)

    def _read(self, version: int, options: Mapping[str, str]) -> "DataFrame":
        reader = self.spark.read.format("lance").option("version", version).options(**options)
        if self.branch is not None:
            reader = reader.option("branch", self.branch)
        for key, value in self.location.options.items():
            reader = reader.option(f"{STORAGE_PREFIX}{key}", value)
        return reader.load(self.location.uri)

    def count(self) -> int:
        """Return the number of rows, without reading any."""
        snapshot = self.snapshot()
        known = live_rows(snapshot.manifest)
        return Table(self.location, snapshot).count() if known is None else known

    def delete(self, condition: str | None = None) -> int:
        """Delete the rows for which a condition is true, or all; return how many."""
        with coded():
            return delete(self.snapshot(), condition or "true", self._change()).result.rows

    def update(
        self,
        condition: str | None = None,
        set: Mapping[str, str] | None = None,  # noqa: A002 - the word of SQL
    ) -> int:
        """Set columns to SQL expressions where a condition is true, or in all rows.

        Returns how many rows were changed.
        """
        if not set:
            raise InputError("nothing is set; give set={'column': 'SQL expression'}")
        with coded():
            return update(self.snapshot(), set, condition, self._change()).result.rows

    def merge(
        self,
        source: "DataFrame",
        condition: str | Sequence[str],
        change: ChangeOptions | None = None,
        *,
        join: Join = "auto",
    ) -> LanceMergeBuilder:
        """Describe a merge of rows into the table.

        Args:
            source: the rows.
            condition: equalities of columns, such as ``target.id = source.id``, in which the table
                has the name that ``alias`` gave it; or a list of key columns.
            change: how files and the commit are made; steps run on Spark all the same.
            join: where rows of the two sides meet. ``cluster`` shuffles the source and the keys of
                the table, so that no side has to fit into one process; ``driver`` takes the source
                here, which is quicker when it is small; ``auto`` chooses by its estimated size.
        """
        keys, aliases = as_keys(condition, self.name)

        def run(clauses: tuple[Clause, ...], options: MergeOptions) -> MergeResult:
            return merge_frame(self.snapshot(), source, keys, clauses, options, join).result

        given = change or ChangeOptions(commit=PATIENT)
        settled = MergeOptions(replace(given, runner=SparkRunner(self.spark)))
        return LanceMergeBuilder(MergeBuilder(run, settled), aliases, self._merged)

    def addColumns(
        self,
        columns: "Mapping[str, str] | Callable[[pa.RecordBatch], object] | DataFrame",
        function: FunctionOptions | None = None,
        *,
        on: str | Sequence[str] | None = None,
    ) -> tuple[str, ...]:
        """Add columns, and return their names.

        Args:
            columns: a dict of names and SQL expressions; or a function of batches, which runs on
                workers; or with ``on`` a data frame, whose rows come to the driver.
            function: what the function gets and gives, and the folder that keeps its results, so
                that a later attempt goes on from there.
            on: the key columns of the frame; ``_rowaddr`` and ``_rowid`` stand for the row itself.
                Rows without a match get nulls.
        """
        with coded():
            if on is not None:
                keys = [on] if isinstance(on, str) else list(on)
                rows = stored_rows(cast("DataFrame", columns))
                return add_joined_columns(self.snapshot(), rows, keys).result.columns
            if isinstance(columns, Mapping):
                return add_computed_columns(self.snapshot(), columns, self._change()).result.columns
            settled = replace(function or FunctionOptions(), change=self._change())
            made = cast("Callable[[pa.RecordBatch], object]", columns)
            return add_columns_by(self.snapshot(), made, settled).result.columns

    def optimize(self, **settings: Unpack[CompactSettings]) -> LanceOptimizeBuilder:
        """Describe a compaction, whose tasks run on workers.

        Args:
            **settings: as of :meth:`lancetable.Table.compact`, such as ``target_rows``.
        """
        with coded():
            return LanceOptimizeBuilder(self.spark, self.snapshot, CompactOptions(**settings))

    def clone(self, target: str, *, isShallow: bool = False) -> "LanceTable":  # noqa: N803
        """Make a new table that begins with the latest version.

        Args:
            target: where it will be.
            isShallow: refer to the files of this table instead of copying them; then the clone is
                of no use without it.
        """
        return self._clone(self.snapshot(), target, is_shallow=isShallow)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        *,
        isShallow: bool = False,  # noqa: N803
    ) -> "LanceTable":
        """Make a new table that begins with an older version."""
        with coded():
            old = load(self.location, version=version, branch=self.branch)
        return self._clone(old, target, is_shallow=isShallow)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        *,
        isShallow: bool = False,  # noqa: N803
    ) -> "LanceTable":
        """Make a new table that begins with the version of a time."""
        with coded():
            old = load(self.location, as_of=timestamp, branch=self.branch)
        return self._clone(old, target, is_shallow=isShallow)

    def _clone(self, source: Snapshot, target: str, *, is_shallow: bool) -> "LanceTable":
        location = replace(self.location, uri=target)
        with coded():
            clone(source, location, deep=not is_shallow, runner=SparkRunner(self.spark))
        return LanceTable(self.spark, location)

    def vacuum(
        self,
        retentionHours: float | None = None,  # noqa: N803
        *,
        dryRun: bool = True,  # noqa: N803
    ) -> "DataFrame":
        """Remove old versions, and files that no version needs; unless told otherwise only tell it.

        Tagged versions, those where branches begin and those in use stay. A stream that is stopped
        for longer than versions are kept cannot go on from where it was.

        Args:
            retentionHours: the age from which on versions go; 14 days when left out.
            dryRun: remove nothing. Look at the result first, then say ``dryRun=False``.
        """
        with coded():
            options = CleanupOptions()
            if retentionHours is not None:
                options = replace(options, older_than=timedelta(hours=retentionHours))
            done = cleanup(self.snapshot(), options, dry_run=dryRun)
        return self.spark.createDataFrame([removed(done)], REMOVED)

    def restoreToVersion(self, version: int) -> int:
        """Make an older version the latest; return the number of the new version."""
        with coded():
            return restore(self.snapshot(), version).result.version

    def restoreToTimestamp(self, timestamp: str) -> int:
        """Make the version of a time the latest; return the number of the new version."""
        with coded():
            old = load(self.location, branch=self.branch, as_of=timestamp)
            return restore(self.snapshot(), old.version).result.version

    def history(self, limit: int | None = None) -> "DataFrame":
        """Return the versions that are kept and what each did, latest first."""
        with coded():
            rows = [told(one) for one in read_history(self.snapshot(), limit=limit)]
        return self.spark.createDataFrame(rows, TOLD)

    def detail(self) -> "DataFrame":
        """Return one row that describes the latest version."""
        snapshot = self.snapshot()
        row = described(snapshot, Table(self.location, snapshot).count())
        return self.spark.createDataFrame([row], DESCRIBED)

    def _change(self) -> ChangeOptions:
        return ChangeOptions(commit=PATIENT, runner=SparkRunner(self.spark))

    def _merged(self, result: MergeResult) -> "DataFrame":
        return self.spark.createDataFrame([merged(result)], MERGED)
