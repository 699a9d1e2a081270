"""Config: settings of a table, notes about it, its schema and its columns, and its bases.

1. Name the keys to set, and with ``None`` those to remove.
2. Commit them; writers of other keys do not disturb each other.

Bases are further folders that hold data files of a table, such as other disks:

1. Check that the folders are named once, and make their paths absolute.
2. Commit an UpdateBases; they get the next ids.
Rows go there when a write names them. Deletion files, and columns written later, stay with the
table itself. The manifest holds the paths, so the folders must not move.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from lancetable.commit.apply.metadata import updated
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import MapUpdate, UpdateBases, UpdateConfig
from lancetable.errors import InputError, SchemaError
from lancetable.format.encoding.build.field_options import options_of
from lancetable.format.manifest import BasePath
from lancetable.format.schema.model import (
    BLOB_KEY,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    PACKED_KEYS,
    Field,
)
from lancetable.format.schema.project import resolve
from lancetable.operations.results import Done, WriteResult
from lancetable.operations.retry import write_version
from lancetable.store import TableLocation

if TYPE_CHECKING:
    from os import PathLike


def map_update(entries: Mapping[str, str | None], *, replace: bool = False) -> MapUpdate:
    """Return a change of a mapping; with ``replace`` all keys that are not named go.

    Raises:
        InputError: a key is no text, or a value neither text nor ``None``.
    """
    for key, value in cast("Mapping[object, object]", entries).items():
        if not isinstance(key, str) or not key:
            raise InputError(f"{key!r} is not a valid key; give text that is not empty")
        if value is not None and not isinstance(value, str):
            raise InputError(
                f"the value of {key!r} is {value!r}; use a text, or None to remove the key"
            )
    return MapUpdate(dict(entries), replace)


def field_update(
    snapshot: Snapshot, columns: Mapping[str, Mapping[str, str | None]], *, replace: bool = False
) -> UpdateConfig:
    """Return a change of the metadata of columns, which are named by their paths.

    Raises:
        SchemaError: there is no such column, or what its values are would change.
        InputError: the encoding settings of a column are not valid.
    """
    schema = snapshot.manifest.schema
    updates = {}
    for path, entries in columns.items():
        *above, field = resolve(schema, path)
        update = map_update(entries, replace=replace)
        after = field._replace(metadata=updated(field.metadata, update))
        _refuse_other_storage(path, field, after)
        options_of(after, above[0] if above else after)
        updates[field.id] = update
    return UpdateConfig(field_metadata=updates)


def _refuse_other_storage(path: str, before: Field, after: Field) -> None:
    """Check that values that are stored keep their meaning."""
    for key in (BLOB_KEY, *PACKED_KEYS, EXTENSION_NAME, EXTENSION_METADATA):
        if before.metadata.get(key) != after.metadata.get(key):
            raise SchemaError(
                f"column {path!r}: {key} defines how values are stored and cannot be changed on "
                "an existing column; add another column, or leave the key as it is"
            )


def configure(
    snapshot: Snapshot,
    describe: Callable[[Snapshot], UpdateConfig],
    *,
    commit: CommitOptions = DEFAULT_COMMIT,
) -> Done[WriteResult]:
    """Change settings and metadata; ``describe`` returns them for the version that is built on.

    Raises:
        ConflictError: another writer changed the same keys.
        CommitError: it did not become a version.
    """
    return write_version(snapshot, describe, commit)


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
