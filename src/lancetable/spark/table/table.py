"""The table API in the shape of DeltaTable: the core's operations, run on Spark.

Conditions and values are SQL of this library, given as texts. Each call works on the latest version
and commits one; errors keep their classes, as all of it runs in the caller's own process.
"""

# ruff: noqa: N802 - the names are those PySpark users know

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self, cast

import pyarrow as pa

from lancetable.commit.location.locate import locate
from lancetable.commit.versions import load
from lancetable.errors import InputError, TableNotFoundError
from lancetable.operations.columns.add import (
    FunctionOptions,
    add_columns_by,
    add_computed_columns,
    add_joined_columns,
)
from lancetable.operations.delete import delete
from lancetable.operations.merge.clauses import Clause
from lancetable.operations.merge.run import MergeBuilder, MergeOptions
from lancetable.operations.results import ChangeOptions, Done, MergeResult
from lancetable.operations.update import update
from lancetable.spark.errors import all_coded
from lancetable.spark.merge.builder import LanceMergeBuilder, as_keys
from lancetable.spark.merge.frame import Join, is_here, merge_frame, stored_rows
from lancetable.spark.options import ReadOptions
from lancetable.spark.read.reader import fused
from lancetable.spark.runner import PATIENT, SparkRunner
from lancetable.spark.table.builder import LanceTableBuilder
from lancetable.spark.table.indexed import IndexedTable
from lancetable.spark.table.maintenance import MaintainedTable
from lancetable.spark.table.reports import MERGED, merged
from lancetable.spark.table.versioned import VersionedTable
from lancetable.spark.write.column_join import add_frame_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@all_coded
class LanceTable(VersionedTable, MaintainedTable, IndexedTable):
    """One table, at its latest version."""

    __slots__ = ()

    @classmethod
    def forPath(
        cls,
        spark: "SparkSession",
        path: str,
        options: Mapping[str, str] | None = None,
        *,
        branch: str | None = None,
    ) -> Self:
        """Return the table at a path; ``options`` are those of the store.

        Raises:
            TableNotFoundError: there is none.
        """
        found = cls(spark, locate(path, options), branch)
        found.snapshot()
        return found

    @classmethod
    def forRescue(
        cls,
        spark: "SparkSession",
        path: str,
        options: Mapping[str, str] | None = None,
        *,
        branch: str | None = None,
    ) -> Self:
        """Return the table at a path unopened: ``check`` and ``repair`` work on damaged ones."""
        return cls(spark, locate(path, options), branch)

    @classmethod
    def isLanceTable(cls, spark: "SparkSession", path: str) -> bool:
        """Return whether there is a table at a path."""
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

    def alias(self, name: str) -> Self:
        """Return the table under the name that conditions of a merge use."""
        return replace(self, name=name)

    def toDF(
        self, *, columns: Sequence[str] | None = None, where: str | None = None
    ) -> "DataFrame":
        """Return the rows of the latest version as a data frame.

        Spark passes a source written in Python neither the columns nor the filters of a query: what
        is chosen here is not read at all.

        Args:
            columns: names and paths of columns; all columns when left out.
            where: which rows to read, in SQL of this library.
        """
        options = {} if where is None else {"where": where}
        if columns is not None:
            options["columns"] = ",".join(columns)
        return self._read(self.snapshot().version, options).alias(self.name)

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
        return fused(self.spark, self.snapshot(), options, function, schema)

    def count(self) -> int:
        """Return the number of rows, without reading any."""
        return self._core().count()

    def delete(self, condition: str | None = None) -> int:
        """Delete the rows for which a condition is true, or all; return how many."""
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

        def run(clauses: tuple[Clause, ...], options: MergeOptions) -> Done[MergeResult]:
            return merge_frame(self.snapshot(), source, keys, clauses, options, join)

        given = change or ChangeOptions(commit=PATIENT)
        settled = MergeOptions(replace(given, runner=SparkRunner(self.spark)))
        return LanceMergeBuilder(MergeBuilder(run, settled), aliases, self._merged)

    def addColumns(
        self,
        columns: "Mapping[str, str] | Callable[[pa.RecordBatch], object] | DataFrame",
        function: FunctionOptions | None = None,
        *,
        on: str | Sequence[str] | None = None,
        join: Join = "auto",
    ) -> tuple[str, ...]:
        """Add columns, and return their names.

        Args:
            columns: a dict of names and SQL expressions; or a function of batches, which runs on
                workers; or with ``on`` a data frame.
            function: what the function gets and gives, and the folder that keeps its results, so
                that a later attempt goes on from there. For a data frame the folder keeps the
                names of files that are done.
            on: the key columns of the frame; ``_rowaddr`` and ``_rowid`` stand for the row itself.
                Rows without a match get nulls.
            join: where rows of a frame meet those of the table, as for :meth:`merge`.
        """
        if on is not None:
            keys = [on] if isinstance(on, str) else list(on)
            return self._add_from(cast("DataFrame", columns), keys, function, join)
        if isinstance(columns, Mapping):
            return add_computed_columns(self.snapshot(), columns, self._change()).result.columns
        settled = replace(function or FunctionOptions(), change=self._change())
        made = cast("Callable[[pa.RecordBatch], object]", columns)
        return add_columns_by(self.snapshot(), made, settled).result.columns

    def _add_from(
        self,
        frame: "DataFrame",
        keys: list[str],
        function: FunctionOptions | None,
        join: Join,
    ) -> tuple[str, ...]:
        given = function or FunctionOptions()
        if given.checkpoint is None and is_here(frame, join):
            options = ChangeOptions(commit=PATIENT)
            rows = stored_rows(frame)
            return add_joined_columns(self.snapshot(), rows, keys, options).result.columns
        settled = replace(given, change=self._change())
        return add_frame_columns(self.snapshot(), frame, keys, settled).result.columns

    def _merged(self, result: MergeResult) -> "DataFrame":
        return self.spark.createDataFrame([merged(result)], MERGED)
