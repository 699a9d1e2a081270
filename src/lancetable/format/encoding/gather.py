"""Single rows of mapped columns, in any order, without decoding their neighbours.

The columns of many data files are read in one go: a leaf has a slot per file, the slot the records
of the file's pages (``page_records.py``), and the compiled functions walk through all rows of all
leaves. What they write lies in one piece of memory from the Arrow pool, of which the arrays of the
result are parts.

Rows of flat columns become one batch in a single compiled call (``kernels/c/batch.c``). For a few
rows nearly all time goes into what surrounds the finding of values: records, buffers, an object for
every array. Compiled code does all of it here, and Arrow takes the batch over as one.
"""

import ctypes
from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from lancetable.format.encoding.assemble import LeafRun
from lancetable.format.encoding.base import Integers, Levels
from lancetable.format.encoding.kernels.addressing import Gather, Out
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import (
    ArrowArrayRecord,
    ColumnRecord,
    Columns,
    TakeRecord,
)
from lancetable.format.encoding.leaf import Kind, Shape, check_text
from lancetable.format.encoding.repdef import Layers, Mask, unravel
from lancetable.format.limits import read_limits

MISSING_ROOM = 1024
SHARED_VALUES = 8 * 1024
SHARED_BYTES = 2 * 1024 * 1024
"""So much is worth more than one thread."""
SAMPLES = 8
"""How many places are looked at to see whether the rows are in memory."""

ASCII_END = 128

OUTS = {
    Shape.FIXED: Out.FIXED,
    Shape.BOOL: Out.BITS,
    Shape.VARIABLE: Out.TEXT,
    Shape.LIST: Out.FIXED,
}


Threads: TypeAlias = Callable[[], int]
"""Says how many threads can run at once just now, the caller's included."""


class GatherLeaf(NamedTuple):
    """A leaf of the result: its kind, and the full layers of its column."""

    kind: Kind
    layers: Layers
    out: Out
    width: int
    has_lists: bool


class Places(NamedTuple):
    """Addresses of rows: of the slot of each, 0 for the first only, and of its number."""

    positions: int
    offsets: int
    rows: int
    kept: object = None


class Missing(NamedTuple):
    """A page that has to be opened: of which leaf, in which slot, which of its pages."""

    leaf: int
    slot: int
    page: int


def places_of(offsets: Integers, positions: Integers | None = None) -> Places:
    """Return the places of rows from arrays."""
    kept = (
        np.ascontiguousarray(offsets),
        None if positions is None else np.ascontiguousarray(positions),
    )
    return Places(0 if kept[1] is None else address(kept[1]), address(kept[0]), len(offsets), kept)


def gather_leaf(kind: Kind, layers: Layers) -> GatherLeaf | None:
    """Return how a leaf is gathered; None for kinds that are not."""
    out = OUTS.get(kind.shape)
    width = kind.width
    if kind.shape is Shape.LIST:
        inside = kind.children[0]
        width = inside.width * kind.size
        if inside.shape is not Shape.FIXED:
            return None
    if out is None or (out is Out.FIXED and width == 0):
        return None
    return GatherLeaf(kind, layers, out, width, layers.max_rep > 0)


class GatherPlan(NamedTuple):
    """Leaves that are read together, and their records as far as every request shares them."""

    leaves: tuple[GatherLeaf, ...]
    records: type["ctypes.Array[ColumnRecord]"]
    template: bytes
    has_lists: bool
    threads: Threads

    def many_rows(self) -> int:
        """Return from how many rows on threads share the work, where there are no lists."""
        width = sum(leaf.width for leaf in self.leaves)
        return min(-(-SHARED_VALUES // len(self.leaves)), -(-SHARED_BYTES // max(width, 1)))


def gather_plan(leaves: Sequence[GatherLeaf], slots: Sequence[int], threads: Threads) -> GatherPlan:
    """Plan to read leaves whose slots are at these addresses."""
    kind = ColumnRecord * len(leaves)
    records = kind()
    for record, leaf, place in zip(records, leaves, slots, strict=True):
        record.slots, record.out, record.width = place, leaf.out, leaf.width
        record.has_lists = leaf.has_lists
        record.list_size, record.is_text = leaf.kind.size, leaf.kind.is_text
    has_lists = any(leaf.has_lists for leaf in leaves)
    return GatherPlan(tuple(leaves), kind, bytes(records), has_lists, threads)


def gather(
    library: Gather,
    plan: GatherPlan,
    places: Places,
    open_pages: Callable[[Sequence[Missing]], None],
) -> Sequence[LeafRun | None]:
    """Read rows of leaves.

    Args:
        library: the compiled functions.
        plan: what to read.
        places: which rows.
        open_pages: completes the records of pages, or marks them as unreadable.

    Returns:
        For each leaf its rows; None where a page has a shape of its own or is damaged, which its
        own reader will tell.
    """
    columns = plan.records.from_buffer_copy(plan.template)
    found = _run(library, plan, columns, places)
    if found is not None:
        return found
    _open_missing(library, columns, places, open_pages)
    chosen = [number for number, column in enumerate(columns) if not column.is_unreadable]
    if len(chosen) == len(columns):
        found = _run(library, plan, columns, places)
        if found is not None:
            return found
    runs: list[LeafRun | None] = [None] * len(columns)
    for number in chosen:
        alone = gather_plan([plan.leaves[number]], [columns[number].slots], plan.threads)
        one = _run(library, alone, alone.records.from_buffer_copy(alone.template), places)
        runs[number] = None if one is None else one[0]
    return runs


def _open_missing(
    library: Gather,
    columns: Columns,
    places: Places,
    open_pages: Callable[[Sequence[Missing]], None],
) -> None:
    listed = array("q", bytes(MISSING_ROOM * 24))
    place = listed.buffer_info()[0]
    arguments = (columns, len(columns), places.positions, places.offsets, places.rows)
    while True:
        count = library.missing(*arguments, place, MISSING_ROOM)
        if not count:
            return
        found = dict.fromkeys(zip(*[iter(listed[: 3 * count])] * 3, strict=True))
        open_pages([Missing(*missing) for missing in found])


def _run(
    library: Gather, plan: GatherPlan, columns: Columns, places: Places
) -> list[LeafRun] | None:
    positions, offsets, rows, _ = places
    count = len(columns)
    library.ahead(columns, count, positions, offsets, rows, SAMPLES)
    if plan.has_lists and library.count(columns, count, positions, offsets, rows) < 0:
        return None
    sizes = array("q", (0, 0))
    library.layout(columns, count, rows, sizes.buffer_info()[0])
    if not _fits(sizes[0], rows):
        return None
    buffer = pa.allocate_buffer(sizes[0])
    base = buffer.address
    meanwhile = bytearray(sizes[1])
    scratch = (ctypes.c_char * sizes[1]).from_buffer(meanwhile) if sizes[1] else None
    threads = _threads(plan, columns, rows)
    size = library.values(columns, count, positions, offsets, rows, base, scratch, threads)
    if size < 0 or not _fits(sizes[0] + size, rows):
        return None
    text = pa.allocate_buffer(size)
    if library.text(columns, count, rows, text.address, threads) < 0:
        return None
    memory = _Memory(buffer, base, text, text.address)
    return [
        _leaf_run(leaf, column, memory, rows)
        for leaf, column in zip(plan.leaves, columns, strict=True)
    ]


def _fits(size: int, rows: int) -> bool:
    """Return whether rows are few enough to be read at once; page by page they may fit.

    Raises:
        LimitError: they exceed the limit on a batch.
    """
    limits = read_limits()
    limits.check_batch(size, rows)
    return size <= limits.max_page_bytes


def _threads(plan: GatherPlan, columns: Columns, rows: int) -> int:
    values = size = 0
    for leaf, column in zip(plan.leaves, columns, strict=True):
        count = column.items if leaf.has_lists else rows
        values += count
        size += count * leaf.width
    return plan.threads() if values >= SHARED_VALUES or size >= SHARED_BYTES else 1


class _Memory(NamedTuple):
    """The written memory: levels, values and offsets in one buffer, text in another."""

    buffer: pa.Buffer
    base: int
    text: pa.Buffer
    text_base: int

    def levels(self, address: int, count: int) -> Levels:
        """Return a part as levels."""
        return np.frombuffer(self.buffer, np.uint16, count, address - self.base)


def _leaf_run(leaf: GatherLeaf, column: Any, memory: _Memory, rows: int) -> LeafRun:  # noqa: ANN401
    kind, layers, out, width, has_lists = leaf
    items = column.items if has_lists else rows
    place = column.values - memory.base
    if out == Out.TEXT:
        buffers = [
            None,
            memory.buffer.slice(place, (items + 1) * width),
            memory.text.slice(column.text - memory.text_base, column.bytes),
        ]
    else:
        size = items * width if width else (items + 7) // 8
        buffers = [None, memory.buffer.slice(place, size)]
    def_ = validity = None
    if column.any_level:
        def_ = memory.levels(column.def_, column.entries if has_lists else rows)
        validity = (def_[def_ <= layers.max_visible] if has_lists else def_) == 0
    made = _array(kind, items, buffers, validity)
    if kind.is_text and column.any_byte >= ASCII_END:
        check_text(made)
    if len(layers.items) == 1:
        return LeafRun(made, ())
    rep = memory.levels(column.rep, column.entries) if has_lists else None
    return LeafRun(made, unravel(rep, def_, layers, items))


def _array(
    kind: Kind, count: int, buffers: list[pa.Buffer | None], validity: Mask | None
) -> pa.Array:
    children = None
    if kind.shape is Shape.LIST:
        inside = kind.children[0]
        children = [pa.Array.from_buffers(inside.type, count * kind.size, buffers, 0)]
        buffers = [None]
    nulls = 0
    if validity is not None:
        nulls = count - int(np.count_nonzero(validity))
        buffers[0] = pa.py_buffer(np.packbits(validity, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind.type, count, buffers, nulls, 0, children)


Words: TypeAlias = "array[int]"

ARROW_ARRAY = bytes(ctypes.sizeof(ArrowArrayRecord))
"""The room of an array in Arrow's C data interface."""


class FlatTake:
    """Takes rows; ``starts`` counts the rows before each fragment, and all of them."""

    __slots__ = ("_at", "_kept", "_many", "_take", "_texts", "_threads", "types")

    def __init__(self, library: Gather, plan: GatherPlan, starts: Words, ready: Words) -> None:
        columns = plan.records.from_buffer_copy(plan.template)
        record = TakeRecord(
            columns=ctypes.addressof(columns),
            count=len(columns),
            starts=starts.buffer_info()[0],
            fragments=len(starts) - 1,
            ready=ready.buffer_info()[0],
            samples=SAMPLES,
        )
        self.types = [leaf.kind.type for leaf in plan.leaves]
        self._texts = [number for number, leaf in enumerate(plan.leaves) if leaf.kind.is_text]
        self._many, self._threads = plan.many_rows(), plan.threads
        self._take = library.take
        self._at = ctypes.addressof(record)
        self._kept = (record, columns, starts, ready)

    def numbered(self, rows: Words, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return rows by number; None when they have to be read another way.

        That way may find that there is no such row.
        """
        place, count = rows.buffer_info()
        return self._batch(None, place, count, schema)

    def placed(self, places: Places, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return rows by the positions of their fragments and their offsets in them, likewise."""
        return self._batch(places.positions, places.offsets, places.rows, schema)

    def _batch(
        self, positions: int | None, offsets: int, count: int, schema: pa.Schema
    ) -> pa.RecordBatch | None:
        room = array("q", ARROW_ARRAY)
        at = room.buffer_info()[0]
        threads = 1 if count < self._many else self._threads()
        outcome = self._take(self._at, positions, offsets, count, threads, at)
        if outcome < 0:
            return None
        batch = pa.RecordBatch._import_from_c(at, schema)  # noqa: SLF001 - documented, not listed
        for number in self._texts if outcome else ():
            check_text(batch.column(number))
        return batch


def is_flat(plan: GatherPlan) -> bool:
    """Return whether the leaves of a plan are columns of their own, without levels of lists."""
    return bool(plan.leaves) and all(len(leaf.layers.items) == 1 for leaf in plan.leaves)
