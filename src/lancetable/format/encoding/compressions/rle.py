"""Runs of equal values: the values, and how often each occurs (one byte, so at most 255).

In a chunk: buffer 0 values, buffer 1 lengths. As a buffer of its own: u64 size of the values,
values, lengths. The lengths of a chunk may add up to more than its values; the excess is dropped.
"""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Chunks, FixedWidth, RunBlock
from lancetable.format.encoding.kernels.ragged import ELEMENTS, Ragged, join


@dataclass(frozen=True, slots=True)
class Rle:
    """Runs of values of ``bits`` bits."""

    bits: int

    def __str__(self) -> str:
        return f"rle{self.bits}"

    @property
    def buffer_count(self) -> int:
        """Values and lengths."""
        return 2

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Repeat the values of all chunks at once."""
        return self._decode(chunks.buffers[0], chunks.buffers[1], chunks.counts)

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Repeat the values of all pieces at once."""
        if (pieces.sizes < 8).any():
            raise CorruptError("a run-length buffer is shorter than its header")
        heads = [
            int.from_bytes(pieces.data[start : start + 8].tobytes(), "little")
            for start in pieces.starts.tolist()
        ]
        sizes = np.array([min(head, 1 << 62) for head in heads], np.int64)
        rest = pieces.sizes - 8 - sizes
        if (rest < 0).any():
            raise CorruptError("a run-length buffer is shorter than its values")
        values = Ragged(pieces.data, pieces.starts + 8, sizes)
        lengths = Ragged(pieces.data, pieces.starts + 8 + sizes, rest)
        return self._decode(values, lengths, counts)

    def runs_of_chunks(self, chunks: Chunks) -> RunBlock:
        """Return the runs of all chunks as they are."""
        return self._runs(chunks.buffers[0], chunks.buffers[1], chunks.counts)

    def _decode(self, values: Ragged, lengths: Ragged, counts: Integers) -> Block:
        runs = self._runs(values, lengths, counts)
        return FixedWidth(np.repeat(runs.values.data, runs.lengths), runs.values.width)

    def _runs(self, values: Ragged, lengths: Ragged, counts: Integers) -> RunBlock:
        width = self.bits // 8
        if (values.sizes != lengths.sizes * width).any():
            raise CorruptError("a run-length chunk does not have one length for each value")
        runs = join(values).view(ELEMENTS[width])
        repeats = join(lengths).astype(np.int64)
        covered = np.zeros(len(repeats) + 1, np.int64)
        np.cumsum(repeats, out=covered[1:])
        edges = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(lengths.sizes, out=edges[1:])
        sums = covered[edges[1:]] - covered[edges[:-1]]
        if (sums < counts).any():
            raise CorruptError("the runs of a chunk hold fewer values than it should")
        if (sums > counts).any():
            repeats = _cut(repeats, covered, edges, counts)
        return RunBlock(FixedWidth(runs, width), repeats)


def _cut(repeats: Integers, covered: Integers, edges: Integers, counts: Integers) -> Integers:
    """Shorten the runs that reach beyond the values of their chunk."""
    piece_of = np.repeat(np.arange(len(counts)), np.diff(edges))
    before = covered[:-1] - covered[edges[:-1]][piece_of]
    return np.clip(counts[piece_of] - before, 0, repeats)
