"""Integers in fewer bits, in blocks of 1024 (see ``kernels.bitpack`` for the order).

Inline: the packed width as a word of the uncompressed width, then one packed block; the size does
not depend on the number of values. Out of line: the width is known from the page; whole packed
blocks, then the last ``n % 1024`` values either raw (exactly that many words) or as one more
packed block.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Chunks, FixedWidth
from lancetable.format.encoding.kernels.bitpack import (
    BLOCK,
    WORDS,
    pick,
    unpack_blocks,
    unpack_inline,
)
from lancetable.format.encoding.kernels.compiled import LIBRARY, Library
from lancetable.format.encoding.kernels.ragged import Ragged, check_inside, gather, join

LEVEL_BITS = 16


class PackedChunks(NamedTuple):
    """The words of all chunks, the first of each, and how many bits a value has there."""

    words: npt.NDArray[Any]
    firsts: Integers
    widths: Integers


@dataclass(frozen=True, slots=True)
class InlineBitpacking:
    """One packed block per chunk, its width in front."""

    bits: int

    def __str__(self) -> str:
        return f"bitpack{self.bits}"

    @property
    def buffer_count(self) -> int:
        """One buffer holds width and block."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Unpack the chunks of equal width together."""
        return self.decode_blocks(chunks.buffers[0], chunks.counts)

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Unpack the pieces of equal width together."""
        word = self.bits // 8
        values = unpack_inline(pieces, counts, self.bits)
        if values is not None:
            return FixedWidth(values, word)
        widths = self._widths(pieces, counts)
        out = unpack_blocks(pieces.data, pieces.starts + word, widths, self.bits)
        if (counts[:-1] != BLOCK).any():
            blocks = np.arange(len(counts)) * (BLOCK * word)
            pieces = Ragged(out.reshape(-1).view(np.uint8), blocks, counts * word)
            return FixedWidth(join(pieces).view(out.dtype), word)
        return FixedWidth(out.reshape(-1)[: int(counts.sum())], word)

    def prepare(self, chunks: Chunks) -> PackedChunks:
        """Read the width of every chunk once."""
        pieces, size = chunks.buffers[0], self.bits // 8
        widths = self._widths(pieces, chunks.counts)
        words = pieces.data[: len(pieces.data) // size * size].view(WORDS[self.bits])
        return PackedChunks(words, pieces.starts // size + 1, widths)

    def gather(self, prepared: PackedChunks, chunk: Integers, inside: Integers) -> Block:
        """Address single values."""
        words, firsts, widths = prepared
        found = pick(words, firsts.take(chunk), widths.take(chunk), inside)
        return FixedWidth(found, self.bits // 8)

    def _widths(self, pieces: Ragged, counts: Integers) -> Integers:
        word = self.bits // 8
        if (pieces.sizes < word).any() or (counts > BLOCK).any():
            raise CorruptError("a bit-packed chunk has no width or more than 1024 values")
        widths = gather(pieces.data, pieces.starts, word).astype(np.int64)
        if ((widths < 0) | (widths > self.bits)).any():
            raise CorruptError(f"a chunk of {self.bits}-bit integers is packed to more bits")
        if (pieces.sizes != word + 128 * widths).any():
            raise CorruptError("a bit-packed chunk does not have the size of its bit width")
        return widths


@dataclass(frozen=True, slots=True)
class OutOfLineBitpacking:
    """Packed blocks of one width for the whole page; used for levels."""

    bits: int
    width: int

    def __str__(self) -> str:
        return f"oolbitpack{self.bits}->{self.width}"

    def decode_blocks(self, pieces: Ragged, counts: Integers) -> Block:
        """Unpack the whole blocks of all pieces together, then the tails."""
        word = self.bits // 8
        if LIBRARY is not None and self.bits == LEVEL_BITS and self.width:
            return self._decode_levels(LIBRARY, pieces, counts)
        whole, tails = np.divmod(counts, BLOCK)
        packed = 128 * self.width
        rest = pieces.sizes - whole * packed
        is_raw = rest == tails * word
        is_packed = ~is_raw & (rest == packed)
        if not (is_raw | is_packed).all():
            raise _misfit(self.width, pieces, counts)
        starts = _block_starts(pieces.starts, whole + is_packed, packed)
        unpacked = _unpack_group(pieces.data, starts, self.width, self.bits).reshape(-1)
        if not is_raw.any() and not (counts[:-1] % BLOCK).any():
            return FixedWidth(unpacked[: int(counts.sum())], word)
        raw = Ragged(pieces.data, pieces.starts + whole * packed, np.where(is_raw, rest, 0))
        return FixedWidth(_weave(unpacked, raw, whole + is_packed, counts), word)

    def _decode_levels(self, library: Library, pieces: Ragged, counts: Integers) -> Block:
        check_inside(pieces)
        total = int(counts.sum())
        if total * self.width > 8 * int(pieces.sizes.sum()) + BLOCK * 8 * len(counts):
            raise _misfit(self.width, pieces, counts)
        out = np.empty(total, np.uint16)
        places = np.ascontiguousarray(pieces.starts), np.ascontiguousarray(pieces.sizes)
        counts = np.ascontiguousarray(counts)
        if library.levels((pieces.data, *places), counts, self.width, out) < 0:
            raise _misfit(self.width, pieces, counts)
        return FixedWidth(out, 2)


def _misfit(width: int, pieces: Ragged, counts: Integers) -> CorruptError:
    return CorruptError(
        f"a bit-packed buffer has {int(pieces.sizes.sum())} bytes, which do not fit"
        f" {int(counts.sum())} values of {width} bits"
    )


def _block_starts(starts: Integers, blocks: Integers, size: int) -> Integers:
    total = int(blocks.sum())
    inside = np.arange(total) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    return np.repeat(starts, blocks) + inside * size


def _weave(
    unpacked: npt.NDArray[Any], raw: Ragged, blocks: Integers, counts: Integers
) -> npt.NDArray[Any]:
    """Take for each piece its unpacked values, then its raw tail."""
    tails = join(raw).view(unpacked.dtype)
    if len(tails) == int(counts.sum()):
        return tails
    parts: list[npt.NDArray[Any]] = []
    first = tail = 0
    word = unpacked.dtype.itemsize
    for block, size, count in zip(
        blocks.tolist(), raw.sizes.tolist(), counts.tolist(), strict=True
    ):
        length = size // word
        parts.append(unpacked[first : first + count - length])
        parts.append(tails[tail : tail + length])
        first += block * BLOCK
        tail += length
    return np.concatenate(parts)


def _unpack_group(
    data: npt.NDArray[Any], starts: Integers, width: int, bits: int
) -> npt.NDArray[Any]:
    if len(starts) and int(starts.max()) + 128 * width > len(data):
        raise CorruptError("a packed block reaches beyond its buffer")
    return unpack_blocks(data, starts, np.full(len(starts), width, np.int64), bits)
