"""What does a clone of a version begin with.

A shallow clone keeps the files where they are: each file of the source itself gets the id of a base
path that leads there. A deep clone has copies of all files, so every file is its own.
"""

from collections.abc import Callable, Sequence

from lancetable.commit.transaction import Clone
from lancetable.format.manifest import BasePath, Fragment, IndexSegment, Manifest
from lancetable.format.manifest.codec import below_base
from lancetable.format.manifest.fragments.codec import StoredFragments


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
