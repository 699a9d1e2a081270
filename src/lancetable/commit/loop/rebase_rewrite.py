"""Rebase a Rewrite on a version in which others deleted some of the rows it moved.

A rewrite keeps the rows of its old fragments that were live when it read them, in their order or
in another that it records. So the place of each row in the new fragments can be computed: rows that
were deleted meanwhile get a deletion file there. The new fragments are numbered here too, after
those of the version they are added to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lancetable.commit.apply.derived_fields import find_fragments, next_fragment_id
from lancetable.commit.loop.rebase import Rebase
from lancetable.commit.publish import discard
from lancetable.commit.reuse import load_reuse, reuse_segment, write_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Rewrite, RewriteGroup
from lancetable.errors import ConflictError, InputError
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.indices.kinds import is_system
from lancetable.format.manifest.reuse import (
    Built,
    FragmentDigest,
    FragmentReuse,
    ReuseGroup,
    ReuseVersion,
)
from lancetable.format.manifest.roaring import encode_treemap
from lancetable.fragment.deletions import load_deletions, write_deletions

if TYPE_CHECKING:
    from lancetable.format.manifest import IndexSegment


@dataclass(frozen=True, slots=True)
class Moves:
    """Where the rows of a Rewrite went, group by group."""

    orders: tuple[Offsets | None, ...]
    """For each new row of a group its number among the rows that were kept; ``None`` for the old
    order."""
    keeps_indices: bool = False
    """True to record the moves, so that index segments stay in use."""


class _Survivors(NamedTuple):
    """The rows of an old fragment that a rewrite kept, by their offsets."""

    fragment: Fragment
    offsets: Offsets


def relocate(
    tip: Snapshot, base: Snapshot, operation: Rewrite, merge: frozenset[int], moves: Moves
) -> Rebase:
    """Return the rewrite of a version, adapted to a later one.

    Args:
        tip: the version that it follows.
        base: the version that was read.
        operation: the rewrite.
        merge: fragments in which others deleted rows since.
        moves: where its rows went.

    Raises:
        ConflictError: none of the rows is left.
        StoreError: the store failed; no file stays behind.
        InputError: rows that changed their order cannot be recorded.
    """
    free = next_fragment_id(tip.manifest)
    current = find_fragments(tip.manifest, merge)
    groups: list[RewriteGroup] = []
    numbered: list[RewriteGroup] = []
    written: list[str] = []
    try:
        for (old, new), order in zip(operation.groups, moves.orders, strict=True):
            named, free = _named(new, free)
            numbered.append(RewriteGroup(old, tuple(named)))
            if not merge.isdisjoint(one.id for one in old):
                gone = _gone(tip, [_survivors(base, one) for one in old], merge, current)
                gone = gone if order is None else _placed(gone, order)
                named = _without(tip, named, gone, written)
            there = tuple(one for one in old if one.id not in merge or one.id in current)
            if there:
                groups.append(RewriteGroup(there, tuple(named)))
        made = replace(operation, groups=_some(groups))
        if moves.keeps_indices:
            segment, files = _recorded(tip, base, numbered, moves)
            written.extend(files)
            made = replace(made, fragment_reuse=segment)
    except BaseException:
        discard(tip.store, written)
        raise
    return Rebase(made, tuple(written))


def _named(fragments: Sequence[Fragment], free: int) -> tuple[list[Fragment], int]:
    """Return new fragments with ids, and the next free id; some have reserved ids already."""
    named = []
    for fragment in fragments:
        named.append(fragment if fragment.id else fragment._replace(id=free))
        free += not fragment.id
    return named, free


def _some(groups: Sequence[RewriteGroup]) -> tuple[RewriteGroup, ...]:
    if not groups:
        raise ConflictError("other writers removed all rows that were moved", retryable=True)
    return tuple(groups)


def _survivors(base: Snapshot, fragment: Fragment) -> _Survivors:
    rows = fragment.physical_rows
    if fragment.deletion_file is None:
        return _Survivors(fragment, np.arange(rows))
    live = np.ones(rows, np.bool_)
    live[load_deletions(base, fragment, fragment.deletion_file, rows).offsets] = False
    return _Survivors(fragment, np.flatnonzero(live))


def _gone(
    tip: Snapshot,
    kept: Sequence[_Survivors],
    merge: frozenset[int],
    current: Mapping[int, Fragment],
) -> Offsets:
    """Return the numbers of those kept rows that were deleted meanwhile."""
    gone: list[Offsets] = []
    first = 0
    for fragment, offsets in kept:
        if fragment.id in merge:
            now = current.get(fragment.id)
            if now is None:
                lost = np.arange(offsets.size)
            elif now.deletion_file is None:
                lost = np.empty(0, np.int64)
            else:
                deleted = load_deletions(tip, now, now.deletion_file, fragment.physical_rows)
                lost = np.flatnonzero(np.isin(offsets, deleted.offsets, assume_unique=True))
            gone.append(lost + first)
        first += offsets.size
    return np.concatenate(gone) if gone else np.empty(0, np.int64)


def _placed(gone: Offsets, order: Offsets) -> Offsets:
    """Return the places of rows in another order."""
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    return np.sort(places[gone])


def _without(
    tip: Snapshot, fragments: Sequence[Fragment], gone: Offsets, written: list[str]
) -> list[Fragment]:
    """Return new fragments with deletion files for the given rows, without empty fragments."""
    found = []
    first = 0
    for fragment in fragments:
        low, high = np.searchsorted(gone, (first, first + fragment.physical_rows))
        lost = gone[low:high] - first
        first += fragment.physical_rows
        if lost.size == fragment.physical_rows:
            continue
        if lost.size:
            made = write_deletions(tip.store, fragment, lost, read_version=tip.version)
            written.append(made.path)
            fragment = fragment._replace(deletion_file=made.file)  # noqa: PLW2901 - now marked
        found.append(fragment)
    return found


def _recorded(
    tip: Snapshot, base: Snapshot, groups: Sequence[RewriteGroup], moves: Moves
) -> "tuple[IndexSegment, tuple[str, ...]]":
    """Return the record of moved rows with these moves added."""
    if any(order is not None for order in moves.orders):
        raise InputError("rows that change their order cannot be recorded for index segments")
    segments = tip.indices()
    older = load_reuse(tip, segments) or FragmentReuse()
    version = ReuseVersion(tip.version, tuple(_digest(base, group) for group in groups))
    needed = older.trimmed(
        Built(one.dataset_version, _described(one, older)) for one in segments if not is_system(one)
    )
    longer = FragmentReuse((*needed.versions, version))
    return write_reuse(tip, longer, reuse_segment(segments))


def _described(segment: "IndexSegment", older: FragmentReuse) -> frozenset[int]:
    """Return the fragments of a segment; one that does not list them may describe all."""
    ids = segment.fragment_ids
    return older.new_ids() if ids is None else ids


def _digest(base: Snapshot, group: RewriteGroup) -> ReuseGroup:
    old = sorted((_survivors(base, one) for one in group.old_fragments), key=lambda one: one[0].id)
    kept = encode_treemap(
        (fragment.id, offsets.astype(np.uint32)) for fragment, offsets in old if offsets.size
    )
    return ReuseGroup(
        kept,
        tuple(
            FragmentDigest(one.id, one.physical_rows, one.physical_rows - offsets.size)
            for one, offsets in old
        ),
        tuple(FragmentDigest(one.id, one.physical_rows) for one in group.new_fragments),
    )
