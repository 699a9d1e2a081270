"""The index segments of a version whose files name rows, and where these rows are now."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.format.arrays import Mask
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.rows import OFFSET_BITS
from lancetable.fragment.readers import Readers
from lancetable.index.base import Numbers


class Segments(NamedTuple):
    """The index segments of a version."""

    snapshot: Snapshot
    readers: Readers
    entries: Sequence[IndexSegment]
    reuse: FragmentReuse | None

    @classmethod
    def of(cls, snapshot: Snapshot, readers: Readers) -> Self:
        """Return the segments of a version.

        Raises:
            CorruptError: the record of moved rows is damaged.
            UnsupportedError: a later release wrote it.
        """
        entries = snapshot.indices()
        return cls(snapshot, readers, entries, load_reuse(snapshot, entries))

    def covered(self, segment: IndexSegment) -> frozenset[int]:
        """Return the fragments of the version that a segment describes."""
        named = segment.fragment_ids or frozenset()
        if self.reuse is not None:
            named = self.reuse.covered(named)
        return named.intersection(self.readers.positions)

    def addresses(self, segment: IndexSegment, rows: Numbers) -> tuple[Numbers, Mask | None]:
        """Return the addresses of rows of a segment, and which of them still exist; None for all.

        Rows whose fragment was dropped, or that were deleted without being moved, may be said to
        exist.
        """
        ids = self.readers.row_id_index
        if ids is not None and holds_row_ids(segment):
            return ids.find(rows)
        if self.reuse is None:
            return rows, None
        return self.reuse.translate(rows)

    def live(self, addresses: Numbers, fragments: frozenset[int]) -> Mask:
        """Return which addresses are those of live rows of some fragments."""
        readers = self.readers
        ids = sorted(fragments)
        positions = [readers.positions[id_] for id_ in ids]
        stored = readers.source.manifest.fragments
        rows = [stored[one].physical_rows or readers[one].opened.rows for one in positions]
        firsts = np.array(ids, np.uint64) << np.uint64(OFFSET_BITS)
        places = np.searchsorted(firsts, addresses, side="right").astype(np.int64) - 1
        beyond = np.append(firsts + np.array(rows, np.uint64), np.uint64(0))  # for place -1
        found: Mask = addresses < beyond[places]
        deleted = [np.empty(0, np.uint64)]
        for position in sorted(readers.with_deletions(positions)):
            deletions = readers[position].opened.deletions
            if deletions is not None:
                first = np.uint64(stored[position].id << OFFSET_BITS)
                deleted.append(deletions.offsets.astype(np.uint64) + first)
        gone = np.sort(np.concatenate(deleted))
        if len(gone):
            found &= ~_are_among(gone, addresses)
        return found


def _are_among(ascending: Numbers, numbers: Numbers) -> Mask:
    places = np.searchsorted(ascending, numbers)
    places[places == len(ascending)] = 0
    found: Mask = ascending[places] == numbers
    return found
