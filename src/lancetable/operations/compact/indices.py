"""Rewrite index segments after rows moved: replace the addresses in their files.

Each kind of index does that by itself, as a merge of one segment. Segments that cannot be rewritten
are left as they are and do not describe the new fragments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import RewriteGroup, RewrittenIndex
from lancetable.errors import CorruptError, UnsupportedError
from lancetable.file.model import file_version
from lancetable.format.arrays import Mask
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, is_system, kind_of
from lancetable.format.manifest.names import index_folder
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.fragment.deletions import load_deletions
from lancetable.index.base import Source
from lancetable.index.files import SegmentFiles
from lancetable.index.registry import BUILT, unusable
from lancetable.index.sink import new_segment
from lancetable.index.specs import rewritten_version
from lancetable.operations.compact.order import Order
from lancetable.operations.index.segments import column_of, column_type
from lancetable.operations.input.write import replaced_version
from lancetable.operations.rows.move_rows import has_stable_row_ids

Addresses: TypeAlias = npt.NDArray[np.uint64]
_GONE = np.uint64(2**64 - 1)
_MEMORY_BYTES = 512 * 1024 * 1024


class MovedRows:
    """The new address of every row of some fragments."""

    def __init__(self, base: Snapshot, reuse: FragmentReuse | None) -> None:
        self._base = base
        self._reuse = reuse
        self._new: dict[int, Addresses] = {}

    def add(self, group: RewriteGroup, order: Order | None) -> None:
        """Take note of a group, whose new fragments have their ids."""
        places = np.concatenate(
            [
                np.arange(one.physical_rows, dtype=np.uint64) + np.uint64(one.id << OFFSET_BITS)
                for one in group.new_fragments
            ]
            or [np.empty(0, np.uint64)]
        )
        if order is not None:
            by_rank = np.empty_like(places)
            by_rank[order] = places
            places = by_rank
        first = 0
        for fragment in group.old_fragments:
            live = np.ones(fragment.physical_rows, np.bool_)
            if fragment.deletion_file is not None:
                gone = load_deletions(
                    self._base, fragment, fragment.deletion_file, fragment.physical_rows
                )
                live[gone.offsets] = False
            rows = int(np.count_nonzero(live))
            new = np.full(fragment.physical_rows, _GONE)
            new[live] = places[first : first + rows]
            self._new[fragment.id] = new
            first += rows

    def translate(self, addresses: Addresses) -> Addresses:
        """Return the new addresses of rows; those that are gone have an address that no row has.

        Raises:
            CorruptError: an address names a row that its fragment does not have.
        """
        if self._reuse is not None:
            addresses, kept = self._reuse.translate(addresses)
            addresses[~kept] = _GONE
        ids = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
        offsets = (addresses & np.uint64(MAX_OFFSET)).astype(np.int64)
        found = addresses.copy()
        for id_ in np.unique(ids).tolist():
            new = self._new.get(id_)
            if new is None:
                continue
            here = ids == id_
            if int(offsets[here].max()) >= new.size:
                raise CorruptError(f"an index names a row that fragment {id_} does not have")
            found[here] = new[offsets[here]]
        return found


@dataclass(frozen=True, slots=True)
class Remapped:
    """Rewritten segments, and all their files."""

    indices: tuple[RewrittenIndex, ...] = ()
    paths: tuple[str, ...] = ()


def remap_segments(
    snapshot: Snapshot, groups: Sequence[RewriteGroup], orders: Sequence[Order | None]
) -> Remapped:
    """Rewrite the segments of known kinds that describe moved rows, with new addresses.

    Raises:
        CorruptError: a file of a segment is damaged.
        StoreError: a file cannot be read or written; nothing stays behind.
    """
    segments = snapshot.indices()
    is_stable = has_stable_row_ids(snapshot.manifest)
    reuse = load_reuse(snapshot, segments)
    moved = MovedRows(snapshot, reuse)
    for group, order in zip(groups, orders, strict=True):
        moved.add(group, order)
    ids = frozenset(one.id for group in groups for one in group.old_fragments)
    indices: list[RewrittenIndex] = []
    paths: list[str] = []
    try:
        for segment in segments:
            is_kept = is_system(segment) or (is_stable and holds_row_ids(segment))
            if is_kept or unusable(segment, snapshot.manifest.schema) is not None:
                continue
            covered = segment.fragment_ids or frozenset()
            if ids.isdisjoint(covered if reuse is None else reuse.covered(covered)):
                continue
            made = _remap(snapshot, segment, moved)
            if made is not None:
                indices.append(made)
                paths += [f"{index_folder(made.new_id)}/{file.path}" for file in made.files]
    except BaseException:
        for path in paths:
            snapshot.store.delete(path)
        raise
    return Remapped(tuple(indices), tuple(paths))


def _remap(snapshot: Snapshot, segment: IndexSegment, moved: MovedRows) -> RewrittenIndex | None:
    """Write a segment with new addresses; None when its kind cannot."""
    store, folder = snapshot.index_place(segment)
    files = SegmentFiles(store, folder, segment)
    kind = BUILT[kind_of(segment).name]
    column = column_of(snapshot, segment)

    def translate(rows: Addresses) -> tuple[Addresses, Mask]:
        new = moved.translate(rows)
        return new, new != _GONE

    try:
        spec = kind.spec(files)
    except UnsupportedError:
        return None
    with new_segment(snapshot.store, file_version(replaced_version(snapshot.manifest))) as sink:
        details = kind.merge(
            [Source(files, translate)], column_type(snapshot, column), spec, sink, _MEMORY_BYTES
        )
    if details is None:
        return None
    version = rewritten_version(spec, segment.index_version or 0)
    written = tuple(sink.files)
    return RewrittenIndex(
        segment.uuid, sink.uuid, segment.type_url, details or segment.details, version, written
    )
