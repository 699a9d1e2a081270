"""Mini-block pages: small values in chunks of a few kilobytes.

| buffer | content |
|---|---|
| 0 | a word per chunk: ``(bytes / 8 - 1) << 4 | log2(values)``, u16, or u32 when large |
| 1 | the chunks |
| 2 | the dictionary, if there is one |
| last | the repetition index, if there are lists: u64 rows ended, u64 entries left over |

The last chunk holds what remains of ``items``, whatever its word says. ``chunks.py`` takes a chunk
apart.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import (
    Bytes,
    Integers,
    Levels,
    Page,
    PageBuffer,
    Reading,
    Rows,
    Span,
)
from lancetable.format.encoding.blocks import (
    Block,
    Chunks,
    Compression,
    Indices,
    RunBlock,
    RunCompression,
    addressable,
    decode_one,
    fixed_words,
    for_chunks,
    in_runs,
)
from lancetable.format.encoding.kernels.tables import ChunkTable, chunk_table
from lancetable.format.encoding.layout import Entries
from lancetable.format.encoding.layouts.chunks import (
    ChunkShape,
    Parts,
    RowIndex,
    decode_levels,
    parse_row_index,
    take_apart,
)
from lancetable.format.encoding.listscan import ListChunks, can_scan, scan_lists
from lancetable.format.encoding.repdef import Layers, Mask, check_levels, visible

LARGEST_CHUNK_VALUES = 1 << 15


@dataclass(frozen=True, slots=True)
class MiniBlock:
    """The description of a mini-block page."""

    shape: ChunkShape
    values: Compression
    dictionary: Compression | None
    dictionary_items: int
    layers: Layers
    has_row_index: bool
    items: int

    @property
    def runs(self) -> RunCompression | None:
        """The storage of the values, when the page consists only of runs."""
        if self.shape.def_ is None and not self.layers.max_rep and self.dictionary is None:
            return in_runs(self.values)
        return None

    def __str__(self) -> str:
        text = f"miniblock values={self.values}"
        if self.shape.rep is not None:
            text += f" rep={self.shape.rep}"
        if self.shape.def_ is not None:
            text += f" def={self.shape.def_}"
        if self.dictionary is not None:
            text += f" dict={self.dictionary}x{self.dictionary_items}"
        return text

    def open(self, page: Page, *, is_mapped: bool) -> Reading["MiniBlockPage"]:
        """Read the chunk words, the dictionary and the repetition index."""
        wanted = [page.buffer(0)]
        if self.dictionary is not None:
            wanted.append(page.buffer(2))
        if self.has_row_index:
            wanted.append(page.buffer(len(page.buffers) - 1))
        got = yield [buffer.whole() for buffer in wanted]
        views = [np.frombuffer(view, np.uint8) for view in got]
        table = self._chunk_table(views[0], page.buffer(1))
        counts = table.counts
        items = None
        if self.dictionary is not None:
            items = decode_one(self.dictionary, views[1], self.dictionary_items)
            if len(items) < self.dictionary_items:
                raise CorruptError("the dictionary of a page is shorter than the page says")
        index = None
        if self.has_row_index:
            index = parse_row_index(views[-1], len(counts), page.rows)
        elif not self.layers.max_rep and page.rows != self.items:
            raise CorruptError(f"a page of {page.rows} rows holds {self.items} values")
        tables = ChunkTables(table, items, index)
        return MiniBlockPage(self, page, tables, is_mapped=is_mapped)

    def _chunk_table(self, words: Bytes, chunks: PageBuffer) -> ChunkTable:
        size = 4 if self.shape.is_large else 2
        if len(words) % size:
            raise CorruptError("the chunk words of a page have an odd size")
        quick = chunk_table(words, size, self.items, chunks.size)
        if quick is not None:
            return quick
        table = words.view(f"<u{size}").astype(np.int64)
        starts = np.zeros(len(table) + 1, np.int64)
        np.cumsum(((table >> 4) + 1) * 8, out=starts[1:])
        if int(starts[-1]) != chunks.size:
            raise CorruptError(
                f"the chunks of a page take {chunks.size} bytes, their words say {int(starts[-1])}"
            )
        counts = np.left_shift(1, table & 15)
        if len(counts):
            if (counts[:-1] < 2).any():
                raise CorruptError("a chunk that is not the last holds a single value")
            last = self.items - int(counts[:-1].sum())
            if not 0 < last <= LARGEST_CHUNK_VALUES:
                raise CorruptError(f"the chunks of a page do not add up to {self.items} values")
            counts[-1] = last
        elif self.items:
            raise CorruptError(f"a page of {self.items} values has no chunks")
        firsts = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=firsts[1:])
        uniform = int(counts[0]) if _is_uniform(counts) else 0
        return ChunkTable(starts, counts, firsts, uniform)


class ChunkTables(NamedTuple):
    """The tables of a page: its chunks, the items of its dictionary, its row index."""

    chunks: ChunkTable
    items: Block | None
    row_index: RowIndex | None


class MiniBlockPage:
    """A mini-block page whose tables are known."""

    def __init__(
        self, layout: MiniBlock, page: Page, tables: ChunkTables, *, is_mapped: bool
    ) -> None:
        self.layout = self._layout = layout
        self.tables = tables
        self._buffer = page.buffer(1)
        self._rows = page.rows
        self._starts, self._counts, self._firsts, self._uniform = tables.chunks
        self._items, self._index = tables.items, tables.row_index
        self._is_mapped = is_mapped
        self._shift = max(self._uniform.bit_length() - 1, 0) if len(self._counts) > 1 else 0
        self._parts: Parts | None = None
        self._prepared: object | None = None

    def read(self, rows: Rows) -> Reading[Entries]:
        """Read rows of the page."""
        if self._layout.layers.max_rep:
            return self._read_lists(rows)
        if isinstance(rows, range):
            return self._read_range(rows)
        return self._read_many(rows)

    def read_runs(self, values: RunCompression, rows: range) -> Reading[tuple[RunBlock, slice]]:
        """Read the runs that hold some rows of a page of runs, and say where in them these are."""
        first, last = self._chunk_of(rows.start), self._chunk_of(rows.stop - 1)
        numbers = np.arange(first, last + 1)
        parts = yield from self._take_apart(numbers)
        runs = values.runs_of_chunks(Chunks(parts.buffers, self._counts[numbers]))
        skipped = int(self._firsts[first])
        return runs, slice(rows.start - skipped, rows.stop - skipped)

    @property
    def shift(self) -> int:
        """All chunks but the last hold ``1 << shift`` values; -1 when they do not."""
        return (self._shift or -1) if len(self._counts) > 1 else 15

    def mapped(self) -> Reading[Bytes]:
        """Return the bytes of all chunks, which are mapped."""
        (view,) = yield [self._buffer.whole()]
        return np.frombuffer(view, np.uint8)

    def _read_range(self, rows: range) -> Reading[Entries]:
        first, last = self._chunk_of(rows.start), self._chunk_of(rows.stop - 1)
        if self._is_mapped and last - first + 1 == len(self._counts):
            parts = yield from self._all_parts()
            return self._decode(parts, self._counts, slice(rows.start, rows.stop))
        numbers = np.arange(first, last + 1)
        parts = yield from self._take_apart(numbers)
        skipped = int(self._firsts[first])
        keep = slice(rows.start - skipped, rows.stop - skipped)
        return self._decode(parts, self._counts[numbers], keep)

    def _read_many(self, rows: Integers) -> Reading[Entries]:
        chunk, inside = self._places_of(rows)
        values = addressable(self._layout.values)
        if self._is_mapped and values is not None and self._layout.shape.def_ is None:
            parts = yield from self._all_parts()
            if self._prepared is None:
                self._prepared = values.prepare(Chunks(parts.buffers, self._counts))
            if self._prepared is not None:
                block = values.gather(self._prepared, chunk, inside)
                return Entries(self._looked_up(block), None, None, slice(0, len(rows)))
        numbers, place = np.unique(chunk, return_inverse=True)
        parts = yield from self._take_apart(numbers)
        picked = Chunks(parts.buffers, self._counts[numbers])
        items = (np.cumsum(picked.counts) - picked.counts)[place] + inside
        prepared = None if values is None else values.prepare(picked)
        if values is None or prepared is None:
            return self._decode(parts, picked.counts, items)
        block = values.gather(prepared, place, inside)
        _, def_ = decode_levels(self._layout.shape, parts)
        check_levels(None, def_, self._layout.layers)
        if def_ is not None:
            self._check_visible(def_, parts, picked.counts)
            def_ = def_[items]
        return Entries(self._looked_up(block), None, def_, slice(0, len(rows)))

    def _read_lists(self, rows: Rows) -> Reading[Entries]:
        if self._index is None:
            numbers = np.arange(len(self._counts))
        else:
            numbers = self._index.chunks_of(rows)
        parts = yield from self._take_apart(numbers)
        if isinstance(rows, range) and self._index is not None and can_scan(self._layout.layers):
            scanned = self._scan_lists(rows, parts, numbers)
            if scanned is not None:
                return scanned
        entries = self._decode(parts, self._counts[numbers], slice(0, 0))
        if entries.rep is None:
            raise CorruptError("a page with lists has no repetition levels")
        is_start = entries.rep == self._layout.layers.max_rep
        if self._index is None:
            number = np.cumsum(is_start) - 1
            if len(number) == 0 or number[0] != 0 or int(number[-1]) + 1 != self._rows:
                raise CorruptError(f"a page of {self._rows} rows holds levels for others")
        else:
            number = self._index.row_of(is_start, numbers, parts.levels)
        return entries._replace(keep=_kept(number, rows))

    def _scan_lists(self, rows: range, parts: Parts, numbers: Integers) -> Entries | None:
        """Read neighbouring rows in one walk; None when something about them is wrong."""
        rep, def_ = decode_levels(self._layout.shape, parts)
        index = self._index
        if rep is None or index is None or (def_ is not None and len(def_) != len(rep)):
            return None
        firsts = index.firsts[int(numbers[0]) : int(numbers[-1]) + 2]
        counts = self._counts[numbers]
        chunks = ListChunks(parts.levels, counts, firsts)
        scan = scan_lists(rows, rep, def_, chunks, self._layout.layers)
        if scan is None:
            return None
        return Entries(self._block(parts, counts), None, None, slice(0, 0), scan)

    def _block(self, parts: Parts, counts: Integers) -> Block:
        chunks = Chunks(parts.buffers, counts)
        return self._looked_up(for_chunks(self._layout.values).decode_chunks(chunks))

    def _chunk_of(self, item: int) -> int:
        if self._uniform:
            return item // self._uniform
        return int(np.searchsorted(self._firsts, item, side="right")) - 1

    def _places_of(self, items: Integers) -> tuple[Integers, Integers]:
        """Return the chunk of each item and its place inside it."""
        if self._shift:
            return items >> self._shift, items & (self._uniform - 1)
        chunk = np.searchsorted(self._firsts, items, side="right") - 1
        return chunk, items - self._firsts[chunk]

    def _take_apart(self, numbers: Integers) -> Reading[Parts]:
        """Find the parts of some chunks, all chunks at once where bytes cost nothing."""
        if self._is_mapped:
            parts = yield from self._all_parts()
            if len(numbers) == len(self._counts):
                return parts
            if int(numbers[-1]) - int(numbers[0]) + 1 == len(numbers):
                return parts.pick(slice(int(numbers[0]), int(numbers[-1]) + 1))
            return parts.pick(numbers)
        data, starts = yield from self._fetch(numbers)
        return take_apart(self._layout.shape, data, starts)

    def _all_parts(self) -> Reading[Parts]:
        if self._parts is None:
            (view,) = yield [self._buffer.whole()]
            data = np.frombuffer(view, np.uint8)
            self._parts = take_apart(self._layout.shape, data, self._starts)
        return self._parts

    def _fetch(self, numbers: Integers) -> Reading[tuple[Bytes, Integers]]:
        """Ask for runs of neighbouring chunks and lay them side by side."""
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        firsts = numbers[np.append(0, breaks)]
        lasts = numbers[np.append(breaks - 1, len(numbers) - 1)]
        spans: list[Span] = [
            self._buffer.part(int(self._starts[a]), int(self._starts[b + 1]))
            for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)
        ]
        views = yield spans
        data = np.frombuffer(views[0] if len(views) == 1 else b"".join(views), np.uint8)
        starts = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(np.diff(self._starts)[numbers], out=starts[1:])
        return data, starts

    def _decode(self, parts: Parts, counts: Integers, keep: slice | Integers) -> Entries:
        rep, def_ = decode_levels(self._layout.shape, parts)
        check_levels(rep, def_, self._layout.layers)
        if def_ is not None or rep is not None:
            self._check_visible(def_, parts, counts)
        return Entries(self._block(parts, counts), rep, def_, keep)

    def _check_visible(self, def_: Levels | None, parts: Parts, counts: Integers) -> None:
        """Compare the number of values of each chunk with what its levels say."""
        shown = None if def_ is None else visible(def_, self._layout.layers)
        if shown is None:
            good = bool((parts.levels == counts).all())
        else:
            seen = np.zeros(len(shown) + 1, np.int64)
            np.cumsum(shown, out=seen[1:])
            edges = np.zeros(len(counts) + 1, np.int64)
            np.cumsum(parts.levels, out=edges[1:])
            good = bool((np.diff(seen[edges]) == counts).all())
        if not good:
            raise CorruptError("the levels of a chunk do not match its number of values")

    def _looked_up(self, block: Block) -> Block:
        if self._items is None:
            return block
        return Indices(fixed_words(block, "dictionary indices"), self._items)


def _is_uniform(counts: Integers) -> bool:
    """Return whether all chunks hold equally many values, the last one at most as many."""
    if not len(counts) or int(counts[-1]) > int(counts[0]):
        return False
    return bool((counts[:-1] == counts[0]).all())


def _kept(number: Integers, rows: Rows) -> slice | Mask:
    """Return which entries belong to the wanted rows; ``number`` is the row of each entry."""
    if isinstance(rows, range):
        first, last = np.searchsorted(number, [rows.start, rows.stop])
        return slice(int(first), int(last))
    place = np.minimum(np.searchsorted(rows, number), len(rows) - 1)
    return np.asarray(rows[place] == number)
