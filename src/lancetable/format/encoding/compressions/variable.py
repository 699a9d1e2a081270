"""Values of any length behind an array of offsets.

In a chunk: ``(n + 1)`` offsets of 32 or 64 bits, counted from the start of the buffer, then the
bytes. As a buffer of its own:

| 32 bit | 64 bit | content |
|---|---|---|
| u32 = 32 | u64 = 64 | width of the offsets |
| u32 | u64 | where the bytes start |
| u32 x (n + 1) | u64 x (n + 1) | offsets, counted from where the bytes start |
| bytes | bytes | the values |
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Chunks, FixedWidth, VariableWidth
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.ragged import Ragged, gather_slices, join
from lancetable.format.encoding.kernels.texts import TextChunks, decode_texts


@dataclass(frozen=True, slots=True)
class Variable:
    """Variable-width values; ``bits`` is the width of an offset, 32 or 64."""

    bits: int

    def __str__(self) -> str:
        return f"variable{self.bits}"

    @property
    def buffer_count(self) -> int:
        """One buffer holds offsets and bytes."""
        return 1

    @property
    def offset_bytes(self) -> int:
        """Bytes of an offset."""
        return self.bits // 8

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Bring all offsets to one base and all bytes together."""
        pieces, counts = chunks.buffers[0], chunks.counts
        size = self.bits // 8
        if LIBRARY is not None:
            return VariableWidth(*decode_texts(LIBRARY, [TextChunks(pieces, counts)], size))
        edges = join(pieces.resized((counts + 1) * size)).view(f"<u{size}").astype(np.int64)
        lasts = np.cumsum(counts + 1) - 1
        firsts = lasts - counts
        first, last = edges[firsts], edges[lasts]
        if (first < (counts + 1) * size).any() or (last > pieces.sizes).any():
            raise CorruptError("the offsets of a chunk point outside its bytes")
        lengths = np.diff(edges)
        lengths[lasts[:-1]] = 0
        if len(lengths) and int(lengths.min()) < 0:
            raise CorruptError("the offsets of a chunk decrease")
        kept = np.delete(lengths, lasts[:-1]) if len(counts) > 1 else lengths
        offsets = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=offsets[1:])
        return VariableWidth(
            offsets, join(Ragged(pieces.data, pieces.starts + first, last - first))
        )

    def prepare(self, chunks: Chunks) -> Ragged:
        """Check once that every chunk holds all of its offsets."""
        pieces = chunks.buffers[0]
        if ((chunks.counts + 1) * (self.bits // 8) > pieces.sizes).any():
            raise CorruptError("a chunk is too short for its offsets")
        return pieces

    def gather(self, prepared: Ragged, chunk: Integers, inside: Integers) -> Block:
        """Address single values."""
        size = self.bits // 8
        starts = prepared.starts[chunk]
        words = prepared.data[: len(prepared.data) // size * size].view(f"<u{size}")
        place = starts // size + inside
        first = words[place].astype(np.int64)
        last = words[place + 1].astype(np.int64)
        if (first > last).any() or (last > prepared.sizes[chunk]).any() or (first < 0).any():
            raise CorruptError("the offsets of a chunk point outside its bytes")
        return VariableWidth(*gather_slices(prepared.data, starts + first, starts + last))

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Decode stand-alone buffers."""
        parts = [
            _decode_framed(pieces.piece(number), count)
            for number, count in enumerate(counts.tolist())
        ]
        if len(parts) == 1:
            return parts[0]
        bases = np.cumsum([0, *(int(part.offsets[-1]) for part in parts)])
        offsets = [part.offsets[:-1] + base for part, base in zip(parts, bases, strict=False)]
        return VariableWidth(
            np.concatenate([*offsets, bases[-1:]]), np.concatenate([part.data for part in parts])
        )

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Return the stored values unchanged."""
        if isinstance(stored, VariableWidth):
            return stored
        raise CorruptError("values of any length are stored with a fixed width")


def _decode_framed(data: npt.NDArray[Any], count: int) -> VariableWidth:
    bits = int.from_bytes(data[:4].tobytes(), "little")
    if bits not in {32, 64}:
        raise CorruptError(f"a buffer of values of any length says its offsets have {bits} bits")
    size = bits // 8
    head = 2 * size
    if len(data) < head + (count + 1) * size:
        raise CorruptError("a buffer of values of any length is too short for its offsets")
    begin = int.from_bytes(data[size:head].tobytes(), "little")
    offsets = data[head : head + (count + 1) * size].view(f"<u{size}").astype(np.int64)
    if begin < head + (count + 1) * size or begin > len(data) or offsets[0] != 0:
        raise CorruptError("a buffer of values of any length has a wrong start")
    if (np.diff(offsets) < 0).any() or int(offsets[-1]) > len(data) - begin:
        raise CorruptError("the offsets of a buffer point outside its bytes")
    return VariableWidth(offsets, data[begin:])
