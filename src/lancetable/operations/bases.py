"""Bases: further folders that hold data files of a table, such as other disks.

1. Check that the folders are named once, and make their paths absolute.
2. Commit an UpdateBases; they get the next ids.
Rows go there when a write names them. Deletion files, and columns written later, stay with the
table itself. The manifest holds the paths, so the folders must not move.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import UpdateBases
from lancetable.errors import InputError
from lancetable.format.manifest import BasePath
from lancetable.operations.input.write import DEFAULT_COMMIT
from lancetable.operations.results import Done, WriteResult
from lancetable.operations.retry import write_version
from lancetable.store import TableLocation

if TYPE_CHECKING:
    from os import PathLike

Folders = Mapping[str, "str | PathLike[str]"]


def base_paths(
    location: TableLocation, folders: Folders, first_id: int = 0
) -> tuple[BasePath, ...]:
    """Return the base paths of named folders; an id of 0 is given when they are committed.

    Raises:
        InputError: two names refer to one folder.
    """
    made: list[BasePath] = []
    for name, folder in folders.items():
        path = location.elsewhere(str(folder)).open().root
        if not name or any(base.path == path for base in made):
            raise InputError(f"base {name!r} needs a name and a folder of its own, not {path!r}")
        id_ = first_id + len(made) if first_id else 0
        made.append(BasePath(id_, name, path, is_dataset_root=False))
    return tuple(made)


def add_bases(
    snapshot: Snapshot, folders: Folders, *, commit: CommitOptions = DEFAULT_COMMIT
) -> Done[WriteResult]:
    """Add folders for data files to a table.

    Raises:
        InputError: a name or a folder is in use.
        CommitError: it did not become a version.
    """
    bases = base_paths(snapshot.location, folders)
    if not bases:
        raise InputError("name at least one folder")
    return write_version(snapshot, lambda _: UpdateBases(bases), commit)
