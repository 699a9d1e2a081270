"""Versions in which fragments share an id, as old distributed writers left them.

Their fragments get ids of their own when the manifest is read, and keep those in the next version
that this library makes. Two versions by other writers may give the same id to different fragments,
so an id is trusted across such versions only where the fragments share a data file.
"""

from collections.abc import Iterable, Sequence

from lancetable.commit.apply.coverage import covering
from lancetable.format.manifest import Fragment, IndexSegment, Manifest
from lancetable.format.manifest.fragments.codec import StoredFragments


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
    before, after = files_of(old.fragments), files_of(new.fragments)
    owners = {path: id_ for id_, paths in before.items() for path in paths}
    return all(
        owners.get(path, id_) == id_ for id_, paths in after.items() for path in paths
    ) and not any(before[id_].isdisjoint(after[id_]) for id_ in before.keys() & after.keys())


def files_of(fragments: Iterable[Fragment]) -> dict[int, frozenset[str]]:
    """Return the paths of the data files of each fragment, by fragment id."""
    return {one.id: frozenset(file.path for file in one.files) for one in fragments}


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
