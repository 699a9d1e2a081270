"""Data files and base paths of the next manifest, also of a clone and of a restored version.

A shallow clone keeps the files where they are: each file of the source itself gets the id of a base
path that leads there. A deep clone has copies of all files, so it needs no base paths.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from lancetable.commit.apply.derived_fields import next_fragment_id, shared_ids
from lancetable.commit.transaction import Clone, Operation, Overwrite, Restore
from lancetable.errors import InputError, UnsupportedError
from lancetable.format.manifest import BasePath, DataFile, Fragment, IndexSegment, Manifest
from lancetable.format.manifest.codec import below_base
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.fragments.codec import StoredFragments
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


_STABLE = int(Feature.STABLE_ROW_IDS)


def cloned(
    manifest: Manifest, operation: Clone, indices: Sequence[IndexSegment]
) -> tuple[Manifest, tuple[IndexSegment, ...]]:
    """Return the first manifest of a clone, of the source's version, and its segments."""
    bases: tuple[BasePath, ...] = ()
    new_base: int | None = None
    if operation.is_shallow:
        taken = {base.id for base in manifest.base_paths}
        new_base = next(id_ for id_ in range(len(taken) + 1) if id_ not in taken)
        path = operation.ref_path
        base = BasePath(new_base, operation.ref_name, path, is_dataset_root=True)
        bases = (*manifest.base_paths, base)

    def place(old: int | None) -> int | None:
        if not operation.is_shallow:
            return None
        return new_base if old is None else old

    fragments: Sequence[Fragment]
    if isinstance(manifest.fragments, StoredFragments):
        fragments = below_base(manifest.fragments, new_base)
    else:
        fragments = tuple(_moved(fragment, place) for fragment in manifest.fragments)
    segments = tuple(segment._replace(base_id=place(segment.base_id)) for segment in indices)
    made = manifest._replace(fragments=fragments, base_paths=bases, branch=operation.branch_name)
    return made, segments


def _moved(fragment: Fragment, place: Callable[[int | None], int | None]) -> Fragment:
    deletion = fragment.deletion_file
    return fragment._replace(
        files=tuple(file._replace(base_id=place(file.base_id)) for file in fragment.files),
        deletion_file=deletion and deletion._replace(base_id=place(deletion.base_id)),
    )


def restored(manifest: Manifest, old: Manifest) -> Manifest:
    """Return the next manifest with the content of an old one; ids are not given out again.

    Raises:
        InputError: the rows of the old version have no stable ids, but those of the table do.
    """
    if manifest.reader_flags & _STABLE and not old.reader_flags & _STABLE:
        raise InputError(
            f"version {old.version} cannot be restored: its rows have no stable ids, and their "
            "addresses could be taken for ids that this table has given out since; read that "
            "version, or clone it"
        )
    if isinstance(old.fragments, StoredFragments) and shared_ids(old):
        fresh = old.fragments.numbered_above(next_fragment_id(manifest) - 1)
        old = old._replace(fragments=fresh)
    used = max(next_fragment_id(manifest), next_fragment_id(old)) - 1
    allocated = [
        id_
        for id_ in (manifest.max_allocated_field_id, old.max_allocated_field_id)
        if id_ is not None
    ]
    return old._replace(
        version=manifest.version,
        max_fragment_id=used if used >= 0 else None,
        next_row_id=max(manifest.next_row_id, old.next_row_id),
        max_allocated_field_id=max(allocated, default=None),
    )
