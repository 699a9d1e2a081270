"""Maintain a table: compact fragments, remove files, verify and repair."""

# ruff: noqa: N802, N803 - the names are those PySpark users know

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Unpack

from lancetable.operations.check.model import Level
from lancetable.operations.check.repair import plan_repair
from lancetable.operations.check.run import check
from lancetable.operations.compact.options import CompactOptions, CompactResult
from lancetable.operations.compact.run import compact, foreseen, plan_for
from lancetable.operations.results import RunOptions
from lancetable.options import parse_options
from lancetable.spark.errors import all_coded
from lancetable.spark.runner import PATIENT, SparkRunner
from lancetable.spark.table.base import BaseTable
from lancetable.spark.table.reports import FAULTS, MENDED, REMOVED, mended, removed, report_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lancetable.commit.snapshot import Snapshot
    from lancetable.table.settings import CleanupSettings, CompactSettings

_DONE = (
    "version bigint, numFragmentsRemoved bigint, numFragmentsAdded bigint, numRows bigint, "
    "numDeletedRows bigint, numBytesRemoved bigint, numBytesAdded bigint, isDryRun boolean, "
    "isNewVersion boolean"
)


@all_coded
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
        run = RunOptions(SparkRunner(self.spark), PATIENT)
        return plan_for(self.open(), self.condition, self.options, run).explain()

    def executeCompaction(self) -> "DataFrame":
        """Join small fragments and give back the place of deleted rows; return what was done."""
        return self._execute(self.options)

    def executeZOrderBy(self, *columns: str) -> "DataFrame":
        """Rewrite all fragments, with the rows of each clustered by several columns."""
        return self._execute(replace(self.options, z_order_by=columns))

    def _execute(self, options: CompactOptions) -> "DataFrame":
        run = RunOptions(SparkRunner(self.spark), PATIENT)
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


@all_coded
class MaintainedTable(BaseTable):
    """A table that can be compacted, cleaned up, checked and repaired."""

    __slots__ = ()

    def optimize(self, **settings: "Unpack[CompactSettings]") -> LanceOptimizeBuilder:
        """Describe a compaction, whose tasks run on workers.

        Args:
            **settings: as of :meth:`lancetable.Table.compact`, such as ``target_rows``.
        """
        return LanceOptimizeBuilder(
            self.spark, self.snapshot, parse_options(CompactOptions, settings)
        )

    def vacuum(  # noqa: PLR0913 - each has a default
        self,
        retentionHours: float | None = None,
        *,
        dryRun: bool = True,
        keepLast: int = 1,
        versions: Sequence[int] | None = None,
        unverifiedHours: float | None = None,
        allBranches: bool = False,
        clones: Sequence[str] = (),
        removeDamaged: bool = False,
        filesPerSecond: float | None = None,
    ) -> "DataFrame":
        """Remove old versions, and files that no version needs; a dry run by default.

        Tagged versions, those where branches begin and those in use stay. A stream that is stopped
        for longer than versions are kept cannot go on from where it was.

        Args:
            retentionHours: the age from which on versions go; 14 days when left out.
            dryRun: remove nothing. Look at the result first, then say ``dryRun=False``.
            keepLast: how many of the newest versions stay at least.
            versions: remove exactly these versions instead.
            unverifiedHours: the age from which on files go that no version ever named; 7 days when
                left out. They may belong to a running write.
            allBranches: clean the histories of all branches, not only this one.
            clones: addresses of shallow clones of this table; what they need stays.
            removeDamaged: let versions go that cannot be read.
            filesPerSecond: how many files are removed in a second at most.
        """
        options: CleanupSettings = {
            "keep_last": keepLast,
            "versions": versions,
            "all_branches": allBranches,
            "clones": clones,
            "remove_damaged": removeDamaged,
            "files_per_second": filesPerSecond,
        }
        if retentionHours is not None:
            options["older_than"] = timedelta(hours=retentionHours)
        if unverifiedHours is not None:
            options["unverified_after"] = timedelta(hours=unverifiedHours)
        done = self._core().maintenance.cleanup(dry_run=dryRun, **options)
        return self._one_row(removed(done), REMOVED)

    def check(
        self,
        level: str = "files",
        *,
        allVersions: bool = True,
        journal: str | None = None,
    ) -> "DataFrame":
        """Look for damage; workers look at the data files. No row means that nothing is wrong.

        Args:
            level: ``metadata`` looks at manifests, references and transactions; ``files`` also at
                the presence, size, footer and row count of every file; ``data`` also at every page
                and some values of each index; ``indices`` also at all their values.
            allVersions: look at all versions, not only at the latest.
            journal: a file in which the driver notes what was looked at, to go on from there.

        Returns:
            Each problem with its file and what follows from it.
        """
        found = check(
            self.location,
            level=Level.named(level),
            branch=self.branch,
            all_versions=allVersions,
            journal=journal,
            runner=self._runner(),
        )
        return self.spark.createDataFrame(
            [report_row(FAULTS, one) for one in found.problems], FAULTS
        )

    def repair(
        self,
        level: str = "files",
        *,
        dryRun: bool = True,
        revive: bool = False,
        journal: str | None = None,
    ) -> "DataFrame":
        """Make a version without what is broken; by default report only what it would lose.

        No file is touched: the old versions stay as they are, and can be repaired in another way.

        Args:
            level: how closely to look for damage, as for :meth:`check`.
            dryRun: make no version. Look at the losses first, then say ``dryRun=False``.
            revive: when a deletion file is broken, let the deleted rows of its fragment come back
                instead of losing the fragment.
            journal: as for :meth:`check`.
        """
        plan = plan_repair(
            self.location,
            level=Level.named(level),
            branch=self.branch,
            revive=revive,
            journal=journal,
            runner=self._runner(),
        )
        if not dryRun:
            plan.execute()
        return self._one_row(mended(plan, is_dry_run=dryRun), MENDED)
