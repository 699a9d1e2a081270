"""Assign row ids and versions to the rows of a commit, in a table with stable row ids.

A new row gets the next id, and the version that adds it. A moved row keeps its id and the version
that created it; its last updated version becomes the new one.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.format.manifest import Fragment, InlineSequence, Manifest, SequenceSource
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.manifest.roaring import decode_bitmap
from lancetable.format.manifest.rowids import (
    decode_row_ids,
    decode_versions,
    encode_versions,
    largest_row_id,
)
from lancetable.format.manifest.rowids.sequences import (
    extended_versions,
    id_count,
    id_range,
    joined_ids,
    same_version,
    version_count,
)

_Numbers = npt.NDArray[np.uint64]
UNRECORDED = 1
"""The version of rows that were written before versions were recorded."""


def number_new(
    fragments: Iterable[Fragment],
    next_row_id: int,
    version: int,
    origins: Sequence[Fragment] = (),
) -> tuple[list[Fragment], int]:
    """Return new fragments with ids and versions for all rows, and the next free id.

    ``origins`` are the fragments that rows were moved from. A fragment that brings ids, or last
    updated versions of its rows, keeps them; these ids are never given out again.

    Raises:
        InputError: a fragment has more ids than rows.
        UnsupportedError: the ids or versions of a moved row are not in the manifest.
    """
    numbered = []
    fragments = list(fragments)
    next_row_id = after_known_ids(fragments, next_row_id)
    for fragment in fragments:
        known = known_ids(fragment)
        missing = fragment.physical_rows - known
        if missing < 0:
            raise InputError(
                f"a new fragment of {fragment.physical_rows} rows comes with {known} row ids"
            )
        numbered.append(
            fragment._replace(
                row_ids=_with_ids(fragment.row_ids, next_row_id, missing),
                created_at=_created(fragment, known, version, origins),
                last_updated_at=fragment.last_updated_at
                or _inline(same_version(fragment.physical_rows, version)),
            )
        )
        next_row_id += missing
    return numbered, next_row_id


def check_next_row_id(manifest: Manifest) -> None:
    """Check that all row ids are smaller than the next one to be given out.

    Raises:
        CorruptError: a row has a larger id, so that two rows would share an id.
    """
    fragments = manifest.fragments
    if not isinstance(fragments, StoredFragments):
        return
    for id_, data in fragments.inline_row_ids():
        largest = largest_row_id(data)
        if largest >= manifest.next_row_id:
            raise CorruptError(
                f"the next row id is {manifest.next_row_id}, but fragment {id_} has a row with the "
                f"id {largest}, so new rows would share ids; run repair_table",
                path=fragments.trust.path,
            )


def after_known_ids(fragments: Iterable[Fragment], next_row_id: int) -> int:
    """Return the next free id, larger than any id of the fragments."""
    sequences = (fragment.row_ids for fragment in fragments)
    brought = (largest_row_id(one.data) for one in sequences if isinstance(one, InlineSequence))
    return max(next_row_id, max(brought, default=-1) + 1)


def touch_all(fragment: Fragment, version: int) -> Fragment:
    """Return a fragment all of whose rows were changed."""
    return fragment._replace(last_updated_at=_inline(same_version(fragment.physical_rows, version)))


def touch(fragment: Fragment, offsets: _Numbers, version: int) -> Fragment:
    """Return a fragment some of whose rows were changed.

    Raises:
        UnsupportedError: the versions of its rows are not in the manifest.
    """
    versions = _versions(fragment, fragment.last_updated_at).copy()
    versions[offsets] = version
    return fragment._replace(last_updated_at=_inline(encode_versions(versions)))


def matched_offsets(
    fragment: Fragment, offsets: Mapping[int, tuple[int, ...]], bitmaps: Mapping[int, bytes]
) -> _Numbers | None:
    """Return the rows of a fragment that an update recorded as changed; ``None`` for no record."""
    if fragment.id in bitmaps:
        return decode_bitmap(bitmaps[fragment.id], most=fragment.physical_rows).astype(np.uint64)
    if fragment.id in offsets:
        return np.asarray(offsets[fragment.id], np.uint64)
    return None


def _inline(data: bytes) -> InlineSequence:
    return InlineSequence(data)


def known_ids(fragment: Fragment) -> int:
    """Return how many rows of a new fragment bring their ids."""
    match fragment.row_ids:
        case None:
            return 0
        case InlineSequence(data):
            return id_count(data)
        case _:
            return fragment.physical_rows


def _with_ids(stored: SequenceSource | None, start: int, missing: int) -> SequenceSource | None:
    if stored is None:
        return _inline(id_range(start, missing))
    if not missing or not isinstance(stored, InlineSequence):
        return stored
    return _inline(joined_ids([stored.data, id_range(start, missing)]))


def _created(
    fragment: Fragment, moved: int, version: int, origins: Sequence[Fragment]
) -> SequenceSource:
    rows, stored = fragment.physical_rows, fragment.created_at
    if stored is None and not (moved and origins):
        return _inline(same_version(rows, version))
    if stored is None:
        stored = _inline(encode_versions(_created_before(fragment, origins, version)))
    if isinstance(stored, InlineSequence):
        return _inline(extended_versions(stored.data, rows - version_count(stored.data), version))
    return stored


def _created_before(
    fragment: Fragment, origins: Sequence[Fragment], version: int
) -> npt.NDArray[np.uint64]:
    """Return the versions that created the moved rows, found by their ids."""
    moved = _ids(fragment)
    ids = np.concatenate([_ids(origin) for origin in origins])
    created = np.concatenate([_versions(origin, origin.created_at) for origin in origins])
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], moved), len(ids) - 1)
    found = order[place]
    return np.where(ids[found] == moved, created[found], np.uint64(version))


def _ids(fragment: Fragment) -> _Numbers:
    if not isinstance(fragment.row_ids, InlineSequence):
        raise _spilled(fragment)
    return decode_row_ids(fragment.row_ids.data)


def _versions(fragment: Fragment, stored: SequenceSource | None) -> _Numbers:
    if stored is None:
        return np.full(fragment.physical_rows, UNRECORDED, np.uint64)
    if not isinstance(stored, InlineSequence):
        raise _spilled(fragment)
    return decode_versions(stored.data, fragment.physical_rows)


def _spilled(fragment: Fragment) -> UnsupportedError:
    return UnsupportedError(
        f"the row ids or versions of fragment {fragment.id} are kept outside the manifest, where "
        "this release cannot change them"
    )
