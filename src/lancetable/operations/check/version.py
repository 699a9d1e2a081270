"""Check one version: its manifest, and the files that it names.

Versions share most of their files and fragments, so what was checked once is remembered. Data files
are checked in parallel first, each once; the check of a version then looks up their findings.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancetable.commit.snapshot import Snapshot, shown
from lancetable.errors import CorruptError, LanceTableError
from lancetable.format.manifest import DataFile, Fragment, IndexSegment
from lancetable.format.manifest.model import ExternalSequence, InlineSequence
from lancetable.format.manifest.names import transaction_path
from lancetable.fragment.blob_dataset import BlobDataset
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ID
from lancetable.operations.check.files import (
    check_data_file,
    check_deletion_file,
    check_index_file,
)
from lancetable.operations.check.index_rows import check_segment_rows
from lancetable.operations.check.journal import Finding, Memory, said
from lancetable.operations.check.model import DAMAGE, Fault, Level
from lancetable.operations.check.rows import data_key, id_faults, note_no_nulls, null_faults
from lancetable.operations.rows.parts import part_of
from lancetable.operations.run.runner import Runner

_SEQUENCES = (ROW_ID, CREATED_AT, LAST_UPDATED_AT)


def faults_of(snapshot: Snapshot, memory: Memory) -> Iterator[Fault]:
    """Yield what is wrong with a version whose manifest could be opened."""
    yield from _transaction_faults(snapshot)
    yield from _index_faults(snapshot, memory)
    files = DataFiles(snapshot)
    yield from id_faults(snapshot)
    for position in range(len(snapshot.manifest.fragments)):
        try:
            fragment = snapshot.manifest.fragments[position]
        except LanceTableError as error:
            path = shown(snapshot.store, snapshot.manifest_path)
            yield Fault("manifest", path, said(error), is_damage=isinstance(error, DAMAGE))
            continue
        yield from _Fragment(snapshot, fragment, files, memory).faults()
    if snapshot.manifest.blob_dataset_version is not None:
        yield from _blob_faults(snapshot, files, memory)


def _blob_faults(snapshot: Snapshot, files: DataFiles, memory: Memory) -> Iterator[Fault]:
    """Yield what is wrong with the blob dataset of a version, and which rows it lacks."""
    path = shown(snapshot.store, snapshot.manifest_path)
    try:
        blobs = snapshot.blob_dataset()
    except LanceTableError as error:
        yield Fault("blobs", path, str(error), is_damage=isinstance(error, DAMAGE))
        return
    for fault in () if blobs is None else faults_of(blobs, memory):
        yield fault._replace(kind="blobs", fragment=None, segment=None)
    if memory.level < Level.FILES:
        return
    dataset = BlobDataset(snapshot)
    for fragment in snapshot.manifest.fragments:
        try:
            lost = dataset.lost_ids(OpenFragment(fragment, files))
        except LanceTableError:
            continue  # reported above
        if len(lost):
            message = (
                f"{len(lost)} rows of fragment {fragment.id}, such as {lost[0]}, have no blobs"
            )
            yield Fault("blobs", path, message)


def _transaction_faults(snapshot: Snapshot) -> Iterator[Fault]:
    name = snapshot.manifest.transaction_file
    path = transaction_path(name) if name else snapshot.manifest_path
    path = shown(snapshot.store, path)
    try:
        if name and not snapshot.store.exists(transaction_path(name)):
            yield Fault("transaction", path, "the file is missing")
        elif snapshot.transaction() is None:
            yield Fault("transaction", path, "there is no record of what the version did")
        elif name:
            _check_record(snapshot, transaction_path(name))
    except LanceTableError as error:
        found = getattr(error, "path", None) or path
        yield Fault("transaction", found, said(error), is_damage=isinstance(error, DAMAGE))


def _check_record(snapshot: Snapshot, path: str) -> None:
    from lancetable.commit.codec.decode import decode_transaction  # noqa: PLC0415 - as everywhere

    transaction = snapshot.transaction()
    try:
        written = decode_transaction(snapshot.store.read(path))
    except CorruptError as error:
        raise error.at(shown(snapshot.store, path)) from None
    if transaction is not None and written.uuid != transaction.uuid:
        raise CorruptError(
            "the file holds another transaction than the manifest names",
            path=shown(snapshot.store, path),
        )


def _index_faults(snapshot: Snapshot, memory: Memory) -> Iterator[Fault]:
    try:
        segments = snapshot.indices()
    except LanceTableError as error:
        path = shown(snapshot.store, snapshot.manifest_path)
        yield Fault("index", path, said(error), is_damage=isinstance(error, DAMAGE))
        return
    known = {field.id for field in snapshot.manifest.schema.walk()}
    for segment in segments:
        path = shown(snapshot.store, snapshot.manifest_path)
        if not known.issuperset(segment.fields):
            yield Fault(
                "index",
                path,
                f"index {segment.name!r} is on a column that is not there",
                segment=segment.uuid,
            )
        try:
            _ = segment.fragment_ids
        except LanceTableError as error:
            is_damage = isinstance(error, DAMAGE)
            yield Fault("index", path, said(error), segment=segment.uuid, is_damage=is_damage)
        if memory.level >= Level.FILES:
            yield from _segment_faults(snapshot, segment, memory)


def _segment_faults(snapshot: Snapshot, segment: IndexSegment, memory: Memory) -> Iterator[Fault]:
    try:
        store, folder = snapshot.index_place(segment)
    except LanceTableError as error:
        path, is_damage = shown(snapshot.store, snapshot.manifest_path), isinstance(error, DAMAGE)
        yield Fault("index", path, said(error), None, segment.uuid, is_damage)
        return
    sizes = {f"{folder}/{file.path}": file.size for file in segment.files}
    if not sizes:
        sizes = {entry.path: entry.size for entry in store.list(folder)}
    is_whole = True
    for path, size in sizes.items():
        found = memory.look(
            ("index", store.root, path, size),
            lambda path=path, size=size: check_index_file(  # type: ignore[misc]
                store, path, size, is_thorough=memory.level >= Level.DATA
            ),
        )
        if found is not None:
            is_whole = False
            yield Fault("index", shown(store, path), found[0], None, segment.uuid, found[1])
    if is_whole and memory.level >= Level.DATA:
        found = memory.look(
            ("index rows", store.root, folder),
            lambda: check_segment_rows(snapshot, segment, is_whole=memory.level >= Level.INDICES),
        )
        if found is not None:
            message = f"index {segment.name!r}: {found[0]}"
            yield Fault("index rows", shown(store, folder), message, None, segment.uuid, found[1])


@dataclass(slots=True)
class _Fragment:
    """One fragment on the table."""

    snapshot: Snapshot
    fragment: Fragment
    files: DataFiles
    memory: Memory

    def faults(self) -> Iterator[Fault]:
        yield from self._sequence_faults()
        if self.memory.level < Level.FILES:
            return
        found = [*self._file_faults(), *self._deletion_faults()]
        yield from found
        if self.memory.level >= Level.DATA and not found:
            yield from null_faults(self.snapshot, self.fragment, self.files, self.memory)

    def _sequence_faults(self) -> Iterator[Fault]:
        fragment = self.fragment
        opened = OpenFragment(fragment, self.files)
        stored = (fragment.row_ids, fragment.created_at, fragment.last_updated_at)
        for name, source in zip(_SEQUENCES, stored, strict=True):
            is_external = isinstance(source, ExternalSequence)
            if not isinstance(source, InlineSequence) and not (
                is_external and self.memory.level >= Level.FILES
            ):
                continue
            if not fragment.physical_rows and self.memory.level < Level.FILES:
                continue
            key = ("row ids", name, source, fragment.physical_rows)
            found = self.memory.look(key, lambda name=name: opened.sequence(name))  # type: ignore[misc]
            if found is not None:
                path = source.path if isinstance(source, ExternalSequence) else None
                path = shown(self.snapshot.store, path or self.snapshot.manifest_path)
                yield Fault("row ids", path, f"{name}: {found[0]}", fragment.id, None, found[1])

    def _file_faults(self) -> Iterator[Fault]:
        fragment = self.fragment
        for file in fragment.files:
            try:
                store, path = self.snapshot.data_file_place(file)
            except LanceTableError as error:
                is_damage = isinstance(error, DAMAGE)
                yield Fault("data", file.path, said(error), fragment.id, None, is_damage)
                continue
            found = look_at_data(self.snapshot, fragment, file, self.memory)
            if found is not None:
                yield Fault("data", shown(store, path), found[0], fragment.id, None, found[1])

    def _deletion_faults(self) -> Iterator[Fault]:
        fragment = self.fragment
        if fragment.deletion_file is None:
            return
        try:
            store, path = self.snapshot.deletion_file_place(fragment, fragment.deletion_file)
        except LanceTableError as error:
            path, is_damage = self.snapshot.manifest_path, isinstance(error, DAMAGE)
            yield Fault("deletion", path, said(error), fragment.id, None, is_damage)
            return
        if not fragment.physical_rows and not _can_count(self.files, fragment):
            return
        opened = OpenFragment(fragment, self.files)
        key = ("deletion", store.root, path, fragment.physical_rows)
        found = self.memory.look(key, lambda: check_deletion_file(opened, store, path))
        if found is not None:
            yield Fault("deletion", shown(store, path), found[0], fragment.id, None, found[1])


def look_at_data(snapshot: Snapshot, fragment: Fragment, file: DataFile, memory: Memory) -> Finding:
    """Return what is wrong with a data file."""
    is_thorough = memory.level >= Level.DATA

    def look() -> None:
        if check_data_file(snapshot, fragment, file, is_thorough=is_thorough):
            note_no_nulls(snapshot, fragment, file, memory)

    return memory.look(data_key(snapshot, fragment, file), look)


def _can_count(files: DataFiles, fragment: Fragment) -> bool:
    """Say whether the rows of an old fragment, whose entry does not count them, are known."""
    try:
        return OpenFragment(fragment, files).rows >= 0
    except LanceTableError:
        return False


@dataclass(frozen=True, slots=True)
class LookTask:
    """A version with one fragment, and those of its data files that are to be looked at."""

    part: Snapshot
    files: tuple[DataFile, ...]
    level: Level


def look_at(task: LookTask) -> dict[tuple[object, ...], Finding]:
    """Return what is wrong with each of the files."""
    memory = Memory(task.level)
    (fragment,) = task.part.manifest.fragments
    found = [look_at_data(task.part, fragment, file, memory) for file in task.files]
    if task.level >= Level.DATA and found == [None] * len(fragment.files):
        list(null_faults(task.part, fragment, DataFiles(task.part), memory))
    return memory.found


def look_ahead(versions: Iterable[Snapshot], memory: Memory, runner: Runner) -> None:
    """Let workers check all data files before their findings are looked up."""
    if memory.level < Level.FILES:
        return
    for found in runner.map(look_at, _tasks(versions, memory)):
        for key, finding in found.items():
            memory.learn(key, finding)


def _tasks(versions: Iterable[Snapshot], memory: Memory) -> Iterator[LookTask]:
    asked: set[tuple[object, ...]] = set()
    for snapshot in versions:
        for fragment in _readable(snapshot):
            files = tuple(
                file for file in fragment.files if _is_new(snapshot, fragment, file, memory, asked)
            )
            if files:
                yield LookTask(part_of(snapshot, [fragment]), files, memory.level)


def _readable(snapshot: Snapshot) -> Iterator[Fragment]:
    fragments = snapshot.manifest.fragments
    for position in range(len(fragments)):
        try:
            yield fragments[position]
        except LanceTableError:
            continue  # The check itself reports it.


def _is_new(
    snapshot: Snapshot,
    fragment: Fragment,
    file: DataFile,
    memory: Memory,
    asked: set[tuple[object, ...]],
) -> bool:
    try:
        key = data_key(snapshot, fragment, file)
    except LanceTableError:
        return False  # It leads out of the table; the check itself reports it.
    is_new = key not in asked and not memory.knows(key)
    asked.add(key)
    return is_new
