"""Create: the first version of a table, with rows or without.

1. Look whether there is a table, before any row is written.
2. Take the schema that is given, or the one of the data, and give its columns ids.
3. Write the rows as fragments, in files of a version that can hold the schema.
4. Commit an Overwrite; of several who create at once, one makes the first version.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lancetable.commit.committer import commit
from lancetable.commit.committer import create as commit_first
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions, CommitResult, CreateMode
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Overwrite
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, ExistsError, InputError, TableNotFoundError
from lancetable.format.manifest import BasePath
from lancetable.format.manifest.flags import Feature
from lancetable.fragment.write.writer import DEFAULT_WRITE, WriteOptions, remove_fragments
from lancetable.operations.input.prepare import Prepared, prepare
from lancetable.operations.input.write import (
    keep_or_remove,
    replaced_version,
    write_source,
    write_target,
)
from lancetable.operations.results import Done, WriteResult
from lancetable.operations.retry import repeat
from lancetable.operations.run.runner import THREADS, Runner
from lancetable.store import TableLocation

if TYPE_CHECKING:
    from lancetable.format.manifest import Fragment


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """Options of a new table."""

    mode: CreateMode = CreateMode.ERROR
    """What to do when there is a table already."""
    stable_row_ids: bool = False
    """Give every row an id that it keeps when it is updated or moved."""
    bases: tuple[BasePath, ...] = ()
    """Further folders that hold files of the table; only for a new one."""
    write: WriteOptions = DEFAULT_WRITE
    commit: CommitOptions = DEFAULT_COMMIT
    runner: Runner = THREADS


_DEFAULT = CreateOptions()


def create(
    location: TableLocation,
    data: object = None,
    *,
    schema: pa.Schema | None = None,
    options: CreateOptions = _DEFAULT,
) -> Done[WriteResult]:
    """Create a table from a schema, from data, or from both.

    Raises:
        ExistsError: there is a table, and the mode does not allow for it.
        SchemaError: a column cannot be stored, or the data does not fit the schema.
        InputError: a value does not fit, or the data is of no kind that holds rows.
        CommitError: the rows did not become a version.
    """
    existing = _existing(location)
    old = ""
    if existing is not None:
        if options.mode is CreateMode.ERROR:
            raise ExistsError(
                f"{existing.store.root}: there is a table already; append to it, or pass "
                "mode='overwrite'"
            )
        if options.mode is CreateMode.IGNORE:
            return Done(existing, WriteResult(existing.version, attempts=0, is_new_version=False))
        if options.bases:
            raise InputError(
                f"{existing.store.root}: bases are given to a new table; add them with add_bases()"
            )
        old = _old_version(existing, options)
    prepared = prepare(data, schema, options.write, old_version=old)
    bases = options.bases if existing is None else existing.manifest.base_paths
    store = location.open()
    target = write_target(location, store, bases, options.write)
    if existing is None:
        store.require_atomic_creation()
    fragments: list[Fragment] = []
    with keep_or_remove(fragments, target):
        fragments += write_source(
            prepared.source, prepared.fit, target, prepared.options, options.runner
        )
        operation = Overwrite(fragments, prepared.schema, initial_bases=options.bases)
        made = _commit(location, operation, prepared, options)
    if not made.attempts:
        # Another writer created the table meanwhile, and its rows are the ones to keep.
        remove_fragments(fragments, target)
        result = WriteResult(made.snapshot.version, attempts=0, is_new_version=False)
        return Done(made.snapshot, result)
    rows = sum(fragment.physical_rows for fragment in fragments)
    result = WriteResult(made.snapshot.version, rows, made.attempts, prepared.fit.casts)
    return Done(made.snapshot, result)


def _commit(
    location: TableLocation, operation: Overwrite, prepared: Prepared, options: CreateOptions
) -> CommitResult:
    version = prepared.options.storage_version
    try:
        return commit_first(
            location,
            operation,
            options=options.commit,
            stable_row_ids=options.stable_row_ids,
            storage_version=version,
            mode=options.mode,
        )
    except ConflictError as cause:
        if options.mode is not CreateMode.OVERWRITE or not cause.retryable:
            raise
    # Others overwrote the table at the same time; the last one wins, as with a whole overwrite.
    return repeat(
        load(location),
        lambda latest: commit(latest, operation, options.commit, storage_version=version),
        options.commit,
    )


def _existing(location: TableLocation) -> Snapshot | None:
    try:
        return load(location)
    except TableNotFoundError:
        return None


def _old_version(existing: Snapshot, options: CreateOptions) -> str:
    """Return the version of files of the table that is overwritten."""
    has_ids = bool(existing.manifest.reader_flags & Feature.STABLE_ROW_IDS)
    if options.stable_row_ids and not has_ids:
        raise InputError(
            f"{existing.store.root}: there is a table without stable row ids; call "
            "enable_stable_row_ids() on it first"
        )
    return replaced_version(existing.manifest)
