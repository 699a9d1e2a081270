"""What keeps a table healthy: fewer fragments, fewer files, no damage."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Unpack

from lancetable.operations.check.model import Level
from lancetable.operations.check.repair import plan_repair
from lancetable.operations.check.run import check
from lancetable.operations.compact.options import CompactOptions, CompactSettings
from lancetable.spark.errors import coded
from lancetable.spark.table.base import HeldTable
from lancetable.spark.table.optimize import LanceOptimizeBuilder
from lancetable.spark.table.reports import FAULTS, MENDED, REMOVED, fault, mended, removed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class UpkeepTable(HeldTable):
    """A table that can be compacted, cleaned up, checked and repaired."""

    __slots__ = ()

    def optimize(self, **settings: Unpack[CompactSettings]) -> LanceOptimizeBuilder:
        """Describe a compaction, whose tasks run on workers.

        Args:
            **settings: as of :meth:`lancetable.Table.compact`, such as ``target_rows``.
        """
        with coded():
            return LanceOptimizeBuilder(self.spark, self.snapshot, CompactOptions(**settings))

    def vacuum(  # noqa: PLR0913 - each has a default
        self,
        retentionHours: float | None = None,  # noqa: N803
        *,
        dryRun: bool = True,  # noqa: N803
        keepLast: int = 1,  # noqa: N803
        versions: Sequence[int] | None = None,
        unverifiedHours: float | None = None,  # noqa: N803
        allBranches: bool = False,  # noqa: N803
        clones: Sequence[str] = (),
        removeDamaged: bool = False,  # noqa: N803
        filesPerSecond: float | None = None,  # noqa: N803
    ) -> "DataFrame":
        """Remove old versions, and files that no version needs; unless told otherwise only tell it.

        Tagged versions, those where branches begin and those in use stay. A stream that is stopped
        for longer than versions are kept cannot go on from where it was.

        Args:
            retentionHours: the age from which on versions go; 14 days when left out.
            dryRun: remove nothing. Look at the result first, then say ``dryRun=False``.
            keepLast: how many of the newest versions stay at least.
            versions: remove exactly these versions instead.
            unverifiedHours: the age from which on files go that no version ever named; 7 days when
                left out. They may belong to a writer at work.
            allBranches: clean the histories of all branches, not only this one.
            clones: addresses of shallow clones of this table; what they need stays.
            removeDamaged: let versions go that cannot be read.
            filesPerSecond: how many files are removed in a second at most.
        """
        with coded():
            done = self._core().cleanup(
                _hours(retentionHours),
                keepLast,
                dry_run=dryRun,
                versions=versions,
                unverified_after=_hours(unverifiedHours),
                all_branches=allBranches,
                clones=clones,
                remove_damaged=removeDamaged,
                files_per_second=filesPerSecond,
            )
        return self._told(removed(done), REMOVED)

    def check(
        self,
        level: str = "files",
        *,
        allVersions: bool = True,  # noqa: N803
        journal: str | None = None,
    ) -> "DataFrame":
        """Look for damage; workers look at the data files. No row means that nothing is wrong.

        Args:
            level: ``metadata`` looks at manifests, references and transactions; ``files`` also at
                the presence, size, footer and row count of every file; ``data`` also at every page.
            allVersions: look at all versions, not only at the latest.
            journal: a file in which the driver notes what was looked at, to go on from there.

        Returns:
            Each problem with its file and what follows from it.
        """
        with coded():
            found = check(
                self.location,
                level=Level.named(level),
                branch=self.branch,
                all_versions=allVersions,
                journal=journal,
                runner=self._runner(),
            )
        return self.spark.createDataFrame([fault(one) for one in found.problems], FAULTS)

    def repair(
        self,
        level: str = "files",
        *,
        dryRun: bool = True,  # noqa: N803
        revive: bool = False,
        journal: str | None = None,
    ) -> "DataFrame":
        """Make a version without what is broken; unless told otherwise only tell what it loses.

        No file is touched: the old versions stay as they are, and can be repaired in another way.

        Args:
            level: how closely to look for damage, as for :meth:`check`.
            dryRun: make no version. Look at the losses first, then say ``dryRun=False``.
            revive: when a deletion file is broken, let the deleted rows of its fragment come back
                instead of losing the fragment.
            journal: as for :meth:`check`.
        """
        with coded():
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
        return self._told(mended(plan, is_dry_run=dryRun), MENDED)


def _hours(number: float | None) -> timedelta | None:
    return None if number is None else timedelta(hours=number)
