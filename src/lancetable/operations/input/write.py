"""Write the rows of a source as new fragments, which no version names yet.

Rows in memory that fill several files are written by several threads, one file each; all other
sources are one stream, so that only the pages of one file are in memory. When others change the
table before the commit, files that still fit its schema are kept; otherwise the rows are written
again, if they can be read again. The version of the files follows from the table, the options and
the schema.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter

import pyarrow as pa

from lancetable.commit.blob_dataset import check_rows_stay
from lancetable.commit.leases import extend_lease
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import (
    ConflictError,
    InputError,
    SchemaError,
    UnknownOutcomeError,
    UnsupportedError,
)
from lancetable.file.model import V2_1, V2_2, file_version
from lancetable.file.write.blobs import second_generation
from lancetable.file.write.pages import page_builder
from lancetable.format.manifest import BasePath, Fragment, Manifest
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.write.writer import (
    WriteOptions,
    WriteTarget,
    remove_fragments,
    with_total,
    write_fragments,
)
from lancetable.operations.input.fit import LEAVE_OUT, Fit, fit, read_rows
from lancetable.operations.input.sources import RowSource
from lancetable.operations.run.runner import THREADS, Runner, run_steps
from lancetable.store import Store, TableLocation, spread

_ROWS = attrgetter("physical_rows")
_VARIABLE = frozenset({"string", "binary", "large_string", "large_binary"})


def table_options(manifest: Manifest, options: WriteOptions) -> WriteOptions:
    """Return the options with the version of files that an existing table keeps.

    Raises:
        InputError: another version is requested.
        UnsupportedError: the table's version cannot be written any more.
    """
    version = storage_version(manifest)
    if options.storage_version not in {None, version}:
        raise InputError(
            f"the table keeps data files of version {version}; version {options.storage_version} "
            "can be chosen only when a table is created or overwritten"
        )
    if callable(options.progress):
        return replace(options, storage_version=version)
    return _of_version(options, version)


@lru_cache(maxsize=32)
def _of_version(options: WriteOptions, version: str) -> WriteOptions:
    return replace(options, storage_version=version)


def check_stored(schema: Schema, options: WriteOptions) -> None:
    """Check that the columns can be stored in files of the version of the options.

    Raises:
        SchemaError: a column needs a newer version.
        InputError: the metadata of a column names an encoding that does not exist.
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
    source: RowSource,
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
    table, each = source.table, options.max_rows_per_file
    if table is None or table.num_rows <= each or table.nbytes > options.max_bytes_per_file:
        batches = map(fitted.apply, _extending_lease(source.batches))
        return write_fragments(batches, fitted.schema, target, options)
    total = with_total(options)
    tasks = (
        WriteTask(table.slice(first, each), fitted.schema, target.turned(first // each), total)
        for first in range(0, table.num_rows, each)
    )
    written = run_steps(runner, write_part, tasks, lambda made: remove_fragments(made, target))
    return [fragment for made in written for fragment in made]


def _extending_lease(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a source that may take long to give them."""
    for batch in batches:
        extend_lease()
        yield batch


def write_target(
    location: TableLocation, store: Store, bases: Sequence[BasePath], options: WriteOptions
) -> WriteTarget:
    """Return where new files of rows go: the table itself, or the bases that options name.

    Raises:
        InputError: the table has no such base.
    """
    if not options.target_bases:
        return WriteTarget(store)
    places = [_place(location, bases, wanted) for wanted in options.target_bases]
    return places[0]._replace(others=tuple(places[1:]))


def _place(location: TableLocation, bases: Sequence[BasePath], wanted: str) -> WriteTarget:
    for base in bases:
        if wanted in {base.name, base.path}:
            store = location.followed(base.path, "base path").open()
            return WriteTarget(store, "data" if base.is_dataset_root else "", base.id)
    known = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    raise InputError(f"the table has no base {wanted!r}; known are: {known}")


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


def check_files_there(places: Sequence[tuple[Store, str]], what: str) -> None:
    """Check that no file that was written for a later commit was removed meanwhile.

    Raises:
        ConflictError: one is missing; ``what`` names its owner in the message.
    """
    width = max((store.width for store, _ in places), default=1)
    found = spread(lambda place: place[0].exists(place[1]), places, width)
    for (store, path), is_there in zip(places, found, strict=True):
        if not is_there:
            raise ConflictError(
                f"file {shown(store, path)!r} of {what} is gone: a cleanup removed it, or it was "
                "committed before; look at the table and do the work again",
                retryable=True,
            )


def pending_rows(
    snapshot: Snapshot, data: object, options: WriteOptions, runner: Runner
) -> "PendingRows":
    """Return rows that are to be added to a table.

    Raises:
        InputError: the data is of no kind that holds rows.
        UnsupportedError: the table has files of a version that cannot be written any more, blobs
            in a blob dataset, or needs something of its writers that is not known.
    """
    manifest = snapshot.manifest
    check_writable(manifest.reader_flags, manifest.writer_flags)
    check_rows_stay(manifest, "add rows")
    source = read_rows(data, manifest.schema)
    target = write_target(snapshot.location, snapshot.store, manifest.base_paths, options)
    return PendingRows(source, target, table_options(manifest, options), runner)


class PendingRows:
    """Rows to be added to a table; their files are kept as long as they fit its schema."""

    def __init__(
        self, source: RowSource, target: WriteTarget, options: WriteOptions, runner: Runner
    ) -> None:
        self.source = source
        self.options = options
        self._runner = runner
        self._fit: Fit | None = None
        self.target = target
        self.fragments: list[Fragment] = []

    @property
    def new_columns(self) -> pa.Schema:
        """The columns of the rows as a table describes them."""
        schema = self.source.schema
        is_second = self.options.storage_version == str(V2_2)
        return second_generation(schema) if is_second else schema

    @property
    def rows(self) -> int:
        """Number of rows written."""
        return sum(map(_ROWS, self.fragments))

    def write(self, schema: Schema, *, new_columns: str = LEAVE_OUT) -> Fit:
        """Have the rows in files that fit a schema; ``new_columns`` is a hint as in ``fit``.

        Raises:
            ConflictError: they do not fit any more, and the rows cannot be read again.
        """
        fitted = fit(self.source.schema, schema, new_columns=new_columns)
        if self._fit is not None and _layout(self._fit) == _layout(fitted):
            return fitted
        if self._fit is not None and not self.source.is_replayable:
            raise ConflictError(
                "another writer changed columns while the rows were written, and the rows cannot "
                "be read again; pass them once more"
            )
        remove_fragments(self.fragments, self.target)
        self.fragments.clear()
        self.fragments += write_source(self.source, fitted, self.target, self.options, self._runner)
        self._fit = fitted
        return fitted


def _layout(fitted: Fit) -> list[tuple[int, str, bool]]:
    """Return what files depend on; names and notes of columns may change."""
    return [(field.id, field.logical_type, field.nullable) for field in fitted.schema.walk()]
