"""Translate the file paths of a branch to paths of its parent.

A file that lies below the parent's root already is simply the parent's own. One below a base path
that both know keeps its base. Every other file is brought below the parent's root, so that the
parent needs nothing of the branch, which may be deleted afterwards.

A file that is brought keeps its name and gets a random ending, ``{name}_b{12 hex}.lance``. So
no other writer uses its name, and its name on the branch can be recovered.
"""

import re
import secrets
from collections.abc import Iterator

from lancetable.commit.snapshot import Snapshot
from lancetable.format.manifest import DataFile, DeletionFile, Fragment
from lancetable.format.manifest.names import deletion_path
from lancetable.operations.branch.copy_files import Journey, data_journeys

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
