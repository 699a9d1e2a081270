"""Optimize indices: cover new fragments, and merge segments.

========  =========================================================================================
mode      new segments of an index
========  =========================================================================================
append    one for the fragments that no segment covers
auto      the same, merged with small segments; without new fragments small segments are merged
merge     one from all segments and the uncovered fragments
rebuild   one from the data of all fragments
========  =========================================================================================

Answers of other readers hold stale rows when a new segment covers rows that an older one still has
with their former values. Where that may be, the older segments are merged, also in mode ``append``.

``auto`` goes through the segments from the smallest on, and merges as long as the next one has at
most twice as many rows as those before it together with the new rows. So an index keeps few
segments, each row is written again only while its segment doubles, and large ones stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError, FileNotFoundInStoreError, UnsupportedError
from lancetable.expression.analysis.parameters import unsupported_tokenizer
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import is_system, kind_of
from lancetable.fragment.write.progress import ProgressCallback
from lancetable.index.files import SegmentFiles
from lancetable.index.registry import BUILT
from lancetable.index.specs import FullText, Spec
from lancetable.operations.index.create import (
    DEFAULT_RUN,
    LEAST_MEMORY,
    IndexResult,
    commit_segments,
    missing,
    summed,
)
from lancetable.operations.index.describe import SegmentInfo, describe_indices, describe_segments
from lancetable.operations.index.segments import (
    SegmentTask,
    build_segments,
    column_of,
)
from lancetable.operations.index.stale_rows import may_be_stale
from lancetable.operations.index.train import trained, untrained
from lancetable.operations.results import Done, RunOptions, VersionResult
from lancetable.operations.retry import repeat
from lancetable.options import check_options, option

OptimizeMode: TypeAlias = Literal["auto", "append", "merge", "rebuild"]
AT_MOST = 2
"""A segment is merged with smaller ones when it has at most so many times as many rows."""


@dataclass(frozen=True, slots=True)
class OptimizeOptions:
    """Options of an optimization of indices."""

    mode: OptimizeMode = option(
        "auto",
        help="append covers new fragments with a segment of their own, auto also merges small "
        "segments, merge makes one segment of all, rebuild reads all data again.",
    )
    memory_bytes: int = option(
        1_000_000_000,
        unit="bytes",
        minimum=LEAST_MEMORY,
        help="About how much memory the builds may use together; larger sorts use local files.",
    )

    def __post_init__(self) -> None:
        check_options(self)


class OptimizeStep(NamedTuple):
    """What is done to one index, and why."""

    name: str
    reason: str
    fragments: frozenset[int] = frozenset()
    """Fragments whose rows are read."""
    rows: int = 0
    """How many rows are read."""
    merged: tuple[IndexSegment, ...] = ()
    """Segments that are merged with what is read."""
    rows_merged: int = 0
    removed: tuple[IndexSegment, ...] = ()
    """Segments that the new one replaces, those that are merged among them."""

    @property
    def is_needed(self) -> bool:
        """True when a segment is written."""
        return bool(self.fragments or self.merged)


@dataclass(frozen=True, slots=True)
class OptimizeResult(VersionResult):
    """Result of an optimization or of a dry run; without work there is no new version."""

    steps: tuple[OptimizeStep, ...] = field(default=(), repr=False)
    segments_added: int = 0
    segments_removed: int = 0
    rows: int = 0
    """Rows that were read from data files."""
    rows_merged: int = 0
    """Rows of the segments that were merged."""
    bytes: int = 0
    attempts: int = 0
    is_dry_run: bool = False

    def explain(self) -> str:
        """Return what is done to each index and why, one line for each."""
        return "\n".join(f"{step.name}: {step.reason}" for step in self.steps)


DEFAULT_OPTIONS = OptimizeOptions()


def optimize_indices(
    snapshot: Snapshot,
    names: Sequence[str] | None = None,
    options: OptimizeOptions = DEFAULT_OPTIONS,
    run: RunOptions = DEFAULT_RUN,
) -> Done[OptimizeResult]:
    """Cover new fragments and merge segments of some indices, by default of all.

    Raises:
        IndexNotFoundError: there is no index of a name.
        CommitError: the segments did not become part of a version.
    """

    def attempt(latest: Snapshot) -> Done[OptimizeResult]:
        steps = plan_optimize(latest, names, options)
        needed = [step for step in steps if step.is_needed]
        if not needed:
            return Done(latest, OptimizeResult(latest.version, steps, is_new_version=False))
        memory = max(options.memory_bytes // len(needed), LEAST_MEMORY)
        callback = summed(run.progress, sum(step.rows for step in needed))
        tasks = [_task(latest, step, memory, callback) for step in needed]
        made = build_segments(latest, tasks, run.runner)
        old = [segment for step in needed for segment in step.removed]
        done = commit_segments(latest, made, old, run.commit)
        return Done(done.snapshot, _result(steps, done.result.version, done.result))

    return repeat(snapshot, attempt, run.commit)


def foresee_optimize(
    snapshot: Snapshot,
    names: Sequence[str] | None = None,
    options: OptimizeOptions = DEFAULT_OPTIONS,
) -> OptimizeResult:
    """Return what an optimization would do.

    Raises:
        IndexNotFoundError: there is no index of a name.
    """
    steps = plan_optimize(snapshot, names, options)
    return _result(steps, snapshot.version, None)


def _result(
    steps: tuple[OptimizeStep, ...], version: int, done: IndexResult | None
) -> OptimizeResult:
    needed = [step for step in steps if step.is_needed]
    return OptimizeResult(
        version,
        steps,
        segments_added=len(needed),
        segments_removed=sum(len(step.removed) for step in needed),
        rows=sum(step.rows for step in needed),
        rows_merged=sum(step.rows_merged for step in needed),
        bytes=0 if done is None else done.bytes,
        attempts=0 if done is None else done.attempts,
        is_dry_run=done is None,
        is_new_version=done is not None,
    )


def plan_optimize(
    snapshot: Snapshot, names: Sequence[str] | None, options: OptimizeOptions
) -> tuple[OptimizeStep, ...]:
    """Return what would be done to each of some indices, by default of all.

    Raises:
        IndexNotFoundError: there is no index of a name.
    """
    by_name: dict[str, list[SegmentInfo]] = {}
    for one in describe_segments(snapshot):
        if not is_system(one.segment):
            by_name.setdefault(one.segment.name, []).append(one)
    chosen = dict.fromkeys(by_name if names is None else names)
    for name in chosen:
        if name not in by_name:
            raise missing(snapshot, name)
    rows = {one.id: one.live_rows or 0 for one in snapshot.manifest.fragments}
    return tuple(_step(snapshot, by_name[name], rows, options.mode) for name in chosen)


def uncovered_indices(snapshot: Snapshot, rows: int) -> list[str]:
    """Return the names of indices that are used and leave more rows uncovered than given."""
    return [
        name
        for name, info in describe_indices(snapshot).items()
        if not info.is_system and info.unusable is None and info.rows_uncovered > rows
    ]


def _step(
    snapshot: Snapshot,
    infos: Sequence[SegmentInfo],
    rows: Mapping[int, int],
    mode: OptimizeMode,
) -> OptimizeStep:
    """Return what is done to one index."""
    name = infos[0].segment.name
    refused = next((one.unusable for one in infos if one.unusable is not None), None)
    refused = refused or _lacking(snapshot, infos[0].segment)
    if refused is not None:
        return OptimizeStep(name, f"left as it is: {refused}")
    segments = [one.segment for one in infos]
    try:
        _spec(snapshot, segments)
    except UnsupportedError as error:
        return OptimizeStep(name, f"left as it is: {error}")
    except (CorruptError, FileNotFoundInStoreError) as error:
        if mode != "rebuild":
            return OptimizeStep(name, f"left as it is: {error}")
    known = {one.segment.uuid: one.covered for one in infos}
    counts = {one.uuid: sum(rows[id_] for id_ in known[one.uuid]) for one in segments}
    new = frozenset(rows).difference(*(known[one.uuid] for one in segments))
    size = sum(rows[id_] for id_ in new)
    everything = tuple(segments)
    if mode == "rebuild":
        total = sum(rows.values())
        return OptimizeStep(
            name,
            f"built again from all {_many(len(rows), 'fragment')} with {total:,} rows",
            frozenset(rows),
            total,
            removed=everything,
        )
    merged = _merged(segments, counts, size, mode=mode, has_new=bool(new))
    stale = may_be_stale(snapshot, segments, known, new) if new else ()
    merged = tuple(one for one in segments if known[one.uuid] and (one in merged or one in stale))
    gone = tuple(one for one in segments if (new or merged) and not known[one.uuid])
    removed = (*merged, *(one for one in gone if one not in merged))
    total = sum(counts[one.uuid] for one in merged)
    reason = _reason(len(segments), (len(new), size), (len(merged), total))
    reason += ", because rows were updated" if merged and stale and mode == "append" else ""
    return OptimizeStep(name, reason, new, size, merged, total, removed)


def _merged(
    segments: Sequence[IndexSegment],
    counts: Mapping[str, int],
    size: int,
    *,
    mode: OptimizeMode,
    has_new: bool,
) -> tuple[IndexSegment, ...]:
    """Return the segments to merge with ``size`` new rows, or with each other."""
    if mode == "append":
        return ()
    if mode == "merge":
        return tuple(segments) if has_new or len(segments) > 1 else ()
    found: list[IndexSegment] = []
    for segment in sorted(segments, key=lambda one: counts[one.uuid]):
        count = counts[segment.uuid]
        if not count:
            continue
        if (found or has_new) and count > AT_MOST * size:
            break
        found.append(segment)
        size += count
    return tuple(found) if has_new or len(found) > 1 else ()


def _reason(segments: int, new: tuple[int, int], merged: tuple[int, int]) -> str:
    """Return in words what is done; the pairs count fragments or segments, and their rows."""
    fresh = f"{_many(new[0], 'uncovered fragment')} with {new[1]:,} rows"
    older = f"{_many(merged[0], 'segment')} with {merged[1]:,} rows"
    if new[0] and merged[0]:
        return f"{fresh} and {older} become one segment"
    if new[0]:
        return f"{fresh} get a segment of their own beside {_many(segments, 'segment')}"
    if merged[0]:
        return f"{older} become one"
    return f"nothing to do: {_many(segments, 'segment')} cover all fragments"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _task(
    snapshot: Snapshot, step: OptimizeStep, memory_bytes: int, progress: ProgressCallback | None
) -> SegmentTask:
    first = next(one for one in (*step.removed, *snapshot.indices()) if one.name == step.name)
    segments = [one for one in snapshot.indices() if one.name == step.name]
    spec, column = _spec(snapshot, segments), column_of(snapshot, first)
    if not step.merged and len(step.removed) == len(segments):
        spec = trained(snapshot, column, untrained(spec), step.fragments)
    return SegmentTask(
        snapshot, step.name, column, spec, step.fragments, memory_bytes, step.merged, progress
    )


def _lacking(snapshot: Snapshot, segment: IndexSegment) -> str | None:
    """Return why new texts cannot be analysed as those of a full-text index were."""
    if kind_of(segment).name != FullText.kind:
        return None
    try:
        spec = _spec(snapshot, [segment])
    except (CorruptError, FileNotFoundInStoreError):
        return None
    if isinstance(spec, FullText) and not spec.is_supported:
        return unsupported_tokenizer(spec)
    return None


def _spec(snapshot: Snapshot, segments: Sequence[IndexSegment]) -> Spec:
    """Return the parameters of an index; a segment whose files are damaged is passed over.

    Raises:
        UnsupportedError: this release does not build its kind.
    """
    last = len(segments) - 1
    for number, one in enumerate(segments):
        files = SegmentFiles(*snapshot.index_place(one), one)
        try:
            return BUILT[kind_of(one).name].spec(files)
        except (CorruptError, FileNotFoundInStoreError):
            if number == last:
                raise
    raise AssertionError("an index has a segment")
