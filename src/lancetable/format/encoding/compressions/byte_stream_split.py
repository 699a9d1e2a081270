"""Byte j of all values of a chunk, for j = 0, 1, ...: floats compress better that way."""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.blocks import Block, Chunks, FixedWidth


@dataclass(frozen=True, slots=True)
class ByteStreamSplit:
    """Values of 32 or 64 bits, split by byte."""

    bits: int

    def __str__(self) -> str:
        return f"bss{self.bits}"

    @property
    def buffer_count(self) -> int:
        """One buffer holds all streams."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Put the bytes of each value back together."""
        pieces, width = chunks.buffers[0], self.bits // 8
        if (pieces.sizes != chunks.counts * width).any():
            raise CorruptError(f"a byte-split chunk does not have {width} bytes for each value")
        out = np.empty((int(chunks.counts.sum()), width), np.uint8)
        first = 0
        for number, count in enumerate(chunks.counts.tolist()):
            out[first : first + count] = pieces.piece(number).reshape(width, count).T
            first += count
        return FixedWidth(out, width)
