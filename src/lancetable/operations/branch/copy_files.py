"""List the files of a version, name them below another root, and copy or link them there.

A file of a branch that is below the root of its parent already is the parent's own. One below a
base path that both have keeps its base. Every other file is copied below the parent's root, so that
the branch may be deleted afterwards. It keeps its name and gets a random ending,
``{name}_b{12 hex}.lance``: no other writer uses that name, and the name on the branch can be
recovered.

Names of data files and of index segments are random, so files of one table never collide; a name
that two base paths use for different files is refused.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError, UnsupportedError
from lancetable.format.manifest import DataFile, DeletionFile, ExternalSequence, Fragment
from lancetable.format.manifest.names import (
    BLOB_DATASET,
    data_path,
    deletion_path,
    index_folder,
    transaction_path,
)
from lancetable.operations.run.runner import THREADS, Runner, run_steps
from lancetable.store import Store


class Journey(NamedTuple):
    """One object, where it is and where it goes."""

    source: Store
    path: str
    to: str


class BringTask(NamedTuple):
    """An object on its way into a store, and how it gets there."""

    journey: Journey
    target: Store
    transfer: Callable[[Store, str, Store, str], object]


def data_journeys(snapshot: Snapshot, file: DataFile, name: str | None = None) -> Iterator[Journey]:
    """Yield a data file and the side files of its blobs, which may get another name."""
    store, path = snapshot.data_file_place(file)
    to = data_path(name or file.path)
    yield Journey(store, path, to)
    folder = path.removesuffix(".lance")
    for side in store.list(folder):
        yield Journey(store, side.path, to.removesuffix(".lance") + side.path[len(folder) :])


def fragment_journeys(snapshot: Snapshot, fragment: Fragment) -> Iterator[Journey]:
    """Yield all files of a fragment.

    Raises:
        UnsupportedError: its row ids are kept in a file that is not known to be its own.
    """
    sequences = (fragment.row_ids, fragment.created_at, fragment.last_updated_at)
    if any(isinstance(sequence, ExternalSequence) for sequence in sequences):
        raise UnsupportedError(
            f"fragment {fragment.id} keeps its row ids in another file, which this release does "
            "not copy"
        )
    for file in fragment.files:
        yield from data_journeys(snapshot, file)
    if fragment.deletion_file is not None:
        store, path = snapshot.deletion_file_place(fragment, fragment.deletion_file)
        yield Journey(store, path, deletion_path(fragment.id, fragment.deletion_file))


def all_journeys(snapshot: Snapshot) -> Iterator[Journey]:
    """Yield all files of a version, those of its indices included."""
    for fragment in snapshot.manifest.fragments:
        yield from fragment_journeys(snapshot, fragment)
    for segment in snapshot.indices():
        store, folder = snapshot.index_place(segment)
        for entry in store.list(folder):
            yield Journey(store, entry.path, index_folder(segment.uuid) + entry.path[len(folder) :])
    blobs = snapshot.blob_dataset()
    if blobs is not None:
        yield from _blob_dataset_journeys(blobs)


def _blob_dataset_journeys(blobs: Snapshot) -> Iterator[Journey]:
    """Yield all files of the blob dataset of a version, its manifest included.

    Raises:
        UnsupportedError: some of them are not below its own root.
    """
    if blobs.manifest.base_paths:
        raise UnsupportedError(
            f"{blobs.store.root}: the blob dataset has files elsewhere, which are not copied"
        )
    for source, path, to in all_journeys(blobs):
        yield Journey(source, path, f"{BLOB_DATASET}/{to}")
    yield Journey(blobs.store, blobs.manifest_path, f"{BLOB_DATASET}/{blobs.manifest_path}")
    if blobs.manifest.transaction_file:
        record = transaction_path(blobs.manifest.transaction_file)
        if blobs.store.exists(record):
            yield Journey(blobs.store, record, f"{BLOB_DATASET}/{record}")


def bring(
    journeys: Iterable[Journey],
    target: Store,
    transfer: Callable[[Store, str, Store, str], object],
    runner: Runner = THREADS,
) -> list[str]:
    """Bring files below another root and return their paths; nothing stays when one fails.

    Raises:
        InputError: two different files would get one name.
        FileNotFoundInStoreError: a file is missing.
        StoreError: a store failed.
    """
    found: dict[str, Journey] = {}
    for journey in journeys:
        other = found.setdefault(journey.to, journey)
        if (other.source.root, other.path) != (journey.source.root, journey.path):
            raise InputError(
                f"{journey.to} refers to two files, below {other.source.root} and below "
                f"{journey.source.root}; compact the table first"
            )
    tasks = (BringTask(journey, target, transfer) for journey in found.values())
    return run_steps(runner, _bring_one, tasks, target.delete)


def _bring_one(task: BringTask) -> str:
    journey = task.journey
    task.transfer(journey.source, journey.path, task.target, journey.to)
    return journey.to


_ENDING = re.compile(r"_b[0-9a-f]{12}(?=\.lance$)")


def origin_name(path: str) -> str:
    """Return the name that a data file had where it was written."""
    return _ENDING.sub("", path)


def _brought_name(path: str) -> str:
    stem = origin_name(path).removesuffix(".lance")
    return f"{stem}_b{secrets.token_hex(6)}.lance"


class Relocation:
    """Files of a source as a target names them, and those that have to be brought there."""

    def __init__(self, source: Snapshot, target: Snapshot) -> None:
        self._source = source
        self._target = target
        self._bases = dict(_shared_bases(source, target))
        self.journeys: list[Journey] = []

    def data_file(self, file: DataFile) -> DataFile:
        """Return a data file of the source as one of the target."""
        if file.base_id is not None and file.base_id in self._bases:
            return file._replace(base_id=self._bases[file.base_id])
        name = _brought_name(file.path)
        self.journeys.extend(data_journeys(self._source, file, name))
        return file._replace(path=name, base_id=None)

    def deletion_file(self, fragment: Fragment, file: DeletionFile, id_: int) -> DeletionFile:
        """Return the deletion file of a fragment, which has ``id_`` in the target."""
        if file.base_id is not None and file.base_id in self._bases and fragment.id == id_:
            return file._replace(base_id=self._bases[file.base_id])
        store, path = self._source.deletion_file_place(fragment, file)
        brought = file._replace(id=secrets.randbits(64), base_id=None, fragment_id=None)
        self.journeys.append(Journey(store, path, deletion_path(id_, brought)))
        return brought

    def fragment(self, fragment: Fragment, id_: int) -> Fragment:
        """Return a whole fragment with the id that it has in the target."""
        deletion = fragment.deletion_file
        return fragment._replace(
            id=id_,
            files=tuple(self.data_file(file) for file in fragment.files),
            deletion_file=deletion and self.deletion_file(fragment, deletion, id_),
        )


def _shared_bases(source: Snapshot, target: Snapshot) -> Iterator[tuple[int, int | None]]:
    """Yield the base paths of the source that the target knows, with their ids there."""
    own = target.store.root
    known = {_root(target, base.path): base for base in target.manifest.base_paths}
    for base in source.manifest.base_paths:
        root = _root(source, base.path)
        same = known.get(root)
        if root == own and base.is_dataset_root:
            yield base.id, None
        elif same is not None and same.is_dataset_root == base.is_dataset_root:
            yield base.id, same.id


def _root(snapshot: Snapshot, path: str) -> str:
    return snapshot.location.elsewhere(path).open().root
