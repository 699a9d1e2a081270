"""Values as they are: ``n * bits`` bits, least significant bit first."""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.blocks import Bits, Block, Chunks, FixedWidth, VariableWidth
from lancetable.format.encoding.kernels.ragged import Ragged, gather, join


@dataclass(frozen=True, slots=True)
class Flat:
    """Fixed-width values; ``bits`` is 1 or a multiple of 8."""

    bits: int

    def __str__(self) -> str:
        return f"flat{self.bits}"

    @property
    def buffer_count(self) -> int:
        """One buffer holds everything."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Join the chunks."""
        return self.decode_blocks(chunks.buffers[0], chunks.counts)

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Join the pieces."""
        if self.bits == 1:
            return _join_bits(pieces.resized((counts + 7) // 8), counts)
        width = self.bits // 8
        return FixedWidth(join(pieces.resized(counts * width)), width)

    def prepare(self, chunks: Chunks) -> Ragged:
        """Check once that every chunk holds all of its values."""
        pieces = chunks.buffers[0]
        if (chunks.counts * self.bits > pieces.sizes * 8).any():
            raise CorruptError("a chunk is too short for the values it should hold")
        return pieces

    def gather(self, prepared: Ragged, chunk: Integers, inside: Integers) -> Block:
        """Address single values."""
        starts = prepared.starts[chunk]
        if self.bits == 1:
            found = prepared.data[starts + (inside >> 3)] >> (inside & 7).astype(np.uint8)
            return Bits(np.packbits(found & 1, bitorder="little"), len(inside))
        width = self.bits // 8
        return FixedWidth(gather(prepared.data, starts + inside * width, width), width)

    def widened(self, factor: int) -> "Flat":
        """Return the encoding that sees ``factor`` neighbouring values as one."""
        return Flat(self.bits * factor)

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Return the stored values unchanged."""
        if isinstance(stored, FixedWidth) and stored.width * 8 == self.bits:
            return stored
        raise CorruptError(f"values of {self.bits} bits are stored with another width")


def _join_bits(pieces: Ragged, counts: Integers) -> Bits:
    total = int(counts.sum())
    if not (counts[:-1] % 8).any():
        return Bits(join(pieces), total)
    parts = [
        np.unpackbits(pieces.piece(number), count=count, bitorder="little")
        for number, count in enumerate(counts.tolist())
    ]
    whole: Bytes = np.packbits(np.concatenate(parts), bitorder="little")
    return Bits(whole, total)
