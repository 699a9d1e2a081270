"""How the fragments of a table are written anew: fewer of them, without deleted rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from lancetable.table.argument_errors import explaining
from lancetable.table.writing import WritingTable, commit_options

if TYPE_CHECKING:
    from lancetable.commit.options import CommitOptions
    from lancetable.operations.compact.options import CompactResult, CompactSettings, Progress
    from lancetable.operations.run.runner import Runner
    from lancetable.scan.request import Where


@explaining
class CompactingTable(WritingTable):
    """A table whose fragments can be compacted."""

    __slots__ = ()

    def compact(  # noqa: PLR0913 - each has a default
        self,
        *,
        where: "Where" = None,
        dry_run: bool = False,
        progress: "Progress | None" = None,
        runner: "Runner | None" = None,
        commit: "CommitOptions | None" = None,
        commit_message: str | None = None,
        properties: Mapping[str, str] | None = None,
        **settings: "Unpack[CompactSettings]",
    ) -> "CompactResult":
        """Join small fragments and give back the place of deleted rows; the rows stay the same.

        Others may go on writing: rows that they delete or update meanwhile are deleted in the new
        fragments too. Only when they rewrite the same fragments or change columns is the work done
        again. Without anything worth doing there is no new version.

        Args:
            where: take only fragments that hold a row for which this predicate is true.
            dry_run: plan only, and tell what would be done.
            progress: is told how many rows are done, and how many there are.
            runner: where the tasks run; threads of this process when it is left out.
            commit: how long to try.
            commit_message: a note for the history.
            properties: further notes for the history.
            **settings: ``target_rows``, ``target_bytes``, ``deleted_share``: which fragments are
                worth it; ``max_bytes_per_file``: about the most bytes of a new data file;
                ``sort_by``, ``z_order_by``: columns to order the rows by;
                ``indices``: ``reuse``, ``remap`` or ``uncover``; ``memory_bytes``, ``threads``:
                what the work may take; ``copy_pages``: whether encoded pages may be copied.

        Raises:
            InputError: a setting makes no sense.
            ExpressionError: the predicate cannot be understood or does not fit the columns.
            SchemaError: there is no such column to sort by.
            ConflictError: others rewrote the same rows each time.
        """
        from lancetable.operations.compact.options import compact_options
        from lancetable.operations.compact.run import CompactRun, compact, foreseen, plan_for

        options = compact_options(settings)
        run = CompactRun(runner, commit_options(commit, commit_message, properties), progress)
        if dry_run:
            return foreseen(plan_for(self._snapshot, where, options, run))
        done = compact(self._snapshot, where, options, run)
        self._move(done.snapshot)
        return done.result

    def explain_compact(
        self, *, where: "Where" = None, **settings: "Unpack[CompactSettings]"
    ) -> str:
        """Return what :meth:`compact` would do, one line for each group of fragments.

        Args:
            where: as for :meth:`compact`.
            **settings: as for :meth:`compact`.
        """
        from lancetable.operations.compact.options import compact_options
        from lancetable.operations.compact.run import plan_for

        return plan_for(self._snapshot, where, compact_options(settings)).explain()
