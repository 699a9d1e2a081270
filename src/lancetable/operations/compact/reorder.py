"""Rows in another order, of which only a part is in memory at a time.

The order names for each place the row that comes there. It is cut into parts that fit. All rows are
read once, in the order they had; each goes to the file of the part that its new place is in. Then
the parts are taken up one after the other, and their rows put in order.

::

    rows ──► file of places 0 …        ──► in order ──► out
        ├──► file of places each …     ──► in order ──► out
        └──► …

The files have no names and are gone with this process. Rows that fit altogether stay in memory.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from lancetable.operations.compact.order import Order
from lancetable.operations.keys.spill import SpillFile, SpillPlace

MOST_PARTS = 256
"""So many files are open at a time at most; parts are larger where they would be more."""


def reordered(
    batches: Iterable[pa.RecordBatch],
    order: Order,
    rows_at_a_time: Callable[[], int],
    folder: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows in the given order.

    Args:
        batches: all rows, in the order in which they are numbered.
        order: for each new place the number of its row.
        rows_at_a_time: how many rows fit in memory; called once the first batch is read.
        folder: where files go, by default where the system keeps such files.

    Raises:
        StoreError: the rows cannot be written to the disk.
    """
    waiting = iter(batches)
    first = next(waiting, None)
    if first is None:
        return
    each = max(rows_at_a_time(), -(-len(order) // MOST_PARTS), 1)
    if len(order) <= each:
        yield from _in_order([first, *waiting], order)
        return
    with ExitStack() as opened:
        place = SpillPlace(first.schema, folder, opened)
        files = [SpillFile(place) for _ in range(-(-len(order) // each))]
        parts = np.empty(len(order), np.int64)
        parts[order] = np.arange(len(order)) // each
        _distribute(_joined(first, waiting), parts, files)
        del first
        pool = pa.default_memory_pool()
        files.reverse()
        for start in range(0, len(order), each):
            kept = files.pop().kept()
            yield from _in_order(kept.batches(kept.schema.names), order[start : start + each])
            del kept
            # What was freed is kept for later by the pool; the next part would take as much again.
            pool.release_unused()


def _joined(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _distribute(batches: Iterator[pa.RecordBatch], parts: Order, files: list[SpillFile]) -> None:
    """Write each row to the file of its part."""
    start = 0
    for batch in batches:
        wanted = parts[start : start + batch.num_rows]
        start += batch.num_rows
        ascending = np.argsort(wanted, kind="stable")
        moved = batch.take(pa.array(ascending))
        edges = np.searchsorted(wanted[ascending], np.arange(len(files) + 1)).tolist()
        for number, file in enumerate(files):
            if edges[number] < edges[number + 1]:
                file.write(moved.slice(edges[number], edges[number + 1] - edges[number]))


def _in_order(batches: list[pa.RecordBatch], numbers: Order) -> list[pa.RecordBatch]:
    """Return rows, which come ascending by their numbers, in the order of the numbers."""
    places = np.empty(len(numbers), np.int64)
    places[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
    taken = pa.Table.from_batches(batches).take(pa.array(places))
    made: list[pa.RecordBatch] = taken.combine_chunks().to_batches()
    return made
