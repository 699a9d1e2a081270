"""Compact: rewrite small or heavily deleted fragments into fewer, larger ones.

1. Plan: which fragments go together, from the version that is read; with ``where`` only fragments
   that hold a matching row.
2. Run one task for each group: its live rows go to new fragments.
3. Commit all groups as one Rewrite from the version of the plan. Rows that others deleted or
   updated meanwhile are deleted in the new fragments too; appends do not matter.
4. When others rewrote the same fragments or changed their columns, begin again.
Without a group that is worth it no version is made.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from lancetable.commit.apply.derived_fields import next_fragment_id
from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.loop.rebase_rewrite import Moves
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import ReserveFragments, Rewrite, RewriteGroup
from lancetable.format.manifest import Fragment
from lancetable.fragment.write.progress import Progress, ProgressCallback
from lancetable.fragment.write.writer import remove_fragments
from lancetable.operations.compact.indices import remap_segments
from lancetable.operations.compact.options import CompactOptions, CompactResult
from lancetable.operations.compact.plan import CompactPlan, plan_compaction
from lancetable.operations.compact.write import CompactTask, WrittenGroup, write_group
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.write import keep_or_remove
from lancetable.operations.results import Done, RunOptions
from lancetable.operations.rows.find_rows import find_rows, plan_find
from lancetable.operations.rows.move_rows import target_of
from lancetable.operations.rows.parts import part_of
from lancetable.operations.run.memory import collector_paused
from lancetable.operations.run.runner import Runner, Threads, own_files, run_steps
from lancetable.scan.request import Where, parse_where

Task = TypeVar("Task")
Result = TypeVar("Result")


DEFAULT_OPTIONS = CompactOptions()
DEFAULT_RUN = RunOptions()


def plan_for(
    snapshot: Snapshot,
    where: Where = None,
    options: CompactOptions = DEFAULT_OPTIONS,
    run: RunOptions = DEFAULT_RUN,
) -> CompactPlan:
    """Return what a compaction would do.

    Raises:
        ExpressionError: the predicate cannot be understood or does not fit the columns.
        SchemaError: there is no such column to sort by.
        UnsupportedError: the table's files cannot be written.
    """
    wanted = parse_where(where)
    chosen = None
    if wanted is not None:
        tasks = plan_find(snapshot, wanted)
        found = run_steps(_runner(options, run), find_rows, tasks)
        chosen = frozenset(one.fragment.id for each in found for one in each)
    with collector_paused(len(snapshot.manifest.fragments)):
        return plan_compaction(snapshot, options, chosen)


def compact(
    snapshot: Snapshot,
    where: Where = None,
    options: CompactOptions = DEFAULT_OPTIONS,
    run: RunOptions = DEFAULT_RUN,
) -> Done[CompactResult]:
    """Rewrite small or heavily deleted fragments.

    Raises:
        ExpressionError: the predicate cannot be understood or does not fit the columns.
        ConflictError: others rewrote the same rows each time.
        CommitError: the fragments did not become a version.
    """

    def attempt(latest: Snapshot) -> Done[CompactResult]:
        return run_plan(plan_for(latest, where, options, run), run)

    return repeat_and_cover(snapshot, attempt, run.commit, run.runner)


def run_plan(plan: CompactPlan, run: RunOptions = DEFAULT_RUN) -> Done[CompactResult]:
    """Carry out a plan, and commit it from the version of the plan.

    Raises:
        ConflictError: others rewrote the same rows.
        CommitError: the fragments did not become a version.
    """
    if not plan.groups:
        return Done(plan.snapshot, CompactResult(plan.version, is_new_version=False))
    tasks = plan_tasks(plan)
    target = target_of(plan.snapshot)
    runner: Runner = _runner(plan.options, run)
    if run.progress is not None:
        runner = _Watched(runner, run.progress, [group.rows for group in plan.groups])
    written = run_steps(
        runner, write_group, tasks, lambda group: remove_fragments(group.fragments, target)
    )
    fragments = [one for group in written for one in group.fragments]
    with keep_or_remove(fragments, target):
        made = commit_plan(plan, written, run.commit)
    return Done(made.snapshot, _result(plan, written, made))


def plan_tasks(plan: CompactPlan) -> list[CompactTask]:
    """Return the tasks of a plan, which can run anywhere."""
    return [
        CompactTask(part_of(plan.snapshot, group.fragments), group.rows_per_file, plan.options)
        for group in plan.groups
    ]


def commit_plan(
    plan: CompactPlan, written: Iterable[WrittenGroup], options: CommitOptions
) -> "Landed":
    """Commit what the tasks of a plan wrote, each result in the place of its group.

    Raises:
        CommitError: the fragments did not become a version.
    """
    written = list(written)
    groups = tuple(
        RewriteGroup(group.fragments, tuple(each.fragments))
        for group, each in zip(plan.groups, written, strict=True)
    )
    orders = tuple(each.order for each in written)
    with own_files(plan.snapshot.store) as files:
        operation = Rewrite(groups)
        if plan.indices == "remap":
            groups = _with_reserved_ids(plan.snapshot, groups, options)
            remapped = remap_segments(plan.snapshot, groups, orders)
            files.extend(remapped.paths)
            operation = Rewrite(groups, remapped.indices)
        moves = Moves(orders, plan.indices == "reuse")
        made = commit_operation(plan.snapshot, operation, options, moves=moves)
    # The version is there: an error may not pass for a failure, and what stays costs space only.
    with contextlib.suppress(Exception):
        _remove_unused([one for each in written for one in each.fragments], made.snapshot)
    return Landed(made.snapshot, made.attempts, len(operation.rewritten_indices))


def _with_reserved_ids(
    snapshot: Snapshot, groups: tuple[RewriteGroup, ...], options: CommitOptions
) -> tuple[RewriteGroup, ...]:
    """Return groups whose new fragments have ids; addresses of their rows are known by them.

    That makes a version of its own, which changes nothing else.
    """
    count = sum(len(group.new_fragments) for group in groups)
    if not count:
        return groups
    reserved = commit_operation(snapshot, ReserveFragments(count), options).snapshot
    free = next_fragment_id(reserved.manifest) - count
    named = []
    for old, new in groups:
        fragments = tuple(one._replace(id=free + place) for place, one in enumerate(new))
        free += len(new)
        named.append(RewriteGroup(old, fragments))
    return tuple(named)


class Landed(NamedTuple):
    """The version that was made, how often it was tried, and how many segments were adapted."""

    snapshot: Snapshot
    attempts: int
    indices_remapped: int


def _remove_unused(fragments: Iterable[Fragment], made: Snapshot) -> None:
    """Remove the files of fragments all of whose rows were deleted before they were committed."""
    used = {file.path for fragment in made.manifest.fragments for file in fragment.files}
    unused = [one for one in fragments if used.isdisjoint(file.path for file in one.files)]
    remove_fragments(unused, target_of(made))


def _result(plan: CompactPlan, written: list[WrittenGroup], made: Landed) -> CompactResult:
    fragments = [one for each in written for one in each.fragments]
    return CompactResult(
        version=made.snapshot.version,
        fragments_removed=sum(len(group.fragments) for group in plan.groups),
        fragments_added=len(fragments),
        rows=plan.rows,
        deleted_rows=sum(group.deleted_rows for group in plan.groups),
        bytes_before=sum(group.bytes_ for group in plan.groups),
        bytes_after=sum(file.size or 0 for one in fragments for file in one.files),
        fragments_copied=sum(len(each.fragments) for each in written if each.is_copied),
        indices_remapped=made.indices_remapped,
        attempts=made.attempts,
    )


def foreseen(plan: CompactPlan) -> CompactResult:
    """Return the result that a plan predicts."""
    return CompactResult(
        version=plan.version,
        fragments_removed=sum(len(group.fragments) for group in plan.groups),
        fragments_added=sum(group.new_fragments for group in plan.groups),
        rows=plan.rows,
        deleted_rows=sum(group.deleted_rows for group in plan.groups),
        bytes_before=sum(group.bytes_ for group in plan.groups),
        is_dry_run=True,
        is_new_version=False,
        explanation=plan.explain(),
    )


def _runner(options: CompactOptions, run: RunOptions) -> Runner:
    return Threads(options.tasks_at_a_time) if run.runner is None else run.runner


@dataclass(frozen=True, slots=True)
class _Watched:
    """Runner that reports its progress."""

    inner: Runner
    progress: ProgressCallback
    rows: list[int]

    def map(self, step: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of each task, in order."""
        total, done = sum(self.rows), 0
        self.progress(Progress(0, total))
        for rows, result in zip(self.rows, self.inner.map(step, tasks), strict=False):
            done += rows
            self.progress(Progress(done, total))
            yield result
