"""What keeps a table healthy: removing what nobody needs, finding damage, holding versions."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lancetable.table.argument_errors import explaining
from lancetable.table.reading import ReadingTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta

    from lancetable.operations.check.model import CheckResult
    from lancetable.operations.check.model import Progress as CheckProgress
    from lancetable.operations.check.repair import RepairPlan
    from lancetable.operations.cleanup.options import CleanupResult, Progress


@explaining
class UpkeepTable(ReadingTable):
    """A table that can be cleaned up, checked and repaired."""

    __slots__ = ()

    def cleanup(  # noqa: PLR0913 - each has a default
        self,
        older_than: "timedelta | None" = None,
        keep_last: int = 1,
        *,
        dry_run: bool = False,
        versions: "Sequence[int] | None" = None,
        unverified_after: "timedelta | None" = None,
        all_branches: bool = False,
        clones: "Sequence[str]" = (),
        remove_damaged: bool = False,
        files_per_second: float | None = None,
        progress: "Progress | None" = None,
    ) -> "CleanupResult":
        """Remove old versions, and files that no version needs. This cannot be undone.

        A version goes when it is older than ``older_than`` and not one of the last ``keep_last``.
        The latest version, tagged ones, those where branches begin, the one that is open here and
        those that somebody at work holds a lease on always stay. A file goes when no version that
        stays, of any branch, needs it.

        Args:
            older_than: the age from which on versions go; 14 days when left out.
            keep_last: how many of the newest versions stay at least.
            dry_run: remove nothing, only tell what would be removed.
            versions: remove exactly these versions instead.
            unverified_after: the age from which on files go that no version ever named; 7 days
                when left out. They may belong to a writer at work.
            all_branches: clean the histories of all branches, not only the one that is open.
            clones: addresses of shallow clones of this table; what they need stays.
            remove_damaged: let versions go that cannot be read, such as those that a repair has
                left behind.
            files_per_second: how many files are removed in a second at most.
            progress: called with the number of files removed, and of all to be removed.

        Raises:
            InputError: a version is named that must stay, such as a tagged one.
            CorruptError: a version cannot be read, so that nobody knows what it needs; nothing
                was removed.
        """
        from lancetable.operations.cleanup.options import CleanupOptions
        from lancetable.operations.cleanup.run import cleanup

        given = {"older_than": older_than, "unverified_after": unverified_after}
        options = CleanupOptions(
            **{name: age for name, age in given.items() if age is not None},
            keep_last=keep_last,
            versions=None if versions is None else tuple(versions),
            all_branches=all_branches,
            clones=tuple(clones),
            remove_damaged=remove_damaged,
            files_per_second=files_per_second,
            progress=progress,
        )
        return cleanup(self._snapshot, options, dry_run=dry_run)

    def check(
        self,
        level: str = "files",
        *,
        all_versions: bool = True,
        journal: str | None = None,
        progress: "CheckProgress | None" = None,
    ) -> "CheckResult":
        """Look for damage in the versions of this branch, in tags and in branches.

        Args:
            level: ``metadata`` looks at manifests, references and transactions; ``files`` also at
                the presence, size, footer and row count of every file; ``data`` also at every page,
                and at nulls in columns that must have none.
            all_versions: look at all versions, not only at the latest.
            journal: a file in which the check notes what it has looked at. A check that was stopped
                goes on from there.
            progress: called with the number of versions looked at, and of all.

        Returns:
            Each problem with its file and what follows from it.
        """
        from lancetable.operations.check.model import Level
        from lancetable.operations.check.run import check

        return check(
            self._location,
            level=Level.named(level),
            branch=self.branch,
            all_versions=all_versions,
            journal=journal,
            progress=progress,
        )

    def repair(
        self, level: str = "files", *, revive: bool = False, journal: str | None = None
    ) -> "RepairPlan":
        """Plan a version without what is broken; ``execute()`` of the plan commits it.

        The plan says what would be lost. No file is touched: the old versions stay as they are,
        and with another choice can be repaired again.

        Args:
            level: how closely to look for damage, as for :meth:`check`.
            revive: when a deletion file is broken, let the deleted rows of its fragment come back
                instead of losing the fragment.
            journal: as for :meth:`check`.

        Raises:
            CorruptError: no version can be opened at all.
        """
        from lancetable.operations.check.model import Level
        from lancetable.operations.check.repair import plan_repair

        return plan_repair(
            self._location,
            level=Level.named(level),
            branch=self.branch,
            revive=revive,
            journal=journal,
        )

    @contextmanager
    def hold(self, *, seconds: int | None = None) -> "Iterator[None]":
        """Keep the files of this version from being cleaned up while a ``with`` block runs.

        Long scans do so by themselves. ``seconds`` is how long the version stays protected after
        this process exited without releasing its lease; 120 when left out.

        Raises:
            StoreError: the lease cannot be written, so the version is not protected.
        """
        from lancetable.commit.leases import reading

        with reading(self._snapshot.store, self.version, seconds=seconds) as hold:
            hold.require()
            yield
