"""A general-purpose compressor (zstd, lz4) around another encoding.

In a chunk only the first buffer is compressed; as a buffer of its own the whole of it is; per value
each value is compressed alone. The framing is in ``kernels.compression``.
"""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import (
    Block,
    Chunks,
    Compression,
    FixedWidth,
    VariableWidth,
    for_buffers,
    for_chunks,
    for_values,
)
from lancetable.format.encoding.kernels.compression import decompress
from lancetable.format.encoding.kernels.ragged import Ragged

LARGEST_CHUNK = 64 << 20
LARGEST_VALUE = 1 << 31
LARGEST_RATIO = 1 << 16


@dataclass(frozen=True, slots=True)
class General:
    """Compressed bytes; ``inner`` says what they are once decompressed."""

    scheme: str
    inner: Compression

    def __str__(self) -> str:
        return f"{self.scheme}({self.inner})"

    @property
    def buffer_count(self) -> int:
        """As many as the inner encoding has."""
        return for_chunks(self.inner).buffer_count

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Decompress the first buffer of each chunk, then decode all chunks together."""
        first = self._decompressed(chunks.buffers[0], LARGEST_CHUNK)
        buffers = (first, *chunks.buffers[1:])
        return for_chunks(self.inner).decode_chunks(Chunks(buffers, chunks.counts))

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Decompress each piece, then decode all together."""
        inner = for_buffers(self.inner)
        return inner.decode_blocks(self._decompressed(pieces, LARGEST_VALUE), counts)

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Decompress every value."""
        inner = for_values(self.inner)
        if not isinstance(stored, VariableWidth):
            raise CorruptError(f"{self} cannot encode single values")
        pieces = Ragged(stored.data, stored.offsets[:-1], np.diff(stored.offsets))
        parts = self._parts(pieces, LARGEST_VALUE)
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        data = np.frombuffer(b"".join(parts), np.uint8)
        return inner.decode_values(VariableWidth(offsets, data))

    def _parts(self, pieces: Ragged, limit: int) -> list[bytes]:
        view = pieces.data.data
        return [
            decompress(self.scheme, view[a : a + size], min(limit, size * LARGEST_RATIO))
            for a, size in zip(pieces.starts.tolist(), pieces.sizes.tolist(), strict=True)
        ]

    def _decompressed(self, pieces: Ragged, limit: int) -> Ragged:
        parts = self._parts(pieces, limit)
        sizes = np.array([len(part) for part in parts], np.int64)
        # Inner encodings address whole words, so every piece must start on a word.
        room = sizes + -sizes % 8
        if len(parts) > 1 and (room != sizes).any():
            parts = [part + bytes(-len(part) % 8) for part in parts]
        return Ragged(np.frombuffer(b"".join(parts), np.uint8), np.cumsum(room) - room, sizes)
