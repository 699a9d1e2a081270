"""Batches to fragments: new data files, a next one whenever one is full.

One file is open at a time and each is complete before the next begins, so memory is bounded by the
pages of one file. When anything fails, the files written so far are removed.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import pyarrow as pa

from lancetable.errors import InputError, LanceTableError
from lancetable.file.model import V2_1, FileVersion, file_version
from lancetable.file.read.payloads import sidecar_path
from lancetable.file.write.writer import FileWriteOptions, FileWriter, WrittenFile
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.write.progress import Progress, ProgressCallback, RunningTotal
from lancetable.options import check_options, option
from lancetable.store import Bytes, Store, WritableFile

_SLICES_PER_FILE = 8
_GATHERED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The division of rows into files, and the version of those files.

    ``storage_version`` is for new tables and whole overwrites; a table keeps its version otherwise.
    """

    max_rows_per_file: int = option(1024 * 1024, minimum=1, help="The most rows of one data file.")
    max_bytes_per_file: int = option(
        90 * 1024**3, unit="bytes", minimum=1, help="About the most bytes of one data file."
    )
    page_bytes: int = option(
        8 * 1024**2, unit="bytes", minimum=1, help="About how many bytes of a column form a page."
    )
    storage_version: str | None = option(
        None,
        help="The version of data files: 2.0, 2.1 or 2.2. By default 2.1, or 2.2 when the schema "
        "needs it; only for new tables and whole overwrites.",
    )
    pending_bytes: int = option(
        512 * 1024**2,
        unit="bytes",
        minimum=1,
        help="How much of all columns may wait in memory for their pages.",
    )
    target_bases: tuple[str, ...] = option(
        (), help="Names or paths of bases of the table, which new files of rows go to in turn."
    )
    progress: bool | ProgressCallback = option(
        False,  # noqa: FBT003 - the default
        in_cli=False,
        help="Called with a Progress while rows are written, by one thread at a time; True shows "
        "a bar on a terminal. Not called for tasks of other processes.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.storage_version is not None:
            file_version(self.storage_version)
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise InputError(
                f"progress is {self.progress!r}; give a function of one Progress, or a boolean"
            )

    def __reduce__(self) -> "tuple[type[WriteOptions], tuple[object, ...]]":
        values = (getattr(self, one.name) for one in fields(self) if one.name != "progress")
        return type(self), tuple(values)


DEFAULT_WRITE = WriteOptions()


def with_total(options: WriteOptions) -> WriteOptions:
    """Return the options of one write, whose tasks report their progress together."""
    if not callable(options.progress) or isinstance(options.progress, RunningTotal):
        return options
    return replace(options, progress=RunningTotal(options.progress))


class WriteTarget(NamedTuple):
    """The destination of new data files: a folder of a store, and the base path that names it.

    With ``others`` the files are spread: each next one goes to the next place.
    """

    store: Store
    folder: str = "data"
    base_id: int | None = None
    others: "tuple[WriteTarget, ...]" = ()

    def path(self, name: str) -> str:
        """Return the path of a data file in the store."""
        return f"{self.folder}/{name}" if self.folder else name

    def turned(self, count: int) -> "WriteTarget":
        """Return the target that begins with a later one of its places."""
        if not self.others:
            return self
        places = (self._replace(others=()), *self.others)
        first = count % len(places)
        return places[first]._replace(others=(*places[first + 1 :], *places[:first]))

    def place_of(self, file: DataFile) -> "WriteTarget":
        """Return the place that a file was written to."""
        return next((one for one in self.others if one.base_id == file.base_id), self)


def new_file_name() -> str:
    """Return a name for a data file: 24 random binary digits that spread files, then 26 hex."""
    name = os.urandom(16)
    return f"{int.from_bytes(name[:3], 'big'):024b}{name[3:].hex()}.lance"


def begin_file(store: Store, path: str) -> WritableFile:
    """Begin one data file; small pieces of it are written together.

    Raises:
        StoreError: the file cannot be created.
    """
    return _Gathering(store.create(path))


def open_writer(
    version: FileVersion, name: str, schema: Schema, target: WriteTarget, options: WriteOptions
) -> FileWriter:
    """Begin one data file, and return what writes it; side files of blobs go beside it.

    Raises:
        SchemaError: files of that version cannot hold a column.
        StoreError: the file cannot be created.
    """
    path = target.path(name)
    store = target.store
    file = begin_file(store, path)
    try:
        return FileWriter(
            file,
            schema,
            version,
            FileWriteOptions(options.page_bytes, options.pending_bytes),
            sidecars=lambda blob_id: store.create(sidecar_path(path, blob_id)),
        )
    except BaseException:
        file.abort()
        raise


def write_fragments(
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    target: WriteTarget,
    options: WriteOptions,
) -> list[Fragment]:
    """Write batches, whose columns stand in the order of the schema, as new fragments.

    The fragments have no ids yet. Without rows there are none.

    Raises:
        InputError: a column that must not be null holds nulls.
        StoreError: the files cannot be written.
    """
    rolling = _Rolling(schema, target, with_total(options))
    try:
        for batch in batches:
            rolling.write(batch)
        rolling.roll()
    except BaseException:
        rolling.abort()
        raise
    return rolling.fragments


def remove_fragments(fragments: Iterable[Fragment], target: WriteTarget) -> None:
    """Remove the files of fragments that no version will ever name."""
    for fragment in fragments:
        for file in fragment.files:
            place = target.place_of(file)
            path = place.path(file.path)
            # A file that stays costs space only, and must not hide why it is not wanted.
            with suppress(LanceTableError):
                place.store.delete(path)
                for entry in list(place.store.list(path.removesuffix(".lance"))):
                    place.store.delete(entry.path)


def new_fragment(name: str, written: WrittenFile, target: WriteTarget) -> Fragment:
    """Return the fragment of a finished data file."""
    file = DataFile(
        path=name,
        fields=written.fields,
        column_indices=written.column_indices,
        major=written.version.major,
        minor=written.version.minor,
        size=written.size,
        base_id=target.base_id,
    )
    return Fragment(0, (file,), physical_rows=written.rows)


class _Gathering:
    """A file that is given many small pieces: they are written together."""

    __slots__ = ("_file", "_held")

    def __init__(self, file: WritableFile) -> None:
        self._file = file
        self._held = bytearray()

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end; few are held back."""
        if len(self._held) + sum(map(len, parts)) <= _GATHERED_BYTES:
            for part in parts:
                self._held += part
            return
        held, self._held = self._held, bytearray()
        self._file.write([held, *parts] if held else parts)

    def close(self) -> None:
        """Write what is held back and finish the file."""
        if self._held:
            held, self._held = self._held, bytearray()
            self._file.write([held])
        self._file.close()

    def abort(self) -> None:
        """Give up and remove what was written."""
        self._file.abort()


class _Rolling:
    """The file being written, and the fragments of those before it."""

    def __init__(self, schema: Schema, target: WriteTarget, options: WriteOptions) -> None:
        self._schema = schema
        self._target = target
        self._options = options
        self._version = file_version(options.storage_version or str(V2_1))
        self._writer: FileWriter | None = None
        self._name = ""
        self._progress = options.progress if callable(options.progress) else None
        self._reported_bytes = 0
        self.fragments: list[Fragment] = []

    def write(self, batch: pa.RecordBatch) -> None:
        for part in self._parts(batch):
            if self._writer is None:
                self._name = new_file_name()
                self._writer = open_writer(
                    self._version, self._name, self._schema, self._target, self._options
                )
            self._writer.write(part)
            if self._progress is not None:
                self._report(self._progress, self._writer.bytes_written, rows=part.num_rows)
            if self._is_full(self._writer):
                self.roll()

    def _parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Cut a batch where files end; what a part adds to a file is small beside the file."""
        rows, options = batch.num_rows, self._options
        most, limit = rows, options.max_bytes_per_file
        # A file takes a whole batch where it cannot take a row: no limit gives a file per row.
        if rows > 1 and batch.nbytes <= limit * rows:
            parts = batch.nbytes * _SLICES_PER_FILE / limit
            most = max(int(rows / parts), 1) if parts > 1 else rows
        first = 0
        while first < rows:
            room = options.max_rows_per_file - (self._writer.rows if self._writer else 0)
            step = min(most, room, rows - first)
            yield batch if step == rows else batch.slice(first, step)
            first += step

    def _is_full(self, writer: FileWriter) -> bool:
        if writer.rows >= self._options.max_rows_per_file:
            return True
        written = writer.bytes_written + writer.bytes_pending
        return written >= self._options.max_bytes_per_file

    def roll(self) -> None:
        """Finish the open file, if there is one."""
        if self._writer is None:
            return
        written = self._writer.finish()
        self._writer = None
        self.fragments.append(new_fragment(self._name, written, self._target))
        self._target = self._target.turned(1)
        if self._progress is not None:
            self._report(self._progress, written.size, files=1)
        self._reported_bytes = 0

    def _report(
        self, progress: ProgressCallback, bytes_of_file: int, *, rows: int = 0, files: int = 0
    ) -> None:
        """Report what was written since the last call."""
        new = bytes_of_file - self._reported_bytes
        self._reported_bytes = bytes_of_file
        progress(Progress(rows, bytes=new, files=files))

    def abort(self) -> None:
        """Remove all files."""
        if self._writer is not None:
            with suppress(LanceTableError):
                self._writer.abort()
        remove_fragments(self.fragments, self._target)
