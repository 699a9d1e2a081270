"""Keep the rows of a source in memory, or in files when they do not fit.

Rows that do not fit go to files of Arrow batches on the local disk, divided by their key: rows with
one key are in one part, and each part alone fits. A part that is still too large is divided again
by further bits of the hashed keys.

::

    source ──► memory                           it fits: one part
       │
       └─────► 16 files by the first 4 bits     those that fit together are a part
                    └──► files by further bits  where one alone does not fit

The files have no names: they are gone when nothing refers to them any more, whatever happens to
this process. They are mapped for reading, so that the system may drop their pages.

A ``RowBuffer`` returns the rows of a part in any order. Arrow takes rows of most types by their
number, but not of views and runs, and dictionaries may differ from batch to batch; such columns are
kept as plain values.
"""

import mmap
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO

import numpy as np
import pyarrow as pa

from lancetable.errors import SchemaError, StoreError
from lancetable.format.arrays import Offsets
from lancetable.format.encoding.kernels.xxhash import Hashes, hash_words
from lancetable.format.schema.types import storage_type
from lancetable.operations.input.casts import CastPlanner, Step
from lancetable.operations.keys.keys import codes_of

_types = pa.types


def kept_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which values of a type can be kept."""
    type_ = storage_type(type_)
    if _types.is_string_view(type_):
        return pa.large_string()
    if _types.is_binary_view(type_):
        return pa.large_binary()
    if _types.is_dictionary(type_) or _types.is_run_end_encoded(type_):
        return kept_type(type_.value_type)
    if _types.is_struct(type_):
        return pa.struct([child.with_type(kept_type(child.type)) for child in type_])
    for is_kind, make in _LISTS:
        if is_kind(type_):
            return make(type_.value_field.with_type(kept_type(type_.value_type)))
    return type_


_LISTS = (
    (_types.is_list, pa.list_),
    (_types.is_large_list, pa.large_list),
    (_types.is_list_view, pa.list_),
    (_types.is_large_list_view, pa.large_list),
)


def kept_step(name: str, type_: pa.DataType) -> Step | None:
    """Return how arrays of a type become what can be kept, ``None`` when they are."""
    planner = CastPlanner()
    step = planner.plan(name, type_, kept_type(type_))
    if planner.mismatches:
        raise SchemaError(f"column {name!r} of type {type_} cannot be looked up row by row")
    return step


class RowBuffer:
    """Batches of one schema, read by the number of a row."""

    __slots__ = ("_batches", "_maps", "_starts", "schema")

    def __init__(
        self,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        maps: Sequence[mmap.mmap] = (),
    ) -> None:
        self.schema = schema
        self._maps = tuple(maps)
        self._batches = [batch for batch in batches if batch.num_rows]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])

    def __reduce__(self) -> tuple[object, ...]:
        return RowBuffer, (self.schema, self._batches)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    def release(self) -> None:
        """Give back the memory of rows that are mapped; they are read again when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self._maps:
                mapped.madvise(mmap.MADV_DONTNEED)

    def joined(self, other: "RowBuffer") -> "RowBuffer":
        """Return the rows of both, of one schema, without a copy."""
        batches = [*self._batches, *other._batches]  # noqa: SLF001 - the same class
        return RowBuffer(self.schema, batches, (*self._maps, *other._maps))  # noqa: SLF001

    def select(self, names: Sequence[str]) -> "RowBuffer":
        """Return the same rows with some of the columns, which is less to send elsewhere."""
        chosen = [batch.select(list(names)) for batch in self._batches]
        return RowBuffer(pa.schema([self.schema.field(name) for name in names]), chosen)

    def batches(self, names: Sequence[str]) -> list[pa.RecordBatch]:
        """Return some columns of all rows without a copy."""
        return [batch.select(list(names)) for batch in self._batches]

    def take(self, rows: Offsets, names: Sequence[str]) -> pa.RecordBatch:
        """Return rows in the given order."""
        if len(self._batches) == 1:
            return self._batches[0].select(list(names)).take(pa.array(rows))
        is_ascending = bool((rows[1:] >= rows[:-1]).all())
        order = None if is_ascending else np.argsort(rows, kind="stable")
        ascending = rows if order is None else rows[order]
        edges = np.searchsorted(ascending, self._starts)
        pieces = []
        for number, batch in enumerate(self._batches):
            low, high = int(edges[number]), int(edges[number + 1])
            if low < high:
                places = pa.array(ascending[low:high] - self._starts[number])
                pieces.append(batch.select(list(names)).take(places))
        schema = pa.schema([self.schema.field(name) for name in names])
        if not pieces:
            nothing = [pa.nulls(0, one.type) for one in schema]
            return pa.RecordBatch.from_arrays(nothing, schema=schema) if names else _no_columns(0)
        joined = pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
        if order is None:
            return joined
        pieces.clear()
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return joined.take(pa.array(back))


def _no_columns(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


Keys = Callable[[pa.RecordBatch], Sequence[pa.Array]]
"""Gives the key columns of a batch in comparable form."""

ROW_BYTES = 128
"""About what a row costs beside its values: the index of keys, and what is decided about it."""
LEAST_BYTES = 64 * 1024
"""Parts are not made smaller than this, as each costs a look at all keys of the table."""
_MOST_BITS = 4
"""How many bits of a hash divide rows at once, so that few files are written together."""
_HASH_BITS = 64


def keep(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    memory_limit: int,
    *,
    keys: Keys | None = None,
    folder: str | None = None,
) -> list[RowBuffer]:
    """Return all rows, in parts that need about ``memory_limit`` bytes each.

    Rows with the same key are in the same part. Without ``keys`` there is one part, on disk when it
    is large. ``folder`` is where files go, by default where the system keeps such files.

    Raises:
        StoreError: the rows cannot be written to the disk.
    """
    limit = max(memory_limit, LEAST_BYTES)
    held: list[pa.RecordBatch] = []
    weight = 0
    waiting = iter(batches)
    for batch in waiting:
        held.append(batch)
        weight += _weight(batch)
        if weight > limit:
            break
    else:
        return [RowBuffer(schema, held)]
    everything = chain(_popped(held), waiting)
    with ExitStack() as opened:
        place = SpillPlace(schema, folder, opened)
        if keys is None:
            file = SpillFile(place)
            for batch in everything:
                file.write(batch)
            return [file.kept()]
        return _packed(_divided(_Division(place, keys, limit), everything, 0, _MOST_BITS), limit)


def _packed(parts: Iterable[tuple[RowBuffer, int]], limit: int) -> list[RowBuffer]:
    """Join parts that fit into the limit together, as each costs a look at the table."""
    packed: list[RowBuffer] = []
    held = 0
    for part, weight in parts:
        if packed and held + weight <= limit:
            packed[-1] = packed[-1].joined(part)
            held += weight
        else:
            packed.append(part)
            held = weight
    return packed


def _popped(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, letting go of each."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _weight(batch: pa.RecordBatch) -> int:
    weight: int = batch.nbytes + ROW_BYTES * batch.num_rows
    return weight


@dataclass(frozen=True, slots=True)
class SpillPlace:
    """Schema, folder and open files of spilled rows."""

    schema: pa.Schema
    folder: str | None
    opened: ExitStack

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Say what to do when the disk refuses."""
        try:
            yield
        except OSError as cause:
            where = self.folder or tempfile.gettempdir()
            raise StoreError(
                f"{where}: rows cannot be spilled to this folder: "
                f"{cause.strerror or cause}; make room, name another folder or allow more memory"
            ) from cause


class SpillFile:
    """Batches in a file without a name."""

    def __init__(self, place: SpillPlace) -> None:
        self._place = place
        self.weight = 0
        with place.refusals():
            self._file: IO[bytes] = tempfile.TemporaryFile(prefix="lancetable-", dir=place.folder)  # noqa: SIM115
            place.opened.callback(self._file.close)
            # Dictionaries may differ from batch to batch, which the stream format allows.
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), place.schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        with self._place.refusals():
            self._writer.write_batch(batch)
        self.weight += _weight(batch)

    def kept(self) -> RowBuffer:
        """Finish the file and return its rows, which are read when they are needed."""
        with self._place.refusals(), closing(self._file):
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        # Arrow refers to the map for as long as any of its rows is in use.
        kept = RowBuffer(
            self._place.schema, list(pa.ipc.open_stream(pa.py_buffer(mapped))), [mapped]
        )
        kept.release()
        return kept


@dataclass(frozen=True, slots=True)
class _Division:
    """Division of rows: the keys, and the size of a part."""

    place: SpillPlace
    keys: Keys
    limit: int

    def hashes(self, batch: pa.RecordBatch, first: int) -> Hashes:
        """Return the hashed keys; ``first`` is the number of the batch's first row."""
        codes = codes_of(self.keys(batch))
        hashes = hash_words(codes.values)
        if codes.is_valid is not None:
            # A key with a null equals no other, so such rows may go anywhere.
            numbers = np.arange(first, first + batch.num_rows, dtype=np.uint64)
            hashes = np.where(codes.is_valid, hashes, hash_words(numbers))
        return hashes


def _divided(
    division: _Division, batches: Iterable[pa.RecordBatch], used: int, bits: int
) -> Iterator[tuple[RowBuffer, int]]:
    """Yield parts of rows and their weight, divided by bits of hashes of which some were used."""
    for file, is_one_key in _split(division, batches, _HASH_BITS - used - bits, bits):
        weight = file.weight
        part = file.kept()
        left = _HASH_BITS - used - bits
        if weight <= division.limit or is_one_key or not left:
            yield part, weight
        else:
            # Parts come out unevenly, so there is some room left in each.
            wanted = (weight * 5 // (division.limit * 4)).bit_length()
            further = min(max(wanted, 1), _MOST_BITS, left)
            yield from _divided(division, _released(part), used + bits, further)


def _released(part: RowBuffer) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, letting go of their memory."""
    for batch in part.batches(part.schema.names):
        yield batch
        part.release()


def _split(
    division: _Division, batches: Iterable[pa.RecordBatch], shift: int, bits: int
) -> list[tuple[SpillFile, bool]]:
    """Write rows to files by some bits of their hashed keys; say which hold a single key."""
    files: dict[int, SpillFile] = {}
    buffers: dict[int, list[pa.RecordBatch]] = {}
    seen: dict[int, tuple[int, int]] = {}
    fanout = 1 << bits
    held = first = 0
    for batch in batches:
        hashes = division.hashes(batch, first)
        first += batch.num_rows
        digits = ((hashes >> np.uint64(shift)) & np.uint64(fanout - 1)).astype(np.uint8)
        order = np.argsort(digits, kind="stable")
        moved, ranked = batch.take(pa.array(order)), hashes[order]
        edges = np.searchsorted(digits[order], np.arange(fanout + 1))
        for digit in range(fanout):
            low, high = int(edges[digit]), int(edges[digit + 1])
            if low < high:
                buffers.setdefault(digit, []).append(moved.slice(low, high - low))
                least, most = int(ranked[low:high].min()), int(ranked[low:high].max())
                known = seen.get(digit, (least, most))
                seen[digit] = (min(known[0], least), max(known[1], most))
        held += int(batch.nbytes)
        if held > division.limit // 4:
            _flush(division, files, buffers)
            held = 0
    _flush(division, files, buffers)
    return [(files[digit], seen[digit][0] == seen[digit][1]) for digit in sorted(files)]


def _flush(
    division: _Division, files: dict[int, SpillFile], buffers: dict[int, list[pa.RecordBatch]]
) -> None:
    """Write what waits for each file as one batch."""
    while buffers:
        digit, waiting = buffers.popitem()
        if digit not in files:
            files[digit] = SpillFile(division.place)
        for batch in pa.Table.from_batches(waiting).combine_chunks().to_batches():
            files[digit].write(batch)
