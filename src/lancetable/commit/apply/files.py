"""Data files of fragments, and base paths of tables, after some were replaced or added."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from lancetable.commit.transaction import Operation, Overwrite, Restore
from lancetable.errors import InputError, UnsupportedError
from lancetable.format.manifest import BasePath, DataFile, Fragment, Manifest
from lancetable.format.schema.model import Schema

TOMBSTONE = -2
"""The id of a column whose values are in another file now."""

_KNOWN_FORMATS = frozenset(
    {"legacy", "stable", "next", "0.1", "0.2", "0.3", "2.0", "2.1", "2.2", "2.3"}
)


def tidy(fragment: Fragment, schema: Schema) -> Fragment:
    """Return the fragment without files whose columns were all replaced or dropped.

    A column may have been dropped by another writer while its new values were written.
    """
    live = _live_ids(schema)
    files = tuple(
        [
            file
            for file in fragment.files
            if not live.isdisjoint(file.fields) or min(file.fields, default=0) < TOMBSTONE
        ]
    )
    return fragment._replace(files=files) if files else fragment


def loses_columns(before: Schema, after: Schema) -> bool:
    """Say whether a column, at any depth, was dropped."""
    return not _live_ids(before) <= _live_ids(after)


@lru_cache(maxsize=128)
def _live_ids(schema: Schema) -> frozenset[int]:
    return frozenset(field.id for field in schema.walk())


def check_data_format(manifest: Manifest, operation: Operation) -> None:
    """Check that the version of data files is known, unless an operation replaces all of them.

    Raises:
        UnsupportedError: the version is unknown.
    """
    version = manifest.data_format
    is_replaced = isinstance(operation, Overwrite | Restore)
    if version and version not in _KNOWN_FORMATS and not is_replaced:
        raise UnsupportedError(
            f"the manifest declares data files of version {version!r}, which this release "
            "does not know; use a newer release, or overwrite the table"
        )


def storage_version(fragments: Sequence[Fragment]) -> str | None:
    """Return the newest version of the files of new fragments."""
    files = [file for fragment in fragments for file in fragment.files]
    return max(files, key=lambda file: file.version).version_text if files else None


def with_file(fragment: Fragment, file: DataFile) -> Fragment:
    """Return the fragment with a file in place of the one that holds the same columns.

    Raises:
        InputError: a file holds some of the columns together with others.
    """
    files = list(fragment.files)
    for place, old in enumerate(files):
        if old.fields == file.fields and old.version == file.version:
            columns = file.column_indices or old.column_indices
            files[place] = file._replace(column_indices=columns)
            return fragment._replace(files=tuple(files))
    held = {id_ for old in files for id_ in old.fields}
    if held.intersection(file.fields):
        raise InputError(
            f"no file of fragment {fragment.id} holds exactly the columns {list(file.fields)} in "
            f"version {file.version_text}; rewrite the columns instead"
        )
    return fragment._replace(files=(*files, file))


def with_bases(known: tuple[BasePath, ...], new: Iterable[BasePath]) -> tuple[BasePath, ...]:
    """Return base paths with new ones, which get an id when theirs is 0.

    Raises:
        InputError: two of them would share an id, a name or a path.
    """
    bases = list(known)
    for base in new:
        id_ = base.id or max((one.id for one in bases), default=0) + 1
        for one in bases:
            if one.id == id_ or one.path == base.path or (base.name and one.name == base.name):
                raise InputError(
                    f"base path {base.path!r} shares its id, name or path with {one.path!r}"
                )
        bases.append(base._replace(id=id_))
    return tuple(bases)
