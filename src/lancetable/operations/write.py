"""From data to fragments that are not part of a table yet: what create, append and others share.

Rows in memory that fill several files are written by several threads, one file each; everything
else is one stream, so that no more than a file's pages are in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from lancetable.commit.leases import at_work
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError, SchemaError, UnknownOutcomeError, UnsupportedError
from lancetable.file.model import V2_1, V2_2, file_version
from lancetable.file.pages import page_builder
from lancetable.format.manifest import BasePath, Fragment, Manifest
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.writer import (
    WriteOptions,
    WriteTarget,
    remove_fragments,
    with_total,
    write_fragments,
)
from lancetable.operations.casts import CastNote
from lancetable.operations.fit import Fit, fit
from lancetable.operations.result import VersionResult
from lancetable.operations.runner import THREADS, Runner
from lancetable.operations.sources import Source
from lancetable.operations.steps import run_steps
from lancetable.store import Store, TableLocation

__all__ = [
    "CastNote",
    "WriteOptions",
    "WriteResult",
    "WriteTarget",
    "WriteTask",
    "Written",
    "check_stored",
    "keep_or_remove",
    "needed_version",
    "next_field_id",
    "replaced_version",
    "storage_version",
    "table_options",
    "write_part",
    "write_source",
    "write_target",
]

DEFAULT_WRITE = WriteOptions()
DEFAULT_COMMIT = CommitOptions()
_VARIABLE = frozenset({"string", "binary", "large_string", "large_binary"})


@dataclass(frozen=True, slots=True)
class WriteResult(VersionResult):
    """What a write did: the version it made, and how many rows it wrote."""

    rows: int = 0
    attempts: int = 1
    casts: tuple[CastNote, ...] = ()
    """Columns whose values were stored as another type, without loss."""


class Written(NamedTuple):
    """The version that a write made, and what is told about it."""

    snapshot: Snapshot
    result: WriteResult


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Rows of one or more new files."""

    table: pa.Table
    schema: Schema
    target: WriteTarget
    options: WriteOptions


def write_part(task: WriteTask) -> list[Fragment]:
    """Write the rows of a task, whose columns are brought to the task's schema first."""
    fitted = fit(task.table.schema, task.schema, is_complete=False)
    batches = map(fitted.apply, task.table.to_batches())
    return write_fragments(batches, fitted.schema, task.target, task.options)


def write_source(
    source: Source,
    fitted: Fit,
    target: WriteTarget,
    options: WriteOptions,
    runner: Runner = THREADS,
) -> list[Fragment]:
    """Write all rows of a source; nothing stays when it fails.

    Raises:
        InputError: a value does not fit its column.
        StoreError: the files cannot be written.
    """
    options = with_total(options)
    table, each = source.table, options.max_rows_per_file
    if table is None or table.num_rows <= each or table.nbytes > options.max_bytes_per_file:
        batches = map(fitted.apply, _at_work(source.batches))
        return write_fragments(batches, fitted.schema, target, options)
    tasks = (
        WriteTask(table.slice(first, each), fitted.schema, target.turned(first // each), options)
        for first in range(0, table.num_rows, each)
    )
    written = run_steps(runner, write_part, tasks, lambda made: remove_fragments(made, target))
    return [fragment for made in written for fragment in made]


def _at_work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a source that may take long to give them."""
    for batch in batches:
        at_work()
        yield batch


def write_target(
    location: TableLocation, store: Store, bases: Sequence[BasePath], options: WriteOptions
) -> WriteTarget:
    """Return where new files of rows go: the table itself, or the bases that options name.

    Raises:
        InputError: the table has no such base.
    """
    places = [_place(location, bases, wish) for wish in options.bases]
    if not places:
        return WriteTarget(store)
    return places[0]._replace(others=tuple(places[1:]))


def _place(location: TableLocation, bases: Sequence[BasePath], wish: str) -> WriteTarget:
    for base in bases:
        if wish in {base.name, base.path}:
            store = location.followed(base.path, "base path").open()
            return WriteTarget(store, "data" if base.is_dataset_root else "", base.id)
    known = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    raise InputError(f"the table has no base {wish!r}; known are: {known}")


@contextmanager
def keep_or_remove(fragments: list[Fragment], target: WriteTarget) -> Iterator[None]:
    """Remove the files of new fragments when their commit is known to have failed.

    An interrupt leaves open whether the version was made, so its files stay.
    """
    try:
        yield
    except UnknownOutcomeError:
        raise
    except Exception:
        remove_fragments(fragments, target)
        raise


def table_options(manifest: Manifest, options: WriteOptions) -> WriteOptions:
    """Return the options with the version of files that an existing table keeps.

    Raises:
        InputError: another version is asked for.
        UnsupportedError: the table's version cannot be written any more.
    """
    version = storage_version(manifest)
    if options.storage_version not in {None, version}:
        raise InputError(
            f"the table keeps data files of version {version}; version {options.storage_version} "
            "can be asked for when a table is created or overwritten"
        )
    if options.progress is not None:
        return replace(options, storage_version=version)
    return _of_version(options, version)


@lru_cache(maxsize=32)
def _of_version(options: WriteOptions, version: str) -> WriteOptions:
    return replace(options, storage_version=version)


def check_stored(schema: Schema, options: WriteOptions) -> None:
    """Check that the columns can be stored in files of the version of the options.

    Raises:
        SchemaError: a column needs a newer version.
        InputError: the metadata of a column asks for an encoding that does not exist.
    """
    for field in schema.fields:
        needed = needed_version(Schema((field,)))
        if needed == str(V2_2) and options.storage_version not in {None, needed}:
            raise SchemaError(
                f"column {field.name!r} needs data files of version {needed}, the table has "
                f"{options.storage_version}; create the table with storage_version={needed!r}"
            )
        page_builder(file_version(options.storage_version or needed))(field)


def storage_version(manifest: Manifest) -> str:
    """Return the version of new data files of a table.

    Raises:
        UnsupportedError: it is one that cannot be written any more.
    """
    version = manifest.data_format
    if not version or version in {"stable", "next"}:
        version = _version_of_files(manifest)
    if version in {"legacy", "0.1", "0.2"}:
        raise UnsupportedError(
            "the table keeps data files of version 0.1, which are read-only; copy it with "
            "create_table to write to it"
        )
    return str(file_version(version))


def replaced_version(manifest: Manifest) -> str:
    """Return the version of files for new rows that replace all rows of a table."""
    try:
        return storage_version(manifest)
    except UnsupportedError:
        return str(V2_1)


def _version_of_files(manifest: Manifest) -> str:
    for fragment in manifest.fragments:
        for file in fragment.files:
            return file.version_text
    return str(V2_1)


def needed_version(schema: Schema) -> str:
    """Return the version of files that a new table of this schema gets by itself."""
    return str(V2_2 if any(map(_needs_2_2, schema.walk())) else V2_1)


def _needs_2_2(field: Field) -> bool:
    text = field.logical_type
    if text == "map" or field.is_blob_v2 or text == "fixed_size_binary:0":
        return True
    if text.startswith("fixed_size_list:struct:"):
        return True
    return field.is_packed and any(below.logical_type in _VARIABLE for below in field.walk())


def next_field_id(manifest: Manifest) -> int:
    """Return the first field id that no column of a version, live or dropped, uses."""
    ids = [field.id for field in manifest.schema.walk()]
    if isinstance(manifest.fragments, StoredFragments):
        ids.append(manifest.fragments.largest_field_id())
    else:
        ids.extend(id_ for one in manifest.fragments for file in one.files for id_ in file.fields)
    if manifest.max_allocated_field_id is not None:
        ids.append(manifest.max_allocated_field_id)
    return max(ids, default=-1) + 1
