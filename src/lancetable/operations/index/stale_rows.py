"""Find segments that may hold rows of fragments which a new segment is to cover.

A row that was updated in place, or that moved with its row id, stays in the files of the segments
that covered it. Each row counts for the segment that covers its fragment, but there are readers
that ask all segments of an index for rows of all fragments that any of them covers. So no index may
have a segment with former values of rows that another one covers.
"""

from collections.abc import Mapping, Sequence

from lancetable.commit.snapshot import Snapshot
from lancetable.format.manifest import Fragment, IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, kind_of
from lancetable.fragment.files import DataFiles
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import CREATED_AT, LAST_UPDATED_AT, TOMBSTONE
from lancetable.operations.rows.move_rows import has_stable_row_ids

_COMPARED = frozenset({"zonemap", "bloomfilter", "ngram", "rtree"})
"""Kinds whose answers every reader compares with the rows themselves."""


def may_be_stale(
    snapshot: Snapshot,
    segments: Sequence[IndexSegment],
    known: Mapping[str, frozenset[int]],
    new: frozenset[int],
) -> tuple[IndexSegment, ...]:
    """Return the segments that may have former values of rows of some uncovered fragments.

    ``known`` has the fragments that each segment covers.
    """
    if kind_of(segments[0]).name in _COMPARED:
        return ()
    fragments = [one for one in snapshot.manifest.fragments if one.id in new]
    is_stable = has_stable_row_ids(snapshot.manifest)
    has_updated = is_stable and any(_has_updated_rows(snapshot, one) for one in fragments)
    return tuple(
        one
        for one in segments
        if (
            has_updated
            if is_stable and holds_row_ids(one)
            else any(_may_be_older(fragment, known[one.uuid]) for fragment in fragments)
        )
    )


def _has_updated_rows(snapshot: Snapshot, fragment: Fragment) -> bool:
    """Say whether rows of a fragment were updated after they were created."""
    opened = OpenFragment(fragment, DataFiles(snapshot))
    created, updated = opened.sequence(CREATED_AT), opened.sequence(LAST_UPDATED_AT)
    return created is None or updated is None or bool((created != updated).any())


def _may_be_older(fragment: Fragment, covered: frozenset[int]) -> bool:
    """Say whether a segment may have rows of a fragment that it does not cover any more."""
    is_rewritten = any(TOMBSTONE in file.fields for file in fragment.files)
    return is_rewritten or fragment.id < max(covered, default=-1)
