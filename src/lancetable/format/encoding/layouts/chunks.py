"""The contents of a mini-block chunk, and the repetition index that maps rows to chunks.

| size | content |
|---|---|
| u16 | number of level entries; 0 if there are no levels |
| u16 | bytes of repetition levels, if the page has them |
| u16 | bytes of definition levels, if the page has them |
| u16 or u32 (large) each | bytes of each value buffer |
| | the parts in this order, header and parts each padded to 8 bytes |

The repetition index has two u64 per chunk: how many rows end in it, and how many entries after the
last row end belong to a row that goes on in the next chunk. A chunk starts with the rest of a row
(a preamble) exactly when the chunk before has entries left over.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Levels, Rows
from lancetable.format.encoding.blocks import (
    Compression,
    fixed_words,
    for_buffers,
)
from lancetable.format.encoding.kernels.ragged import Ragged
from lancetable.format.encoding.kernels.tables import row_firsts


@dataclass(frozen=True, slots=True)
class ChunkShape:
    """The parts that the chunks of a page have."""

    rep: Compression | None
    def_: Compression | None
    buffer_count: int
    is_large: bool

    @property
    def header_bytes(self) -> int:
        """Size of a chunk header, padding included."""
        sizes = 4 if self.is_large else 2
        plain = 2 + 2 * (self.rep is not None) + 2 * (self.def_ is not None)
        return (plain + sizes * self.buffer_count + 7) // 8 * 8


class Parts(NamedTuple):
    """The parts of some chunks."""

    levels: Integers
    rep: Ragged | None
    def_: Ragged | None
    buffers: tuple[Ragged, ...]

    def pick(self, numbers: Integers | slice) -> "Parts":
        """Return the parts of some of the chunks."""
        return Parts(
            self.levels[numbers],
            None if self.rep is None else self.rep.pick(numbers),
            None if self.def_ is None else self.def_.pick(numbers),
            tuple(buffer.pick(numbers) for buffer in self.buffers),
        )


def take_apart(shape: ChunkShape, data: Bytes, starts: Integers) -> Parts:
    """Find the parts of chunks; chunk i is ``data[starts[i] : starts[i + 1]]``.

    Raises:
        CorruptError: a chunk is shorter than its header says.
    """
    head = shape.header_bytes
    begin, end = starts[:-1], starts[1:]
    if (end - begin < head).any():
        raise CorruptError("a chunk is shorter than its header")
    words = data[: len(data) // 2 * 2].view("<u2")
    cursor = begin // 2
    levels = words[cursor].astype(np.int64)
    cursor = cursor + 1
    sizes: list[Integers] = []
    for _ in range((shape.rep is not None) + (shape.def_ is not None)):
        sizes.append(words[cursor].astype(np.int64))
        cursor = cursor + 1
    for _ in range(shape.buffer_count):
        sizes.append(_size(words, cursor, is_large=shape.is_large))
        cursor = cursor + 1 + shape.is_large
    parts: list[Ragged] = []
    place = begin + head
    for size in sizes:
        parts.append(Ragged(data, place, size))
        place = place + (size + 7) // 8 * 8
    if (place > end).any():
        raise CorruptError("a chunk is shorter than its parts")
    rep = parts.pop(0) if shape.rep is not None else None
    def_ = parts.pop(0) if shape.def_ is not None else None
    return Parts(levels, rep, def_, tuple(parts))


def _size(words: npt.NDArray[Any], cursor: Integers, *, is_large: bool) -> Integers:
    low = words[cursor].astype(np.int64)
    return low | words[cursor + 1].astype(np.int64) << 16 if is_large else low


def decode_levels(shape: ChunkShape, parts: Parts) -> tuple[Levels | None, Levels | None]:
    """Decode the repetition and definition levels of chunks."""
    return (
        _levels(shape.rep, parts.rep, parts.levels),
        _levels(shape.def_, parts.def_, parts.levels),
    )


def _levels(
    compression: Compression | None, pieces: Ragged | None, counts: Integers
) -> Levels | None:
    if compression is None or pieces is None:
        return None
    levels = for_buffers(compression, "levels").decode_blocks(pieces, counts)
    words = fixed_words(levels, "levels")
    if words.dtype.itemsize != 2 or len(words) != int(counts.sum()):
        raise CorruptError("the levels of a page are not 16 bits each")
    return words


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowIndex:
    """``firsts[i]`` rows start before chunk i; one more number than there are chunks."""

    firsts: Integers

    def chunks_of(self, rows: Rows) -> Integers:
        """Return the chunks that hold any part of the rows."""
        if isinstance(rows, range):
            first, last = self._chunk_of(np.array([rows.start, rows.stop])).tolist()
            return np.arange(first, last + 1)
        edges = np.zeros(len(self.firsts), np.int64)
        np.add.at(edges, self._chunk_of(rows), 1)
        np.add.at(edges, self._chunk_of(rows + 1) + 1, -1)
        return np.flatnonzero(np.cumsum(edges[:-1]) > 0)

    def _chunk_of(self, rows: Integers) -> Integers:
        """Return the chunk each row starts in; the end of the page counts as the last chunk."""
        place = np.searchsorted(self.firsts, rows, side="right") - 1
        return np.minimum(place, len(self.firsts) - 2)

    def row_of(self, is_start: Mask, numbers: Integers, levels: Integers) -> Integers:
        """Return the row that each entry of some chunks belongs to."""
        seen = np.zeros(len(is_start) + 1, np.int64)
        np.cumsum(is_start, out=seen[1:])
        edges = np.zeros(len(levels) + 1, np.int64)
        np.cumsum(levels, out=edges[1:])
        if (np.diff(seen[edges]) != np.diff(self.firsts)[numbers]).any():
            raise CorruptError("the repetition index of a page does not match its levels")
        base = self.firsts[numbers] - 1 - seen[edges[:-1]]
        return np.repeat(base, levels) + seen[1:]


def parse_row_index(data: Bytes, chunks: int, rows: int) -> RowIndex:
    """Decode a repetition index.

    Raises:
        CorruptError: it does not fit the page.
    """
    quick = row_firsts(data, chunks, rows)
    if quick is not None:
        return RowIndex(quick)
    if len(data) != chunks * 16:
        raise CorruptError(f"the repetition index of {chunks} chunks has {len(data)} bytes")
    pairs = data.view("<u8").reshape(chunks, 2)
    if chunks and int(pairs.max()) > 1 << 48:
        raise CorruptError("the repetition index of a page counts more rows than can be")
    table = pairs.astype(np.int64)
    ends, leaves = table[:, 0], table[:, 1] > 0
    preamble = np.append(False, leaves[:-1])
    starting = ends + leaves - preamble
    firsts = np.zeros(chunks + 1, np.int64)
    np.cumsum(starting, out=firsts[1:])
    if (starting < 0).any() or int(firsts[-1]) != rows:
        raise CorruptError(f"the repetition index of a page of {rows} rows counts others")
    return RowIndex(firsts)
