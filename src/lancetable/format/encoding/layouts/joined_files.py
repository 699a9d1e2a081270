"""Mini-block pages of many files as one page, so that they are decoded in one step.

The chunks of a page know nothing of their page but its description. Pages that are described alike
can therefore stand one behind the other: their chunks make the chunks of one long page, in which
also chunks in the middle may hold few values. Symbol tables belong to one page each; only the step
that needs them is done page by page. Dictionaries and row indices belong to one page as well, and
pages that have them are not joined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Page, PageBuffer
from lancetable.format.encoding.blocks import Block, Chunks, VariableWidth
from lancetable.format.encoding.compressions.bitpacking import InlineBitpacking
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.fsst import Fsst
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.ragged import empty_bytes
from lancetable.format.encoding.kernels.tables import ChunkTable
from lancetable.format.encoding.kernels.texts import decode_texts
from lancetable.format.encoding.layout import Entries
from lancetable.format.encoding.layouts.miniblock import (
    LARGEST_CHUNK_VALUES,
    ChunkTables,
    MiniBlock,
    MiniBlockPage,
)

JOINABLE = (Flat, InlineBitpacking, Rle, Variable)
"""Compressions whose chunks decode alike, however many values those before them hold."""


class StoredPage(NamedTuple):
    """The bytes of a page and how many values it holds."""

    words: memoryview
    chunks: memoryview
    layout: MiniBlock


def shape_of(description: object) -> tuple[object, ...] | None:
    """Return what pages that can be joined have in common; None for a page that cannot."""
    if not isinstance(description, MiniBlock) or not description.items:
        return None
    if description.dictionary is not None or description.has_row_index:
        return None
    values: object = description.values
    if isinstance(values, Fsst) and isinstance(values.inner, Variable):
        values = (Fsst, values.inner)
    elif not isinstance(values, JOINABLE):
        return None
    if len(description.layers.items) != 1:
        return None
    return description.shape, values, description.layers


def read_joined(pages: Sequence[StoredPage]) -> Entries:
    """Decode all values of pages that are described alike.

    Raises:
        CorruptError: a page is damaged; which one is not known.
    """
    layout = pages[0].layout
    table = _table(pages, 4 if layout.shape.is_large else 2)
    size, items = int(table.starts[-1]), int(table.firsts[-1])
    data = empty_bytes(size)
    np.concatenate([np.frombuffer(page.chunks, np.uint8) for page in pages], out=data)
    if isinstance(layout.values, Fsst):
        layout = replace(layout, values=_PagedTexts(tuple(_codes(pages))))
    layout = replace(layout, items=items)
    page = Page(items, 0, (PageBuffer(0, 0), PageBuffer(0, size)), layout)
    opened = MiniBlockPage(layout, page, ChunkTables(table, None, None), is_mapped=True)
    return _answered(opened, items, data)


class _Codes(NamedTuple):
    """The text encoding of a page, and its number of chunks."""

    values: Fsst
    chunks: int


def _codes(pages: Sequence[StoredPage]) -> Iterator[_Codes]:
    for words, _, layout in pages:
        if not isinstance(layout.values, Fsst):
            raise CorruptError("pages that are coded and pages that are not cannot be joined")
        yield _Codes(layout.values, len(words) // (4 if layout.shape.is_large else 2))


@dataclass(frozen=True, slots=True)
class _PagedTexts:
    """The text of pages that have a symbol table each."""

    pages: tuple[_Codes, ...]

    def __str__(self) -> str:
        return str(self.pages[0].values)

    @property
    def buffer_count(self) -> int:
        """As many as each page has."""
        return self.pages[0].values.buffer_count

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Decode page by page, and put the text of all pages together."""
        inner = self.pages[0].values.inner
        if LIBRARY is not None and isinstance(inner, Variable):
            parts = [values.texts(own) for values, own in self._parts(chunks)]
            return VariableWidth(*decode_texts(LIBRARY, parts, inner.offset_bytes))
        return self._decoded(chunks)

    def _parts(self, chunks: Chunks) -> Iterator[tuple[Fsst, Chunks]]:
        """Yield the chunks of each page, with how they are coded."""
        first = 0
        for values, count in self.pages:
            own = slice(first, first + count)
            first += count
            pieces = tuple(buffer.pick(own) for buffer in chunks.buffers)
            yield values, Chunks(pieces, chunks.counts[own])

    def _decoded(self, chunks: Chunks) -> VariableWidth:
        texts: list[VariableWidth] = []
        for values, own in self._parts(chunks):
            block = values.decode_chunks(own)
            if not isinstance(block, VariableWidth):
                raise CorruptError("coded strings are not stored as values of any length")
            texts.append(block)
        sizes = _edges(np.array([int(text.offsets[-1] - text.offsets[0]) for text in texts]))
        parts = [
            text.offsets[:-1] + (size - int(text.offsets[0]))
            for text, size in zip(texts, sizes[:-1].tolist(), strict=True)
        ]
        data = empty_bytes(int(sizes[-1]))
        used = [text.data[int(text.offsets[0]) : int(text.offsets[-1])] for text in texts]
        np.concatenate(used, out=data)
        return VariableWidth(np.concatenate([*parts, sizes[-1:]]), data)


def _answered(opened: MiniBlockPage, items: int, data: Bytes) -> Entries:
    """Read all of a page whose only request is for its chunks."""
    reading = opened.read(range(items))
    try:
        wanted = next(reading)
        while True:
            wanted = reading.send([data.data[span.start : span.stop] for span in wanted])
    except StopIteration as finished:
        entries: Entries = finished.value
        return entries


def _table(pages: Sequence[StoredPage], width: int) -> ChunkTable:
    """Read the chunk words of all pages; the last chunk of each holds what remains."""
    if any(len(page.words) % width or not len(page.words) for page in pages):
        raise CorruptError("the chunk words of a page have an odd size")
    words = np.frombuffer(b"".join(page.words for page in pages), f"<u{width}").astype(np.int64)
    ends = np.cumsum([len(page.words) // width for page in pages])
    firsts = np.concatenate([[0], ends[:-1]])
    starts = _edges(((words >> 4) + 1) * 8)
    if (starts[ends] - starts[firsts] != [len(page.chunks) for page in pages]).any():
        raise CorruptError("the chunks of a page take other bytes than their words say")
    counts = np.left_shift(1, words & 15)
    counts[ends - 1] = 0
    if ((counts < 2).sum()) != len(pages):
        raise CorruptError("a chunk that is not the last holds a single value")
    before = _edges(counts)
    last = np.array([page.layout.items for page in pages]) - (before[ends] - before[firsts])
    if (last < 1).any() or (last > LARGEST_CHUNK_VALUES).any():
        raise CorruptError("the chunks of a page do not add up to its values")
    counts[ends - 1] = last
    return ChunkTable(starts, counts, _edges(counts), 0)


def _edges(sizes: Integers) -> Integers:
    edges = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=edges[1:])
    return edges
