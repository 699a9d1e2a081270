"""Divide rows into zones, and find where the rows of older zones are now."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.arrays import Mask, Offsets, numbers
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.index.base import ROW, VALUE, Numbers, Source
from lancetable.index.zones import PLACES, stored_nulls

_MOVED_AT_A_TIME = 1 << 20
PLACE_FIELDS = tuple(pa.field(name, pa.uint64(), nullable=False) for name in PLACES)


class Zoned(NamedTuple):
    """Live rows of whole zones, all of them in turn."""

    values: pa.Array
    rows: Numbers
    edges: Offsets
    """Where each zone begins, and where the last one ends."""

    @property
    def is_null(self) -> Mask | None:
        """Which values are null; None when none is."""
        return np.asarray(self.values.is_null()) if self.values.null_count else None

    def places(self) -> list[pa.Array]:
        """Return the fragments, starts and lengths; these also count the deleted rows within."""
        firsts, lasts = self.rows[self.edges[:-1]], self.rows[self.edges[1:] - 1]
        return _places(firsts, lasts)


def zones_of(rows: Iterable[pa.RecordBatch], most: int, nulls: RowBitmaps) -> Iterator[Zoned]:
    """Yield the zones of the batches of a build, each of at most so many live rows.

    The rows with nulls are added to ``nulls``.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        fragments = batch.column(ROW).to_numpy() >> np.uint64(OFFSET_BITS)
        first = 0
        if size:
            first = _same(fragments[: most - size], held[0].column(ROW)[0].as_py() >> OFFSET_BITS)
            held.append(batch.slice(0, first))
            size += first
            if first == len(fragments):
                continue
            yield _zoned(pa.concat_batches(held), np.array([0, size]), nulls)
        cuts = first + _cuts(fragments[first:], most)
        if len(fragments) - cuts[-1] == most:
            cuts = np.append(cuts, len(fragments))
        held, size = [batch.slice(int(cuts[-1]))], len(fragments) - int(cuts[-1])
        if len(cuts) > 1:
            yield _zoned(batch.slice(first), cuts - first, nulls)
    if size:
        yield _zoned(pa.concat_batches(held), np.array([0, size]), nulls)


def _same(fragments: Numbers, fragment: int) -> int:
    """Return how many rows from the first on are in a fragment."""
    others = np.flatnonzero(fragments != fragment)
    return int(others[0]) if len(others) else len(fragments)


def _cuts(fragments: Numbers, most: int) -> Offsets:
    """Return where zones begin; the last one may go on in the next batch."""
    edges = [0, *(np.flatnonzero(fragments[1:] != fragments[:-1]) + 1).tolist(), len(fragments)]
    return np.concatenate([np.arange(*ends, most) for ends in itertools.pairwise(edges)])


def _zoned(batch: pa.RecordBatch, edges: Offsets, nulls: RowBitmaps) -> Zoned:
    found = Zoned(batch.column(VALUE), batch.column(ROW).to_numpy(), edges)
    found = found._replace(
        values=found.values.slice(0, int(edges[-1])), rows=found.rows[: edges[-1]]
    )
    if found.is_null is not None:
        nulls.add(found.rows[found.is_null])
    return found


def _places(firsts: Numbers, lasts: Numbers) -> list[pa.Array]:
    fragments, starts = firsts >> np.uint64(OFFSET_BITS), firsts & np.uint64(MAX_OFFSET)
    return [numbers(one) for one in (fragments, starts, lasts - firsts + np.uint64(1))]


class Moved(NamedTuple):
    """Zones of a segment where their rows are now; one whose rows moved apart is several."""

    zones: Offsets
    """Their numbers in the segment."""
    places: list[pa.Array]


def moved_zones(source: Source, name: str) -> Iterator[Moved]:
    """Yield the zones of a segment where their rows are now, some at a time.

    Raises:
        CorruptError: a zone cannot be in a fragment.
    """
    places = (np.asarray(one).astype(np.uint64) for one in source.files.read(name, PLACES))
    fragments, starts, lengths = places
    if ((starts > MAX_OFFSET) | (lengths > MAX_OFFSET + 1) | (fragments > MAX_OFFSET)).any():
        raise CorruptError(f"{name}: a zone is not within a fragment")
    # A long zone is taken in pieces, which become zones of their own.
    pieces = -(-lengths.astype(np.int64) // _MOVED_AT_A_TIME)
    zones = np.repeat(np.arange(len(pieces)), pieces)
    before = (np.arange(len(zones)) - (np.cumsum(pieces) - pieces)[zones]) * _MOVED_AT_A_TIME
    firsts = (fragments << np.uint64(OFFSET_BITS)) + starts
    firsts = firsts[zones] + before.astype(np.uint64)
    counts = np.minimum(lengths.astype(np.int64)[zones] - before, _MOVED_AT_A_TIME)
    first = 0
    for stop in _cut_by_weight(counts, _MOVED_AT_A_TIME):
        moved = _moved(source, firsts[first:stop], counts[first:stop])
        yield moved._replace(zones=zones[first:stop][moved.zones])
        first = stop


def _cut_by_weight(weights: npt.NDArray[np.int64], most: int) -> Iterator[int]:
    """Yield where groups of about so much weight end."""
    total = np.cumsum(weights)
    stop = 0
    while stop < len(weights):
        before = int(total[stop - 1]) if stop else 0
        stop = max(int(np.searchsorted(total, before + most, "right")), stop + 1)
        yield stop


def _moved(source: Source, firsts: Numbers, counts: npt.NDArray[np.int64]) -> Moved:
    zones = np.repeat(np.arange(len(firsts)), counts)
    within = np.arange(len(zones)) - (np.cumsum(counts) - counts)[zones]
    rows, is_kept = source.translate(firsts[zones] + within.astype(np.uint64))
    zones, rows = zones[is_kept], rows[is_kept]
    if ((rows[1:] < rows[:-1]) & (zones[1:] == zones[:-1])).any():
        order = np.lexsort((rows, zones))
        zones, rows = zones[order], rows[order]
    ids = rows >> np.uint64(OFFSET_BITS)
    is_first = np.ones(len(rows) + 1, np.bool_)
    is_first[1:-1] = (zones[1:] != zones[:-1]) | (ids[1:] != ids[:-1])
    edges = np.flatnonzero(is_first)
    places = _places(rows[edges[:-1]], rows[edges[1:] - 1])
    return Moved(zones[edges[:-1]], places)


def moved_nulls(sources: Sequence[Source], name: str) -> RowBitmaps | None:
    """Return the rows with nulls of some segments; None when one does not record them."""
    found = RowBitmaps()
    for source in sources:
        known = stored_nulls(source.files, name)
        if known is None:
            return None
        rows, is_kept = source.translate(known)
        found.add(rows[is_kept])
    return found
