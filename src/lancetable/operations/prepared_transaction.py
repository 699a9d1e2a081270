"""Prepare a change now and make it a version later, perhaps in another process.

A delete, an update or a merge:

1. Run the recipe as usual; where it would commit, record the operation instead.
2. Hand the transaction over; it is a plain value that can be pickled.
3. Commit it on top of the version that the recipe read, with the usual conflict rules.
The new files stay when a commit fails, so that it can be tried again.

New rows:

1. Fit the rows to the columns of the table and write them as new fragments, which no version names.
2. Hand the fragments over; they are plain values that can be pickled.
3. Commit the fragments of one or more such writes as one Append or Overwrite.

Files of what is never committed are removed by a cleanup, by their age.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.loop.newer_versions import removed_and_made_again
from lancetable.commit.loop.rebase import Rows
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions, CommitResult
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Append, Operation, Overwrite
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, InputError, VersionNotFoundError
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.names import data_path
from lancetable.format.schema.model import Schema
from lancetable.fragment.write.writer import DEFAULT_WRITE, WriteOptions
from lancetable.operations.cleanup.references import names_of
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.write import (
    check_files_there,
    keep_or_remove,
    pending_rows,
)
from lancetable.operations.results import (
    CastNote,
    ChangeOptions,
    DeleteResult,
    Done,
    MergeResult,
    UpdateResult,
    WriteResult,
)
from lancetable.operations.run.runner import THREADS, Runner

Result = TypeVar("Result", DeleteResult, UpdateResult, MergeResult)
ResultT_co = TypeVar("ResultT_co", DeleteResult, UpdateResult, MergeResult, covariant=True)


class Changed(Protocol[ResultT_co]):
    """The version after a change, and its result."""

    @property
    def snapshot(self) -> Snapshot:
        """The version."""
        ...

    @property
    def result(self) -> ResultT_co:
        """The result of the change."""
        ...


class BaseVersion(NamedTuple):
    """The version that a transaction builds on; a table made again has none that is equal."""

    version: int
    timestamp: datetime | None
    transaction_file: str

    @classmethod
    def of(cls, snapshot: Snapshot) -> "BaseVersion":
        """Return what identifies a version."""
        manifest = snapshot.manifest
        return cls(manifest.version, manifest.timestamp, manifest.transaction_file)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTransaction(Generic[Result]):
    """A change whose files are complete, and which is not a version yet.

    ``Table.commit_prepared`` commits it. It can be pickled and committed by another process.
    """

    root: str
    """The folder of the table, or of its branch, that the files are in."""
    base: BaseVersion
    result: Result
    """The counts of the change; ``version`` is the version that was read."""
    operation: Operation | None = field(repr=False)
    """None when there is nothing to change."""
    affected: Mapping[int, Rows] | None = field(repr=False)
    """The rows that the change removes, by fragment."""
    properties: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None

    @property
    def read_version(self) -> int:
        """The version that the change builds on."""
        return self.base.version

    @property
    def operation_name(self) -> str | None:
        """The specification's name of the operation; None when there is nothing to change."""
        return None if self.operation is None else self.operation.name


class Committed(NamedTuple, Generic[Result]):
    """The version of a prepared transaction, and its result."""

    snapshot: Snapshot
    result: Result


@dataclass(slots=True)
class _Recorder:
    """Takes the place of a commit: keeps the operation and makes no version."""

    operation: Operation | None = None
    affected: Mapping[int, Rows] | None = None

    def __call__(
        self,
        snapshot: Snapshot,
        operation: Operation,
        options: CommitOptions = DEFAULT_COMMIT,
        *,
        affected: Mapping[int, Rows] | None = None,
    ) -> CommitResult:
        del options
        self.operation, self.affected = operation, affected
        return CommitResult(snapshot, 0)


def prepare_transaction(
    options: ChangeOptions, change: Callable[[ChangeOptions], Changed[Result]]
) -> PreparedTransaction[Result]:
    """Carry a change out without its commit.

    The message and the properties of the options are kept for the commit.

    Raises:
        InputError: a detached version is requested.
        LanceTableError: as the change itself.
    """
    _refuse_detached(options.commit)
    recorder = _Recorder()
    done = change(replace(options, make_version=recorder))
    return PreparedTransaction(
        done.snapshot.store.root,
        BaseVersion.of(done.snapshot),
        replace(done.result, attempts=0, is_new_version=False),
        recorder.operation,
        recorder.affected,
        dict(options.commit.properties),
        options.commit.message,
    )


def commit_prepared(
    snapshot: Snapshot,
    prepared: PreparedTransaction[Result],
    commit: CommitOptions = DEFAULT_COMMIT,
) -> Committed[Result]:
    """Make a prepared transaction the next version of its table.

    Its files stay when this fails.

    Raises:
        InputError: it belongs to another table, or is committed already.
        ConflictError: other writers changed what it builds on, or its files were cleaned away.
        CommitError: it did not become a version.
    """
    _refuse_detached(commit)
    if prepared.root != snapshot.store.root:
        raise InputError(
            f"the transaction was prepared for {prepared.root}, not for {snapshot.store.root}"
        )
    operation = prepared.operation
    if operation is None:
        return Committed(snapshot, replace(prepared.result, version=snapshot.version))
    base = _base(snapshot, prepared)
    files = _new_files(base, operation)
    message = prepared.message if commit.message is None else commit.message
    noted = {**prepared.properties, **commit.properties}
    options = replace(commit, message=message, properties=noted)

    def attempt(read: Snapshot) -> Committed[Result]:
        _refuse_committed(load(read.location, branch=read.branch), files)
        check_files_there([(read.store, path) for path in sorted(files)], "the transaction")
        made = commit_operation(read, operation, options, affected=prepared.affected)
        result = replace(
            prepared.result,
            version=made.snapshot.version,
            attempts=made.attempts,
            is_new_version=True,
        )
        return Committed(made.snapshot, result)

    # The work cannot be done again on a later version, so there is one attempt.
    return repeat_and_cover(base, attempt, replace(options, attempts=1))


def _refuse_detached(commit: CommitOptions) -> None:
    if commit.detached:
        raise InputError(
            "detached is True, but a prepared transaction becomes a version of the history; leave "
            "it out, or make the change without preparing it"
        )


def _base(snapshot: Snapshot, prepared: PreparedTransaction[Result]) -> Snapshot:
    """Load the version that a transaction builds on."""
    version = prepared.read_version
    if BaseVersion.of(snapshot) == prepared.base:
        return snapshot
    try:
        base = load(snapshot.location, version=version, branch=snapshot.branch)
    except VersionNotFoundError:
        raise ConflictError(
            f"version {version}, which the transaction builds on, was cleaned away; prepare the "
            "transaction again",
            retryable=True,
        ) from None
    if BaseVersion.of(base) != prepared.base:
        raise removed_and_made_again(base)
    return base


def _new_files(base: Snapshot, operation: Operation) -> frozenset[str]:
    """Return the paths of the files that an operation adds to the version it builds on."""
    made: set[str] = set()
    for fragments in operation.written or ():
        made |= _paths(fragments)
    return frozenset(made - _paths(base.manifest.fragments))


def _paths(fragments: Sequence[Fragment]) -> set[str]:
    """Return the paths of the files of fragments that lie below the table itself."""
    names = names_of(fragments)
    data = {data_path(path) for path, base_id in names.data if base_id is None}
    return data.union(path for path, base_id in names.deletions if base_id is None)


def _refuse_committed(latest: Snapshot, files: frozenset[str]) -> None:
    """Check that the latest version does not name the files; the conflict rules find the rest."""
    known = files & _paths(latest.manifest.fragments)
    if known:
        raise InputError(
            f"the transaction is part of version {latest.version} already, which has its file "
            f"{min(known)!r}; commit each prepared transaction once"
        )


@dataclass(frozen=True, slots=True)
class NewFragments:
    """Fragments whose files are complete, and which no version names yet."""

    root: str
    """The folder of the table, or of its branch, that the files are in."""
    fragments: tuple[Fragment, ...]
    schema: Schema
    """The columns that the files hold."""
    casts: tuple[CastNote, ...] = ()
    """Columns whose values were stored as another type, without loss."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(fragment.physical_rows for fragment in self.fragments)


def write_new_fragments(
    snapshot: Snapshot,
    data: object,
    *,
    write: WriteOptions = DEFAULT_WRITE,
    runner: Runner = THREADS,
) -> NewFragments:
    """Write rows as fragments of a table that no version names.

    Raises:
        SchemaError: the columns do not fit the table.
        InputError: a value does not fit, or the data is of no kind that holds rows.
    """
    pending = pending_rows(snapshot, data, write, runner)
    with keep_or_remove(pending.fragments, pending.target):
        fitted = pending.write(snapshot.manifest.schema)
    return NewFragments(snapshot.store.root, tuple(pending.fragments), fitted.schema, fitted.casts)


def commit_new_fragments(
    snapshot: Snapshot,
    parts: Sequence[NewFragments],
    *,
    overwrite: bool = False,
    commit: CommitOptions = DEFAULT_COMMIT,
) -> Done[WriteResult]:
    """Make fragments that were written before the next version of their table.

    Their files stay when this fails, so that it can be tried again.

    Raises:
        InputError: fragments belong to another table, are given twice, or are committed already.
        ConflictError: the columns of the table are not those the fragments were written for, or a
            file of theirs is missing.
        CommitError: they did not become a version.
    """
    for part in parts:
        if part.root != snapshot.store.root:
            raise InputError(
                f"the fragments were written for {part.root}, not for {snapshot.store.root}"
            )
    fragments = tuple(fragment for part in parts for fragment in part.fragments)
    rows = sum(part.rows for part in parts)
    casts = tuple(dict.fromkeys(note for part in parts for note in part.casts))
    _check_there(snapshot, fragments)

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        manifest = latest.manifest
        _refuse_known_files(fragments, latest)
        if not all(has_columns(manifest.schema, part.schema) for part in parts):
            raise ConflictError(
                "the columns of the table changed after the fragments were written; write the rows "
                "again"
            )
        operation = Overwrite(fragments, manifest.schema) if overwrite else Append(fragments)
        made = commit_operation(latest, operation, commit)
        return Done(made.snapshot, WriteResult(made.snapshot.version, rows, made.attempts, casts))

    return repeat_and_cover(snapshot, attempt, commit)


def _check_there(snapshot: Snapshot, fragments: Sequence[Fragment]) -> None:
    """Check that no file of the fragments was removed; the latest version knows every base."""
    files = [file for fragment in fragments for file in fragment.files]
    known = {None, *(base.id for base in snapshot.manifest.base_paths)}
    if not known.issuperset(file.base_id for file in files):
        snapshot = load(snapshot.location, branch=snapshot.branch)
    check_files_there([snapshot.data_file_place(file) for file in files], "the fragments")


def _refuse_known_files(fragments: Sequence[Fragment], latest: Snapshot) -> None:
    """Check that no row would be there twice."""
    known = {file.path for one in latest.manifest.fragments for file in one.files}
    for fragment in fragments:
        for file in fragment.files:
            if file.path in known:
                raise InputError(
                    f"the fragment of data file {file.path!r} is given twice or is part of version "
                    f"{latest.version} already; commit each fragment once"
                )
            known.add(file.path)


def has_columns(now: Schema, written: Schema) -> bool:
    """Say whether files of some columns are files of a table as it is now.

    A column that the table got meanwhile is missing in them, and must allow nulls.
    """
    known = {field.id: (field.logical_type, field.nullable) for field in now.walk()}
    held = {field.id: (field.logical_type, field.nullable) for field in written.walk()}
    has_all = all(known.get(id_) == kind for id_, kind in held.items())
    return has_all and all(nullable or id_ in held for id_, (_, nullable) in known.items())
