"""Versions in which fragments share an id, as old distributed writers left them.

Their fragments get ids of their own when the manifest is read, and keep those in the next version
that this library makes. Two versions by other writers may give the same id to different fragments,
so an id is trusted across such versions only where the fragments share a data file.
"""

from collections.abc import Iterable, Sequence

from lancetable.commit.coverage import covering
from lancetable.commit.find import find_fragments, fragment_ids
from lancetable.commit.touched import touched
from lancetable.commit.transaction import Merge, Operation
from lancetable.errors import ConflictError
from lancetable.format.manifest import Fragment, IndexSegment, Manifest
from lancetable.format.manifest.fragments.codec import StoredFragments

_NONE: frozenset[str] = frozenset()


def shared_ids(manifest: Manifest) -> frozenset[int]:
    """Return the stored ids that more than one fragment of a version has."""
    fragments = manifest.fragments
    return fragments.shared_ids() if isinstance(fragments, StoredFragments) else frozenset()


def have_same_ids(old: Manifest, new: Manifest) -> bool:
    """Say whether two versions mean the same fragments by the same ids.

    Where no fragments share an id they do. Otherwise fragments are known by their data files.
    """
    if not shared_ids(old) and not shared_ids(new):
        return True
    before, after = _files(old.fragments), _files(new.fragments)
    owners = {path: id_ for id_, paths in before.items() for path in paths}
    return all(
        owners.get(path, id_) == id_ for id_, paths in after.items() for path in paths
    ) and not any(before[id_].isdisjoint(after[id_]) for id_ in before.keys() & after.keys())


def _files(fragments: Iterable[Fragment]) -> dict[int, frozenset[str]]:
    return {one.id: frozenset(file.path for file in one.files) for one in fragments}


def check_same_fragments(base: Manifest, tip: Manifest, operation: Operation) -> None:
    """Check that the ids in an operation name the same fragments in a later version.

    Raises:
        ConflictError: they may not, so the work has to be done again on the later version.
    """
    if base.version == tip.version:
        return
    ids = fragment_ids(base) if isinstance(operation, Merge) else touched(operation).all
    if not ids or not (shared_ids(base) or shared_ids(tip)):
        return
    before = _files(find_fragments(base, ids).values())
    after = _files(find_fragments(tip, ids).values())
    found = next((id_ for id_ in ids if not before.get(id_, _NONE) & after.get(id_, _NONE)), None)
    if found is not None:
        raise ConflictError(
            f"fragment {found} of version {base.version} may be another one in version "
            f"{tip.version}, because fragments share ids there; do the work again, or let "
            "repair_table give each fragment its own id",
            retryable=True,
        )


def without_shared(segments: Sequence[IndexSegment], shared: frozenset[int]) -> list[IndexSegment]:
    """Return index segments that do not describe fragments whose rows share their addresses.

    A segment that does not name its fragments may describe such a fragment, and covers nothing.
    """
    found = []
    for segment in segments:
        ids = segment.fragment_ids
        if ids is None:
            found.append(covering(segment, ()))
        else:
            found.append(segment if ids.isdisjoint(shared) else covering(segment, ids - shared))
    return found
