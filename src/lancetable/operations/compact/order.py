"""Order rows by columns or along a Z-order curve, with only a part of them in memory.

For a Z-order each column gives the rank of its value, and the bits of all ranks are interleaved,
highest first: rows that are near in all columns end up near each other.

The order gives for each place the row that comes there. It is cut into parts that fit in memory.
All rows are read once, in the order they had; each goes to the file of the part that its new place
is in. Then the parts are read one after the other, and their rows put in order.

::

    rows ──► file of places 0 …        ──► in order ──► out
        ├──► file of places each …     ──► in order ──► out
        └──► …

The files have no names and disappear with this process. Rows that fit in memory stay there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.expression.operators.compare import total_order
from lancetable.operations.compact.options import CompactOptions
from lancetable.operations.keys.spill import SpillFile, SpillPlace

Order = npt.NDArray[np.int64]
_CURVE_BITS = 64


def order_of(table: pa.Table, options: CompactOptions) -> Order:
    """Return the rows of a table, by number, in the requested order; nulls come last.

    Floats are in the order of predicates: -NaN first, NaN last.

    Raises:
        InputError: a column has a type that cannot be sorted.
    """
    if options.sort_by:
        return _sorted(_keys(table, options.sort_by), options.sort_by)
    return _curve(_keys(table, options.z_order_by), options.z_order_by)


def _keys(table: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
    keys = []
    for number, name in enumerate(names):
        column = table.column(number)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
            raise InputError(f"rows cannot be sorted by column {name!r} of type {column.type}")
        if pa.types.is_floating(column.type):
            column = pa.chunked_array([total_order(chunk) for chunk in column.chunks] or [[]])
        keys.append(column)
    return keys


def _sorted(keys: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Order:
    # Ties keep the order they had, which Arrow promises only for the last of several keys.
    table = pa.table(
        [*keys, pa.array(np.arange(len(keys[0])))], [*map(str, range(len(keys))), "row"]
    )
    by = [(name, "ascending") for name in table.column_names]
    try:
        found = pc.sort_indices(table, sort_keys=by)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as cause:
        raise InputError(f"rows cannot be sorted by {', '.join(names)}: {cause}") from cause
    order: Order = found.to_numpy().astype(np.int64)
    return order


def _curve(keys: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Order:
    bits = _CURVE_BITS // len(keys)
    if not bits:
        raise InputError(f"z_order_by takes at most {_CURVE_BITS} columns, not {len(keys)}")
    rows = len(keys[0])
    value = np.zeros(rows, np.uint64)
    ranks = [_ranks(key, name, min(bits, 32)) for key, name in zip(keys, names, strict=True)]
    for bit in reversed(range(min(bits, 32))):
        for rank in ranks:
            value = value << np.uint64(1) | (rank >> np.uint64(bit)) & np.uint64(1)
    return np.argsort(value, kind="stable")


def _ranks(key: pa.ChunkedArray, name: str, bits: int) -> npt.NDArray[np.uint64]:
    """Return the rank of each value among all values, spread over so many bits."""
    try:
        dense = pc.rank(key, sort_keys="ascending", tiebreaker="dense")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as cause:
        raise InputError(f"rows cannot be sorted by {name}: {cause}") from cause
    ranks: npt.NDArray[np.uint64] = dense.to_numpy().astype(np.uint64) - np.uint64(1)
    most = int(ranks.max()) if ranks.size else 0
    shift = bits - most.bit_length()
    return ranks << np.uint64(shift) if shift > 0 else ranks >> np.uint64(-shift)


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
