"""List all files that a version needs, below any root.

Files are identified by the real place of the store that holds them and their path in it, so that
a file of the main table is recognised when a branch or a clone refers to it over a base path.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lancetable.commit.snapshot import Snapshot, shown
from lancetable.commit.transaction import CreateIndex, DataReplacement, Operation, Rewrite
from lancetable.errors import CorruptError
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.manifest.model import FileNames
from lancetable.format.manifest.names import (
    DATA,
    VERSIONS,
    checked_path,
    data_path,
    deletion_path,
    index_folder,
    transaction_path,
)
from lancetable.store import Store
from lancetable.store.copy import real_root

SUFFIX = ".lance"


@dataclass(slots=True)
class References:
    """Files, and whole folders, that some versions need; all as places below real roots."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    roots: dict[str, str] = field(default_factory=dict)
    """Real roots by the address under which a base path names them."""

    def holds(self, root: str, path: str) -> bool:
        """Say whether a file is among them, by itself, in its folder or beside its data file."""
        place = f"{root}/{path}"
        if place in self.files:
            return True
        folder = place.rpartition("/")[0]
        if f"{folder}{SUFFIX}" in self.files and path.startswith(f"{DATA}/"):
            return True
        while len(folder) > len(root):
            if folder in self.folders:
                return True
            folder = folder.rpartition("/")[0]
        return False

    def add_version(self, snapshot: Snapshot) -> None:
        """Add everything that a version needs, its manifest and transaction file included.

        Raises:
            CorruptError: the manifest is damaged.
            UnsupportedError: it has files of a kind that is not known, or a writer flag.
        """
        check_writable(snapshot.manifest.reader_flags, snapshot.manifest.writer_flags)
        self._add_own(snapshot)
        self._add_names(snapshot, names_of(snapshot.manifest.fragments))
        for segment in snapshot.indices():
            self._add_index(snapshot, segment.uuid, segment.base_id)

    def add_made(self, snapshot: Snapshot, operation: Operation) -> bool:
        """Add the files of a version by its transaction; false when that does not name them."""
        fragments = operation.written
        if fragments is None:
            return False
        for each in fragments:
            self._add_names(snapshot, names_of(each))
        if isinstance(operation, DataReplacement):
            files = {(one.new_file.path, one.new_file.base_id) for one in operation.replacements}
            self._add_names(snapshot, FileNames(files, set(), set()))
        for uuid, base_id in _made_indices(operation):
            self._add_index(snapshot, uuid, base_id)
        self._add_own(snapshot)
        return True

    def add_plain(self, snapshot: Snapshot, names: FileNames) -> None:
        """Add a version that needs just these files, its manifest and its transaction file."""
        self._add_own(snapshot)
        self._add_names(snapshot, names)

    def _add_own(self, snapshot: Snapshot) -> None:
        own = self._root(snapshot, None)
        self.files.add(f"{own}/{snapshot.manifest_path}")
        if snapshot.manifest.transaction_file:
            self.files.add(f"{own}/{transaction_path(snapshot.manifest.transaction_file)}")

    def _add_names(self, snapshot: Snapshot, names: FileNames) -> None:
        bases = {base_id for _, base_id in (*names.data, *names.deletions)}
        roots = {base_id: self._root(snapshot, base_id) for base_id in bases}
        is_root = {base_id: self._is_root(snapshot, base_id) for base_id in bases}
        for path, base_id in names.data:
            below = data_path(path) if is_root[base_id] else checked_path(path, "data file")
            self.files.add(f"{roots[base_id]}/{below}")
        for path, base_id in names.deletions:
            below = path if is_root[base_id] else path.rpartition("/")[2]
            self.files.add(f"{roots[base_id]}/{below}")
        for path in names.sequences:
            self.files.add(f"{self._root(snapshot, None)}/{path}")

    def _add_index(self, snapshot: Snapshot, uuid: str, base_id: int | None) -> None:
        folder = index_folder(uuid) if self._is_root(snapshot, base_id) else uuid
        self.folders.add(f"{self._root(snapshot, base_id)}/{folder}")

    def _is_root(self, snapshot: Snapshot, base_id: int | None) -> bool:
        base = None if base_id is None else snapshot.manifest.base_path(base_id)
        return base is None or base.is_dataset_root

    def _root(self, snapshot: Snapshot, base_id: int | None) -> str:
        base = None if base_id is None else snapshot.manifest.base_path(base_id)
        address = snapshot.store.root if base is None else base.path
        found = self.roots.get(address)
        if found is None or (base_id is not None and base is None):
            store = snapshot.store if base_id is None else snapshot.base_store(base_id)
            if base is not None and base.is_dataset_root and not _is_table(store):
                raise CorruptError(
                    f"version {snapshot.version} has files in {base.path}, where there is no table "
                    "now; if this table was moved, move it back before removing anything",
                    path=shown(snapshot.store, snapshot.manifest_path),
                )
            found = self.roots[address] = real_root(store)
        return found


def _made_indices(operation: Operation) -> list[tuple[str, int | None]]:
    match operation:
        case Rewrite(rewritten_indices=rewritten):
            return [(one.new_id, None) for one in rewritten]
        case CreateIndex(new_indices=segments):
            return [(one.uuid, one.base_id) for one in segments]
        case _:
            return []


def _is_table(store: Store) -> bool:
    return any(True for _ in store.list(VERSIONS))


def names_of(fragments: Iterable[Fragment]) -> FileNames:
    """Return the files of some fragments."""
    if isinstance(fragments, StoredFragments):
        return fragments.file_names()
    found = FileNames(set(), set(), set())
    for fragment in fragments:
        found.data.update((file.path, file.base_id) for file in fragment.files)
        deletion = fragment.deletion_file
        if deletion is not None:
            found.deletions.add((deletion_path(fragment.id, deletion), deletion.base_id))
        for sequence in (fragment.row_ids, fragment.created_at, fragment.last_updated_at):
            path = getattr(sequence, "path", None)
            if path is not None:
                found.sequences.add(path)
    return found
