"""Create and drop an index.

1. Check the column, the kind and the name.
2. Build one segment for each group of the chosen fragments, through a runner.
3. Commit all segments at once; those of an index that is replaced go in the same version.
After a conflict the work begins again on the latest version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import CreateIndex
from lancetable.errors import ExistsError, IndexNotFoundError, InputError, SchemaError
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import SYSTEM
from lancetable.format.schema.project import resolve
from lancetable.fragment.write.progress import Progress, ProgressCallback, RunningTotal
from lancetable.index.registry import BUILT
from lancetable.index.specs import Spec, of_column
from lancetable.operations.index.segments import (
    SegmentTask,
    build_segments,
    column_type,
    paths_of,
)
from lancetable.operations.index.train import trained
from lancetable.operations.results import Done, RunOptions, VersionResult, WriteResult
from lancetable.operations.retry import repeat, write_version
from lancetable.operations.rows.parts import part_of
from lancetable.operations.run.runner import own_files
from lancetable.options import check_options, option

LEAST_MEMORY = 1_000_000


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Options of a new index."""

    name: str | None = option(
        None, help="The name of the index; by default that of the column with _idx."
    )
    replace: bool = option(
        False,  # noqa: FBT003 - the default
        help="Replace an index of the same name.",
    )
    train: bool = option(
        True,  # noqa: FBT003 - the default
        help="Build the index; else it covers nothing until it is optimized.",
    )
    fragments: Sequence[int] | None = option(
        None, help="Ids of the fragments to cover; by default all."
    )
    segments: int = option(1, minimum=1, help="How many segments to build in parallel.")
    memory_bytes: int = option(
        1_000_000_000,
        unit="bytes",
        minimum=LEAST_MEMORY,
        help="About how much memory the builds may use together; larger sorts use local files.",
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class IndexResult(VersionResult):
    """Result of a change of an index."""

    name: str = ""
    segments: int = 0
    rows: int = 0
    """Rows that were read from data files."""
    bytes: int = 0
    attempts: int = field(default=1, compare=False)


DEFAULT_OPTIONS = IndexOptions()
DEFAULT_RUN = RunOptions()


def create_index(
    snapshot: Snapshot,
    column: str,
    spec: Spec,
    options: IndexOptions = DEFAULT_OPTIONS,
    run: RunOptions = DEFAULT_RUN,
) -> Done[IndexResult]:
    """Create an index on a column; its progress counts the rows that were read.

    Raises:
        SchemaError: there is no such column, or the kind of index does not take its type.
        InputError: the kind cannot be built, or a fragment does not exist.
        ExistsError: there is an index of that name.
        CommitError: the index did not become part of a version.
    """

    def attempt(latest: Snapshot) -> Done[IndexResult]:
        name, old = _checked(latest, column, spec, options)
        groups = _groups(latest, options)
        memory = max(options.memory_bytes // len(groups), LEAST_MEMORY)
        rows = {one.id: one.live_rows or 0 for one in latest.manifest.fragments}
        read = sum(rows[id_] for ids in groups for id_ in ids)
        callback = summed(run.progress, read)
        of_documents = of_column(spec, resolve(latest.manifest.schema, column)[-1])
        fitted = trained(latest, column, of_documents, frozenset[int]().union(*groups))
        tasks = [
            SegmentTask(
                part_of(latest, (one for one in latest.manifest.fragments if one.id in ids)),
                name,
                column,
                fitted,
                ids,
                memory,
                progress=callback,
            )
            for ids in groups
        ]
        made = build_segments(latest, tasks, run.runner)
        done = commit_segments(latest, made, old, run.commit)
        return Done(done.snapshot, replace(done.result, rows=read))

    return repeat(snapshot, attempt, run.commit)


def commit_segments(
    latest: Snapshot,
    made: Sequence[IndexSegment],
    old: Sequence[IndexSegment],
    options: CommitOptions,
) -> Done[IndexResult]:
    """Commit new segments in place of old ones; after a proven failure their files are removed.

    Raises:
        CommitError: they did not become part of a version.
    """
    with own_files(latest.store) as files:
        files.extend(path for segment in made for path in paths_of(segment))
        done = commit_operation(latest, CreateIndex(tuple(made), tuple(old)), options)
    size = sum(file.size for segment in made for file in segment.files)
    names = ", ".join(sorted({segment.name for segment in made}))
    result = IndexResult(
        done.snapshot.version, names, len(made), bytes=size, attempts=done.attempts
    )
    return Done(done.snapshot, result)


def summed(progress: ProgressCallback | None, total: int) -> ProgressCallback | None:
    """Return a callback for tasks side by side, which reports all that they read of a total."""
    if progress is None:
        return None
    callback = RunningTotal(progress, total)
    callback(Progress())
    return callback


def drop_index(
    snapshot: Snapshot, name: str, commit: CommitOptions | None = None
) -> Done[WriteResult]:
    """Drop an index; its files stay until a cleanup.

    Raises:
        IndexNotFoundError: there is no index of that name.
        CommitError: it was not dropped.
    """

    def describe(latest: Snapshot) -> CreateIndex:
        found = tuple(one for one in latest.indices() if one.name == name)
        if not found or name.startswith(SYSTEM):
            raise missing(latest, name)
        return CreateIndex((), found)

    return write_version(snapshot, describe, commit or CommitOptions())


def missing(snapshot: Snapshot, name: str) -> IndexNotFoundError:
    """Return the error for an index that does not exist."""
    names = sorted({one.name for one in snapshot.indices() if not one.name.startswith(SYSTEM)})
    return IndexNotFoundError(
        f"there is no index {name!r}; the table has {', '.join(names) or 'none'}"
    )


def _checked(
    snapshot: Snapshot, column: str, spec: Spec, options: IndexOptions
) -> tuple[str, tuple[IndexSegment, ...]]:
    """Return the name of a new index, and the segments that it replaces."""
    kind = BUILT.get(spec.kind)
    if kind is None:
        raise InputError(
            f"indices of kind {spec.kind!r} cannot be built; use one of {', '.join(BUILT)}"
        )
    type_ = column_type(snapshot, column)
    reason = kind.refuses(type_)
    if reason is not None:
        raise SchemaError(
            f"column {column!r} of type {type_} cannot have an index of kind {kind.name!r}: "
            f"{reason}"
        )
    name = f"{column}_idx" if options.name is None else options.name
    if not name or name.startswith(SYSTEM):
        raise InputError(f"name is {name!r}; give one that does not begin with {SYSTEM}")
    old = tuple(one for one in snapshot.indices() if one.name == name)
    if old and not options.replace:
        raise ExistsError(f"there is an index {name!r} already; use replace=True or another name")
    return name, old


def _groups(snapshot: Snapshot, options: IndexOptions) -> list[frozenset[int]]:
    """Divide the chosen fragments into groups of about the same number of rows."""
    if not options.train:
        return [frozenset()]
    fragments = snapshot.manifest.fragments
    if options.fragments is not None:
        unknown = sorted(set(options.fragments) - {one.id for one in fragments})
        if unknown:
            raise InputError(f"fragments names {unknown[0]}, which the table does not have")
        chosen = frozenset(options.fragments)
        fragments = [one for one in fragments if one.id in chosen]
    count = max(min(options.segments, len(fragments)), 1)
    total = max(sum(one.physical_rows for one in fragments), 1)
    groups: list[set[int]] = [set() for _ in range(count)]
    before = 0
    for one in fragments:
        groups[min(before * count // total, count - 1)].add(one.id)
        before += one.physical_rows
    return [frozenset(ids) for ids in groups if ids] or [frozenset()]
