"""Values without bytes: ``fixed_size_binary:0``, of which only the number is known."""

from dataclasses import dataclass

import numpy as np

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Chunks, FixedWidth, Repeated
from lancetable.format.encoding.kernels.ragged import Ragged

NO_BYTES = FixedWidth(np.empty(0, np.uint8), 0)


@dataclass(frozen=True, slots=True)
class Empty:
    """Flat values of 0 bits."""

    def __str__(self) -> str:
        return "flat0"

    @property
    def buffer_count(self) -> int:
        """One buffer, which holds nothing."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Count the values of the chunks."""
        return Repeated(NO_BYTES, int(chunks.counts.sum()))

    def prepare(self, chunks: Chunks) -> Ragged:
        """Return the buffers, of which none is looked at."""
        return chunks.buffers[0]

    def gather(self, prepared: Ragged, chunk: Integers, inside: Integers) -> Block:
        """Count single values."""
        del prepared, chunk
        return Repeated(NO_BYTES, len(inside))
