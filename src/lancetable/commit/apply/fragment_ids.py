"""Find fragments of a version by id, also where several share one.

Old distributed writers left versions in which fragments share an id. Their fragments get ids of
their own when the manifest is read, and keep those in the next version that this library makes. Two
versions by other writers may give the same id to different fragments, so an id is trusted across
such versions only where the fragments share a data file.
"""

from collections.abc import Iterable

from lancetable.format.manifest import Fragment, Manifest
from lancetable.format.manifest.fragments import EditedFragments
from lancetable.format.manifest.fragments.codec import StoredFragments


def find_fragments(manifest: Manifest, ids: Iterable[int]) -> dict[int, Fragment]:
    """Return the fragments with these ids that exist; the others are not decoded."""
    fragments = manifest.fragments
    if not isinstance(fragments, StoredFragments):
        wanted = set(ids)
        return {one.id: one for one in fragments if one.id in wanted}
    places = ((id_, fragments.find(id_)) for id_ in ids)
    return {id_: fragments[place] for id_, place in places if place is not None}


def fragment_ids(manifest: Manifest) -> frozenset[int]:
    """Return the ids of all fragments."""
    fragments = manifest.fragments
    if isinstance(fragments, StoredFragments):
        return frozenset(fragments.ids())
    if isinstance(fragments, EditedFragments) and isinstance(fragments.base, StoredFragments):
        kept = frozenset(fragments.base.ids()) - fragments.removed
        return kept | {one.id for one in fragments.added}
    return frozenset(one.id for one in fragments)


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
