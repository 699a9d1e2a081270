"""The manifest of a restored version: the old content, with ids that go on counting."""

from lancetable.commit.apply.derived_fields import next_fragment_id
from lancetable.commit.apply.shared_ids import shared_ids
from lancetable.errors import InputError
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.fragments.codec import StoredFragments

_STABLE = int(Feature.STABLE_ROW_IDS)


def restored(manifest: Manifest, old: Manifest) -> Manifest:
    """Return the manifest that follows another one and has the content of an old one.

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
