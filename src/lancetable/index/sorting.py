"""Values with their rows, sorted by value within a memory limit.

Nulls come first, floats are in IEEE total order, equal values keep their order. Rows are sorted in
runs; when there are several, they wait in local files of Arrow batches and are merged block by
block. Some runs that wait become one before there are too many files to read at a time.
"""

import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import CorruptError, StoreError
from lancetable.format.arrays import numbers
from lancetable.format.encoding.kernels.ordering import order_rows, text_order
from lancetable.index.base import ROW, VALUE, Numbers, Sink
from lancetable.index.codes import codes_of, has_codes, values_of

RUN_SHARE, BLOCK_SHARE = 6, 512
"""A run takes this part of the memory, while it is collected and sorted a few times over; a block
of a run that is merged takes that part."""
FAN_IN = 64
"""So many runs that wait become one."""
_MOST_BYTES = 1 << 30
"""A run has no more, so that the offsets of its texts fit into 32 bits."""
_LEAST_BLOCK, _MOST_BLOCK = 64, 64 * 1024


class Pairs(NamedTuple):
    """Values and their rows."""

    values: pa.Array
    rows: Numbers

    @property
    def weight(self) -> int:
        """How many bytes they take."""
        weight: int = self.values.nbytes + self.rows.nbytes
        return weight

    def slice(self, first: int, stop: int) -> "Pairs":
        """Return the pairs from one place up to another."""
        return Pairs(self.values.slice(first, stop - first), self.rows[first:stop])


Stream: TypeAlias = Iterator[Pairs]


def pairs_of(rows: Iterable[pa.RecordBatch]) -> Stream:
    """Yield the pairs of the batches of a build."""
    for batch in rows:
        yield Pairs(batch.column(VALUE), batch.column(ROW).to_numpy())


def joined(parts: Sequence[Pairs]) -> Pairs:
    """Return the pairs of all parts."""
    if len(parts) == 1:
        return parts[0]
    values = pa.concat_arrays([part.values for part in parts])
    return Pairs(values, np.concatenate([part.rows for part in parts]))


def in_order(parts: list[Pairs]) -> Pairs:
    """Return the pairs of all parts sorted by value; the list is empty afterwards."""
    if has_codes(parts[0].values.type):
        return _in_order_of_codes(parts)
    values, rows = joined(parts)
    parts.clear()
    order = _order_of(values)
    return Pairs(values.take(numbers(order)), rows[order])


def _in_order_of_codes(parts: list[Pairs]) -> Pairs:
    type_, nulls = parts[0].values.type, [np.empty(0, np.uint64)]
    count = sum(len(part.rows) - part.values.null_count for part in parts)
    block = np.empty(2 * count, np.uint64)
    at = 0
    for values, rows in parts:
        codes = codes_of(values)
        if values.null_count:
            is_valid = np.asarray(values.is_valid())
            nulls.append(rows[~is_valid])
            codes, rows = codes[is_valid], rows[is_valid]  # noqa: PLW2901 - those that are left
        block[at : at + len(codes)] = codes
        block[count + at : count + at + len(codes)] = rows
        at += len(codes)
    parts.clear()
    order_rows(block)
    without = np.concatenate(nulls)
    values = values_of(block[:count], type_, nulls=len(without))
    return Pairs(
        values, np.concatenate([without, block[count:]]) if len(without) else block[count:]
    )


def _order_of(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the places of values that have no codes, in their order."""
    if not _is_text(values.type):
        order = pc.sort_indices(values).to_numpy().astype(np.int64)  # nulls last
        return np.roll(order, values.null_count)
    if not values.null_count:
        return text_order(values.cast(pa.large_binary()))
    is_valid = np.asarray(values.is_valid())
    order = text_order(values.drop_null().cast(pa.large_binary()))
    return np.concatenate([np.flatnonzero(~is_valid), np.flatnonzero(is_valid)[order]])


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pt.is_string(type_)
        or pt.is_large_string(type_)
        or pt.is_binary(type_)
        or pt.is_large_binary(type_)
        or pt.is_fixed_size_binary(type_)
    )


def sort(stream: Stream, sink: Sink, memory_bytes: int) -> Stream:
    """Yield all pairs sorted by value.

    Raises:
        StoreError: runs cannot be put aside.
    """
    limit = min(max(memory_bytes // RUN_SHARE, 1), _MOST_BYTES)
    waiting = _Waiting(sink, max(memory_bytes // BLOCK_SHARE, 1))
    held: list[Pairs] = []
    weight = 0
    for pairs in stream:
        held.append(pairs)
        weight += pairs.weight
        if weight >= limit:
            waiting.add(iter([in_order(held)]))
            weight = 0
    last = [iter([in_order(held)])] if held else []
    yield from merge([*waiting.streams(), *last])


class Kept:
    """Pairs that are read again, all at once: in memory, or in a file when they are many."""

    def __init__(self, sink: Sink, memory_bytes: int) -> None:
        self._limit = max(memory_bytes // RUN_SHARE, 1)
        self._block_bytes = max(memory_bytes // BLOCK_SHARE, 1)
        self._sink = sink
        self._held: list[Pairs] = []
        self._weight = 0
        self._files: list[IO[bytes]] = []

    def add(self, pairs: Pairs) -> None:
        """Keep more."""
        self._held.append(pairs)
        self._weight += pairs.weight
        if self._weight >= self._limit:
            self._files.append(_written(iter(self._held), self._sink, self._block_bytes))
            self._held, self._weight = [], 0

    def pairs(self) -> Stream:
        """Yield all, in the order in which they were added."""
        for file in self._files:
            yield from _read(file)
        yield from self._held


class _Waiting:
    """Sorted runs in files: those of each level were made of ``FAN_IN`` of the level before."""

    def __init__(self, sink: Sink, block_bytes: int) -> None:
        self._sink = sink
        self._block_bytes = block_bytes
        self._levels: list[list[IO[bytes]]] = [[]]

    def add(self, stream: Stream) -> None:
        """Put a run aside."""
        self._levels[0].append(_written(stream, self._sink, self._block_bytes))
        for number, level in enumerate(self._levels):
            if len(level) < FAN_IN:
                return
            if number + 1 == len(self._levels):
                self._levels.append([])
            merged = merge([*map(_read, level)])
            self._levels[number + 1].append(_written(merged, self._sink, self._block_bytes))
            self._levels[number] = []

    def streams(self) -> list[Stream]:
        """Return the pairs of all runs, the first first."""
        return [_read(file) for level in reversed(self._levels) for file in level]


def _written(stream: Stream, sink: Sink, block_bytes: int) -> IO[bytes]:
    """Write pairs to a file in blocks of about so many bytes."""
    try:
        file = sink.spill()
        writer = None
        for pairs in stream:
            count = len(pairs.rows)
            block = min(max(count * block_bytes // max(pairs.weight, 1), _LEAST_BLOCK), _MOST_BLOCK)
            columns = [pairs.values, numbers(pairs.rows)]
            batch = pa.RecordBatch.from_arrays(columns, [VALUE, ROW])
            writer = writer or pa.ipc.new_stream(pa.PythonFile(file, "w"), batch.schema)
            for first in range(0, count, block):
                writer.write_batch(batch.slice(first, block))
        if writer is not None:
            writer.close()
        file.flush()
    except OSError as cause:
        raise StoreError(
            f"{tempfile.gettempdir()}: sorted rows cannot be put aside there: "
            f"{cause.strerror or cause}; make room or allow more memory"
        ) from cause
    return file


def _read(file: IO[bytes]) -> Stream:
    with file:
        file.seek(0)
        yield from pairs_of(pa.ipc.open_stream(pa.PythonFile(file, "r")))


_Key: TypeAlias = int | bytes | Decimal


class _Run:
    """A sorted run that is being merged: the pairs at hand, of which some are taken."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.pairs: Pairs | None = None
        self._taken = 0
        self.refill()

    def refill(self) -> None:
        """Fetch the next pairs once all at hand are taken."""
        while self.pairs is None or self._taken == len(self.pairs.rows):
            self.pairs, self._taken = next(self.stream, None), 0
            if self.pairs is None:
                return
            self._up_to = _places_up_to(self.pairs.values)

    def last(self) -> _Key | None:
        """Return what stands for the last value at hand; None for a null."""
        assert self.pairs is not None
        values = self.pairs.values
        return _key(values.slice(len(values) - 1)) if values[-1].is_valid else None

    def take(self, most: _Key | None) -> Pairs:
        """Take the pairs up to a value."""
        assert self.pairs is not None
        first = self._taken
        self._taken = max(first, self._up_to(most))
        return self.pairs.slice(first, self._taken)

    def rest(self) -> Stream:
        """Yield the pairs that are not taken."""
        if self.pairs is not None:
            yield self.pairs.slice(self._taken, len(self.pairs.rows))
        yield from self.stream


def _key(value: pa.Array) -> _Key:
    """Return what stands for a value, given as an array of one, and compares as it does."""
    if has_codes(value.type):
        return int(codes_of(value)[0])
    key: bytes | Decimal = (value.cast(pa.large_binary()) if _is_text(value.type) else value)[
        0
    ].as_py()
    return key


def _places_up_to(values: pa.Array) -> Callable[[_Key | None], int]:
    """Return how many of some sorted values are at most another; nulls are less than any."""
    nulls, valid = values.null_count, values.slice(values.null_count)
    codes = codes_of(valid) if has_codes(values.type) else None

    def up_to(most: _Key | None) -> int:
        if most is None:
            return int(nulls)
        if codes is not None:
            return int(nulls + codes.searchsorted(np.uint64(most), "right"))
        return int(nulls + bisect_right(_Keys(valid), most))

    return up_to


class _Keys(Sequence[Any]):
    """The keys of values, each made when it is looked at."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as bisect asks
        return _key(self._values.slice(place, 1))


def checked(stream: Stream) -> Stream:
    """Yield the pairs of a stream that a file says is sorted.

    Raises:
        CorruptError: it is not.
    """
    before: Pairs | None = None
    for pairs in stream:
        if not len(pairs.rows):
            continue
        edge = (
            [] if before is None else [before.slice(len(before.rows) - 1, len(before.rows)).values]
        )
        if not _is_sorted(pa.concat_arrays([*edge, pairs.values])):
            raise CorruptError("the values of an index are not in order")
        before = pairs
        yield pairs


def _is_sorted(values: pa.Array) -> bool:
    nulls = values.null_count
    valid = values.slice(nulls)
    if valid.null_count:
        return False
    if has_codes(values.type):
        codes = codes_of(valid)
        return not (codes[1:] < codes[:-1]).any()
    plain = valid.cast(pa.large_binary()) if _is_text(values.type) else valid
    falls = pc.less(plain.slice(1), plain.slice(0, max(len(plain) - 1, 0)))
    return not pc.any(falls).as_py()


def merge(streams: Sequence[Stream]) -> Stream:
    """Yield the pairs of sorted streams in the order of all."""
    runs = [run for run in map(_Run, streams) if run.pairs is not None]
    while len(runs) > 1:
        lasts = [run.last() for run in runs]
        most = None if None in lasts else min(last for last in lasts if last is not None)
        taken = [run.take(most) for run in runs]
        yield in_order([pairs for pairs in taken if len(pairs.rows)])
        for run in runs:
            run.refill()
        runs = [run for run in runs if run.pairs is not None]
    for run in runs:
        yield from run.rest()


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
