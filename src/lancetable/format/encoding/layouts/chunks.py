"""The contents of a mini-block chunk.

| size | content |
|---|---|
| u16 | number of level entries; 0 if there are no levels |
| u16 | bytes of repetition levels, if the page has them |
| u16 | bytes of definition levels, if the page has them |
| u16 or u32 (large) each | bytes of each value buffer |
| | the parts in this order, header and parts each padded to 8 bytes |
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers, Levels
from lancetable.format.encoding.blocks import (
    Compression,
    fixed_words,
    for_buffers,
)
from lancetable.format.encoding.kernels.ragged import Ragged


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
