"""Manifests made from another version: the first one of a clone, and a restored one.

A shallow clone keeps the files where they are: each file of the source itself gets the id of a base
path that leads there. A deep clone has copies of all files, so it needs no base paths.
"""

from collections.abc import Callable, Sequence

from lancetable.commit.apply.derived_fields import next_fragment_id
from lancetable.commit.apply.fragment_ids import shared_ids
from lancetable.commit.transaction import Clone
from lancetable.errors import InputError
from lancetable.format.manifest import BasePath, Fragment, IndexSegment, Manifest
from lancetable.format.manifest.codec import below_base
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.fragments.codec import StoredFragments

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
