"""Which fragments has a version, and where are given ones, without decoding the others."""

from collections.abc import Iterable

from lancetable.format.manifest import Fragment, Manifest
from lancetable.format.manifest.fragments import EditedFragments
from lancetable.format.manifest.fragments.codec import StoredFragments


def find_fragments(manifest: Manifest, ids: Iterable[int]) -> dict[int, Fragment]:
    """Return the fragments with these ids, as far as there are any."""
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
