"""Maintenance of a table: clean up, check, repair, enable stable row ids."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from lancetable.table.argument_errors import explaining
from lancetable.table.handle import Handle, reporting

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.fragment.write.progress import ProgressCallback
    from lancetable.operations.check.model import CheckResult
    from lancetable.operations.check.repair import RepairPlan
    from lancetable.operations.cleanup.options import CleanupResult
    from lancetable.operations.row_ids import RowIdsResult
    from lancetable.store import TableLocation
    from lancetable.table.settings import CheckSettings, CleanupSettings


@explaining
class Maintenance:
    """Operations that keep a table small and sound."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def cleanup(
        self,
        *,
        dry_run: bool = False,
        progress: "bool | ProgressCallback" = False,
        **options: "Unpack[CleanupSettings]",
    ) -> "CleanupResult":
        """Remove old versions, and files that no version needs. This cannot be undone.

        The latest version, tagged ones, those where branches begin, the one that is open here and
        those with a lease always stay. A file stays while a version of any branch needs it.

        Args:
            dry_run: remove nothing, and return what would be removed.
            progress: called with the number of files removed; True shows a bar.
            **options: fields of :class:`lancetable.CleanupOptions`, such as ``older_than`` and
                ``keep_last``.

        Raises:
            InputError: an option is not valid, or names a version that must stay.
            CorruptError: a version cannot be read, so its files are unknown; nothing was removed.
        """
        from lancetable.operations.cleanup.options import CleanupOptions
        from lancetable.operations.cleanup.run import cleanup
        from lancetable.options import parse_options

        with reporting(progress, "removing files") as callback:
            settled = parse_options(CleanupOptions, {**options, "progress": callback})
            return cleanup(self._handle.snapshot, settled, dry_run=dry_run)

    def check(
        self,
        *,
        progress: "bool | ProgressCallback" = False,
        **options: "Unpack[CheckSettings]",
    ) -> "CheckResult":
        """Look for damage in the versions of this branch, in tags and in branches.

        Args:
            progress: called with the number of versions checked; True shows a bar.
            **options: fields of :class:`lancetable.CheckOptions`: ``level``, ``all_versions`` and
                ``journal``.
        """
        handle = self._handle
        return check_location(handle.location, handle.snapshot.branch, progress, options)

    def repair(
        self, level: str = "files", *, revive: bool = False, journal: str | None = None
    ) -> "RepairPlan":
        """Plan a version without what is damaged; ``execute()`` of the plan commits it.

        The plan lists what would be lost. No file is changed, and the old versions stay.

        Args:
            level: how closely to look for damage, as for :meth:`check`.
            revive: where a deletion file is damaged, restore the deleted rows of its fragment
                instead of losing the fragment.
            journal: as for :meth:`check`.

        Raises:
            CorruptError: no version can be opened.
        """
        from lancetable.operations.check.model import Level
        from lancetable.operations.check.repair import plan_repair

        handle = self._handle
        return plan_repair(
            handle.location,
            level=Level.named(level),
            branch=handle.snapshot.branch,
            revive=revive,
            journal=journal,
        )

    def enable_stable_row_ids(
        self, *, commit: "CommitOptions | str | None" = None
    ) -> "RowIdsResult":
        """Give every row an id that it keeps when it is updated or moved.

        The ids are the present row addresses, so indices and stored addresses stay valid. Older
        versions stay without ids; they can be read and cloned, but no longer restored. Existing
        rows count as created in version 1.

        Raises:
            UnsupportedError: the table has files of version 0.1, or indices that must be updated
                after a compaction first.
            ConflictError: other writers kept changing rows.
        """
        from lancetable.operations.row_ids import enable_stable_row_ids

        return self._handle.change(
            lambda snapshot, options: enable_stable_row_ids(
                snapshot, commit_options=options.commit
            ),
            commit,
        )


def check_location(
    location: "TableLocation",
    branch: str | None,
    progress: "bool | ProgressCallback",
    settings: Mapping[str, object],
) -> "CheckResult":
    """Check the versions of a branch, also of a table that cannot be opened."""
    from lancetable.operations.check.model import CheckOptions, Level
    from lancetable.operations.check.run import check
    from lancetable.options import parse_options

    options = parse_options(CheckOptions, settings)
    with reporting(progress, "checking versions") as callback:
        return check(
            location,
            level=Level.named(options.level),
            branch=branch,
            all_versions=options.all_versions,
            journal=options.journal,
            progress=callback,
        )
