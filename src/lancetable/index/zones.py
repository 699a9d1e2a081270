"""Cut the rows of a build into zones: runs of live rows of one fragment."""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.index.base import ROW


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


def varint(number: int) -> bytes:
    """Return a number as messages store it."""
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
