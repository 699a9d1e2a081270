"""Zones: neighbouring rows of a fragment.

Files list them as ``fragment_id``, ``zone_start`` and ``zone_length`` (u64). The length spans
deleted rows, too.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS, RowSet
from lancetable.index.base import ROW, Numbers, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.row_map import decode_row_map

PLACES = ("fragment_id", "zone_start", "zone_length")


class Zones:
    """The zones that a file lists; addresses in zones are not translated."""

    def __init__(self, files: SegmentFiles, name: str) -> None:
        places = files.read(name, PLACES)
        fragments, starts, lengths = (np.asarray(one).astype(np.uint64) for one in places)
        self._fragments = frozenset(np.unique(fragments).tolist())
        self._starts = (fragments << np.uint64(OFFSET_BITS)) + starts
        self._stops = self._starts + lengths

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that have zones."""
        return fragments & self._fragments

    def counted(self, rows: Numbers) -> npt.NDArray[np.int64]:
        """Return how many of some rows each zone has; -1 when one of them is in no zone."""
        order = np.argsort(self._starts)
        places = np.searchsorted(self._starts[order], rows, side="right") - 1
        zones = order[np.maximum(places, 0)]
        if len(rows) and ((places < 0) | (rows >= self._stops[zones])).any():
            return np.full(len(order), -1)
        return np.bincount(zones, minlength=len(order))

    def rows(self, zones: Mask) -> RowSet:
        """Return the rows of some zones, which may match."""
        places = zip(self._starts[zones].tolist(), self._stops[zones].tolist(), strict=True)
        return RowSet.from_ranges(places, is_exact=False)


class Zone(NamedTuple):
    """Live rows of a fragment; ``length`` also counts the deleted rows between them."""

    fragment: int
    start: int
    length: int
    rows: pa.RecordBatch


def zones_of(rows: Iterable[pa.RecordBatch], most: int) -> Iterator[Zone]:
    """Yield the zones of the batches of a build, each of at most so many live rows."""
    held: pa.RecordBatch | None = None
    for batch in rows:
        joined = batch if held is None else pa.concat_batches([held, batch])
        cuts = _cuts(joined, most)
        for first, stop in itertools.pairwise(cuts):
            yield _zone(joined.slice(first, stop - first))
        held = joined.slice(cuts[-1]) if joined.num_rows else None
    if held is not None and held.num_rows:
        yield _zone(held)


def _cuts(batch: pa.RecordBatch, most: int) -> list[int]:
    """Return where zones begin; the last one may go on in the next batch."""
    fragments = batch.column(ROW).to_numpy() >> np.uint64(OFFSET_BITS)
    edges = [0, *(np.flatnonzero(np.diff(fragments)) + 1).tolist(), batch.num_rows]
    cuts = [cut for first, stop in itertools.pairwise(edges) for cut in range(first, stop, most)]
    return cuts or [0]


def _zone(batch: pa.RecordBatch) -> Zone:
    first, last = (batch.column(ROW)[at].as_py() for at in (0, batch.num_rows - 1))
    start = first & MAX_OFFSET
    return Zone(first >> OFFSET_BITS, start, (last & MAX_OFFSET) - start + 1, batch)


def moved_zones(source: Source, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, fragment, start and length of the zones of a segment where their rows are now.

    A zone whose rows moved apart becomes several.
    """
    places = (one.to_pylist() for one in source.files.read(name, PLACES))
    for number, (fragment, start, length) in enumerate(zip(*places, strict=True)):
        first = (fragment << OFFSET_BITS) + start
        rows, is_kept = source.translate(np.arange(first, first + length, dtype=np.uint64))
        rows = rows[is_kept]
        ids = rows >> np.uint64(OFFSET_BITS)
        for id_ in np.unique(ids).tolist():
            offsets = rows[ids == id_] & np.uint64(MAX_OFFSET)
            low, high = int(offsets.min()), int(offsets.max())
            yield number, id_, low, high + 1 - low


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


def stored_nulls(files: SegmentFiles, name: str) -> Numbers | None:
    """Return the rows with nulls of a segment; None when it does not record them."""
    number = files.metadata(name).get("null_bitmap", "")
    return decode_row_map(files.global_buffer(name, int(number))) if number.isdecimal() else None


def varint(number: int) -> bytes:
    """Return a number as messages store it."""
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
