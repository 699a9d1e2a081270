"""Optimize indices: cover new fragments, and merge segments.

========  =========================================================================================
mode      new segments of an index
========  =========================================================================================
append    one for the fragments that no segment describes
auto      the same, merged with the newest segments while they are at most twice as large
merge     one from all segments and the uncovered fragments
rebuild   one from the data of all fragments
========  =========================================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from lancetable.commit.options import CommitOptions
from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import is_system, kind_of
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import quote
from lancetable.index.files import SegmentFiles
from lancetable.index.registry import SCALAR, unusable
from lancetable.operations.index.create import commit_segments, missing
from lancetable.operations.index.segments import (
    SegmentTask,
    build_segment,
    described,
    remove_segment,
)
from lancetable.operations.results import Done, VersionResult
from lancetable.operations.retry import repeat
from lancetable.operations.run.runner import THREADS, Runner, run_steps

OptimizeMode: TypeAlias = Literal["auto", "append", "merge", "rebuild"]
AT_MOST = 2
"""A segment is merged with newer rows when it has at most so many times as many."""


class OptimizeStep(NamedTuple):
    """What is done to one index."""

    name: str
    fragments: frozenset[int]
    """Fragments that are read."""
    merged: tuple[IndexSegment, ...]
    removed: tuple[IndexSegment, ...]
    note: str = ""
    """Why nothing is done."""

    @property
    def is_needed(self) -> bool:
        """True when a segment is written."""
        return bool(self.fragments or self.merged) and not self.note


@dataclass(frozen=True, slots=True)
class OptimizeResult(VersionResult):
    """Result of an optimization or of a dry run."""

    steps: tuple[OptimizeStep, ...] = ()
    bytes: int = 0
    attempts: int = 0
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """Options of an optimization."""

    names: Sequence[str] | None = None
    mode: OptimizeMode = "auto"
    dry_run: bool = False
    memory_bytes: int = 1_000_000_000

    def __post_init__(self) -> None:
        if self.mode not in get_args(OptimizeMode):
            raise InputError(
                f"mode is {self.mode!r}; give one of {', '.join(get_args(OptimizeMode))}"
            )


def optimize_indices(
    snapshot: Snapshot,
    options: OptimizeOptions,
    commit: CommitOptions | None = None,
    runner: Runner = THREADS,
) -> Done[OptimizeResult]:
    """Cover new fragments and merge segments.

    Raises:
        IndexNotFoundError: there is no index of a name.
        CommitError: the segments did not become part of a version.
    """
    settled = commit or CommitOptions()

    def attempt(latest: Snapshot) -> Done[OptimizeResult]:
        steps = plan_optimize(latest, options)
        needed = [step for step in steps if step.is_needed]
        if options.dry_run or not needed:
            result = OptimizeResult(
                latest.version, steps, is_dry_run=options.dry_run, is_new_version=False
            )
            return Done(latest, result)
        memory = max(options.memory_bytes // len(needed), 1)
        tasks = [_task(latest, step, memory) for step in needed]
        made = run_steps(
            runner, build_segment, tasks, lambda segment: remove_segment(latest, segment)
        )
        old = [segment for step in needed for segment in step.removed]
        done = commit_segments(latest, made, old, settled)
        version, size, tries = done.result.version, done.result.bytes, done.result.attempts
        return Done(done.snapshot, OptimizeResult(version, steps, size, tries))

    return repeat(snapshot, attempt, settled)


def plan_optimize(snapshot: Snapshot, options: OptimizeOptions) -> tuple[OptimizeStep, ...]:
    """Return what would be done to each index."""
    by_name: dict[str, list[IndexSegment]] = {}
    for segment in snapshot.indices():
        if not is_system(segment):
            by_name.setdefault(segment.name, []).append(segment)
    for name in options.names or ():
        if name not in by_name:
            raise missing(snapshot, name)
    chosen = by_name if options.names is None else options.names
    reuse = load_reuse(snapshot, snapshot.indices())
    return tuple(
        _step(
            snapshot, name, by_name[name], options.mode, lambda one: described(one, snapshot, reuse)
        )
        for name in chosen
    )


def _step(
    snapshot: Snapshot,
    name: str,
    segments: Sequence[IndexSegment],
    mode: OptimizeMode,
    covered: Callable[[IndexSegment], frozenset[int]],
) -> OptimizeStep:
    for segment in segments:
        reason = unusable(segment)
        if reason is not None or kind_of(segment).name not in SCALAR:
            return OptimizeStep(name, frozenset(), (), (), reason or "its kind is not known")
    rows = {one.id: one.physical_rows for one in snapshot.manifest.fragments}
    known = frozenset().union(*map(covered, segments))
    new = frozenset(rows) - known
    everything = tuple(segments)
    if mode == "rebuild":
        return OptimizeStep(name, frozenset(rows), (), everything)
    if mode == "merge":
        merged = everything if new or len(everything) > 1 else ()
        return OptimizeStep(name, new, merged, merged)
    merged = _small(segments, new, rows, covered) if mode == "auto" and new else ()
    gone = tuple(one for one in segments if new and not covered(one) and one not in merged)
    return OptimizeStep(name, new, merged, (*merged, *gone))


def _small(
    segments: Sequence[IndexSegment],
    new: frozenset[int],
    rows: dict[int, int],
    covered: Callable[[IndexSegment], frozenset[int]],
) -> tuple[IndexSegment, ...]:
    """Return the newest segments that are small beside the new rows."""
    found: list[IndexSegment] = []
    size = sum(rows[id_] for id_ in new)
    for segment in reversed(segments):
        count = sum(rows[id_] for id_ in covered(segment))
        if count > AT_MOST * size:
            break
        if count:
            found.append(segment)
        size += count
    return tuple(found)


def _task(snapshot: Snapshot, step: OptimizeStep, memory_bytes: int) -> SegmentTask:
    segment = step.removed[0] if step.removed else None
    if segment is None:
        segment = next(one for one in snapshot.indices() if one.name == step.name)
    store, folder = snapshot.index_place(segment)
    spec = SCALAR[kind_of(segment).name].spec(SegmentFiles(store, folder, segment))
    column = path_of(snapshot.manifest.schema, segment.fields[0])
    return SegmentTask(snapshot, step.name, column, spec, step.fragments, memory_bytes, step.merged)


def path_of(schema: Schema, field_id: int) -> str:
    """Return the path of a field by its id."""

    def below(fields: Sequence[Field], path: tuple[str, ...]) -> str | None:
        for one in fields:
            here = (*path, quote(one.name))
            found = ".".join(here) if one.id == field_id else below(one.children, here)
            if found is not None:
                return found
        return None

    found = below(schema.fields, ())
    if found is None:
        raise InputError(f"the index is on field {field_id}, which the table does not have")
    return found
