"""How are the fragments of a table compacted by Spark: a builder in the shape of DeltaTable's."""

# ruff: noqa: N802 - the names are those PySpark users know

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lancetable.operations.compact.options import CompactOptions, CompactResult
from lancetable.operations.compact.run import CompactRun, compact, foreseen, plan_for
from lancetable.spark.errors import coded
from lancetable.spark.runner import PATIENT, SparkRunner

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lancetable.commit.snapshot import Snapshot

_DONE = (
    "version bigint, numFragmentsRemoved bigint, numFragmentsAdded bigint, numRows bigint, "
    "numDeletedRows bigint, numBytesRemoved bigint, numBytesAdded bigint, isDryRun boolean, "
    "isNewVersion boolean"
)


@dataclass(frozen=True, slots=True)
class LanceOptimizeBuilder:
    """A compaction in the making; nothing happens before one of the execute methods."""

    spark: "SparkSession"
    open: "Callable[[], Snapshot]"
    options: CompactOptions
    condition: str | None = None
    is_dry_run: bool = False

    def where(self, condition: str) -> "LanceOptimizeBuilder":
        """Take only fragments that hold a row for which a condition is true."""
        return replace(self, condition=condition)

    def dryRun(self) -> "LanceOptimizeBuilder":
        """Only tell what would be done."""
        return replace(self, is_dry_run=True)

    def explain(self) -> str:
        """Return what a compaction would do, one line for each group of fragments."""
        with coded():
            run = CompactRun(SparkRunner(self.spark), PATIENT)
            return plan_for(self.open(), self.condition, self.options, run).explain()

    def executeCompaction(self) -> "DataFrame":
        """Join small fragments and give back the place of deleted rows; return what was done."""
        return self._execute(self.options)

    def executeZOrderBy(self, *columns: str) -> "DataFrame":
        """Write all fragments anew, with the rows of each sorted by several columns alike."""
        with coded():
            return self._execute(replace(self.options, z_order_by=columns))

    def _execute(self, options: CompactOptions) -> "DataFrame":
        with coded():
            run = CompactRun(SparkRunner(self.spark), PATIENT)
            if self.is_dry_run:
                result = foreseen(plan_for(self.open(), self.condition, options, run))
            else:
                result = compact(self.open(), self.condition, options, run).result
        return self.spark.createDataFrame([_row(result)], _DONE)


def _row(result: CompactResult) -> tuple[object, ...]:
    return (
        result.version,
        result.fragments_removed,
        result.fragments_added,
        result.rows,
        result.deleted_rows,
        result.bytes_before,
        result.bytes_after,
        result.is_dry_run,
        result.is_new_version,
    )
