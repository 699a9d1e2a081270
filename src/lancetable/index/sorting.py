"""Values with their rows, sorted by value within a memory limit.

Nulls come first, floats are in IEEE total order. Rows are sorted in runs; when there are several,
they wait in local files of Arrow batches and are merged block by block.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.arrays import numbers
from lancetable.index.base import ROW, VALUE, Numbers, Sink

if TYPE_CHECKING:
    from pathlib import Path

RUN_SHARE = 6
"""A run takes this part of the memory: it is collected, joined, sorted and written."""
BLOCKS_PER_RUN = 32
_LEAST_BLOCK, _MOST_BLOCK = 1024, 64 * 1024
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


class Pairs(NamedTuple):
    """Values and their rows."""

    values: pa.Array
    rows: Numbers

    def slice(self, first: int, stop: int) -> "Pairs":
        """Return the pairs from one place up to another."""
        return Pairs(self.values.slice(first, stop - first), self.rows[first:stop])


Stream: TypeAlias = Iterator[Pairs]


def pairs_of(rows: Iterable[pa.RecordBatch]) -> Stream:
    """Yield the pairs of the batches of a build."""
    for batch in rows:
        yield Pairs(batch.column(VALUE), batch.column(ROW).to_numpy())


def keys_of(values: pa.Array) -> pa.Array:
    """Return values that compare in the order of the index; nulls stay nulls."""
    if not pa.types.is_floating(values.type):
        return values
    unsigned = np.dtype(_BITS[values.type.bit_width // 8])
    bits = np.frombuffer(values.buffers()[1], unsigned)[values.offset : values.offset + len(values)]
    sign = unsigned.type(1 << (values.type.bit_width - 1))
    ordered = np.where(bits & sign, ~bits, bits | sign)
    return numbers(ordered, np.asarray(values.is_valid()) if values.null_count else None)


def joined(parts: Sequence[Pairs]) -> Pairs:
    """Return the pairs of all parts."""
    if len(parts) == 1:
        return parts[0]
    values = pa.concat_arrays([part.values for part in parts])
    return Pairs(values, np.concatenate([part.rows for part in parts]))


def in_order(pairs: Pairs) -> Pairs:
    """Return pairs sorted by value; equal values keep their order."""
    order = pc.sort_indices(keys_of(pairs.values)).to_numpy()  # nulls last
    order = np.roll(order, pairs.values.null_count)
    return Pairs(pairs.values.take(numbers(order)), pairs.rows[order])


def sort(stream: Stream, sink: Sink, memory_bytes: int) -> Stream:
    """Yield all pairs sorted by value; equal values keep their order."""
    limit = max(memory_bytes // RUN_SHARE, 1)
    folder: Path | None = None
    spilled: list[str] = []
    held: list[Pairs] = []
    weight = 0
    for pairs in stream:
        held.append(pairs)
        weight += pairs.values.nbytes + pairs.rows.nbytes
        if weight >= limit:
            folder = folder or sink.spill()
            spilled.append(str(folder / f"{len(spilled)}.arrow"))
            _spill(in_order(joined(held)), spilled[-1])
            held, weight = [], 0
    last = [iter([in_order(joined(held))])] if held else []
    del held
    yield from merge([*map(_read, spilled), *last])


def _spill(pairs: Pairs, path: str) -> None:
    block = min(max(len(pairs.rows) // BLOCKS_PER_RUN, _LEAST_BLOCK), _MOST_BLOCK)
    batch = pa.RecordBatch.from_arrays([pairs.values, numbers(pairs.rows)], [VALUE, ROW])
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        for first in range(0, batch.num_rows, block):
            writer.write_batch(batch.slice(first, block))


def _read(path: str) -> Stream:
    with pa.OSFile(path) as file:
        reader = pa.ipc.open_file(file)
        yield from pairs_of(map(reader.get_batch, range(reader.num_record_batches)))


class _Run:
    """A sorted run that is being merged: the pairs at hand and their keys."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.pairs: Pairs | None = None
        self.refill()

    def refill(self) -> None:
        """Fetch the next pairs once all at hand are taken."""
        while self.pairs is None or not len(self.pairs.rows):
            self.pairs = next(self._stream, None)
            if self.pairs is None:
                return
            self.keys = keys_of(self.pairs.values)

    def take(self, most: pa.Scalar) -> Pairs:
        """Take the pairs up to a key."""
        assert self.pairs is not None
        end = self.keys.null_count
        if most.is_valid:
            end += pc.sum(pc.less_equal(self.keys, most)).as_py() or 0
        taken, total = self.pairs.slice(0, end), len(self.pairs.rows)
        self.pairs, self.keys = self.pairs.slice(end, total), self.keys.slice(end)
        return taken


def merge(streams: Sequence[Stream]) -> Stream:
    """Yield the pairs of sorted streams in the order of all."""
    runs = [run for run in map(_Run, streams) if run.pairs is not None]
    while len(runs) > 1:
        lasts = pa.concat_arrays([run.keys.slice(len(run.keys) - 1) for run in runs])
        most = pa.scalar(None, lasts.type) if lasts.null_count else pc.min(lasts)
        yield in_order(joined([run.take(most) for run in runs]))
        for run in runs:
            run.refill()
        runs = [run for run in runs if run.pairs is not None]
    for run in runs:
        if run.pairs is not None:
            yield run.pairs
            yield from run._stream  # noqa: SLF001 - the only one left


def whole_pages(stream: Stream, rows: int) -> Stream:
    """Yield the same pairs in parts that begin at multiples of a number of rows."""
    held: list[Pairs] = []
    size = 0
    for pairs in stream:
        held.append(pairs)
        size += len(pairs.rows)
        if size >= max(rows, _MOST_BLOCK):
            whole = joined(held)
            full = size // rows * rows
            held, size = [whole.slice(full, size)], size - full
            yield whole.slice(0, full)
    if size:
        yield joined(held)


def groups(stream: Stream) -> Iterator[tuple[pa.Array, list[Numbers]]]:
    """Yield each distinct value of a sorted stream, as an array of one, with all its rows."""
    value: pa.Array | None = None
    rows: list[Numbers] = []
    for pairs in stream:
        keys = keys_of(pairs.values)
        starts = _changes(keys)
        if value is not None and keys_of(value).equals(keys.slice(0, 1)):
            starts[0] = -1  # the first group goes on with the one before
        for number, start in enumerate(starts.tolist()):
            stop = int(starts[number + 1]) if number + 1 < len(starts) else len(keys)
            if start >= 0:
                if value is not None:
                    yield value, rows
                value, rows = pairs.values.slice(start, 1), []
            rows.append(pairs.rows[max(start, 0) : stop])
    if value is not None:
        yield value, rows


def _changes(keys: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the places where a sorted array begins and where its value changes."""
    nulls = keys.null_count
    valid = keys.slice(nulls)
    if len(valid) < 2:
        differs = np.zeros(max(len(valid) - 1, 0), np.bool_)
    else:
        differs = np.asarray(pc.not_equal(valid.slice(1), valid.slice(0, len(valid) - 1)))
    changes = np.flatnonzero(differs) + 1 + nulls
    first = [0] if nulls else []
    return np.concatenate([np.array([*first, *([nulls] if len(valid) else [])], np.int64), changes])
