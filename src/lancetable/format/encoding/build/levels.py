"""Repetition and definition levels, cut into the pieces that belong to each chunk.

Levels are packed to the bits of the highest one. A piece is whole packed blocks of 1024 levels,
then what remains: packed too if that is shorter, raw otherwise.
"""

from itertools import pairwise

import numpy as np

from lancetable.format.encoding.base import Bytes, Integers, Levels
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.values import framed_runs
from lancetable.format.encoding.compressions.bitpacking import OutOfLineBitpacking
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.rle import Rle
from lancetable.format.encoding.kernels.bitpack import BLOCK, pack
from lancetable.format.encoding.kernels.ragged import Ragged

LEVEL_BITS = 16


def encode_levels(levels: Levels, edges: Integers) -> tuple[Compression, Ragged]:
    """Encode levels; piece i holds ``levels[edges[i] : edges[i + 1]]``."""
    width = max(int(levels.max()).bit_length() if len(levels) else 0, 1)
    counts = np.diff(edges)
    if width == LEVEL_BITS:
        sizes = counts * 2
        return Flat(LEVEL_BITS), Ragged(_raw(levels), edges[:-1] * 2, sizes)
    return OutOfLineBitpacking(LEVEL_BITS, width), _packed(levels, edges, width)


def encode_block(levels: Levels) -> tuple[Compression, Bytes]:
    """Encode levels as a buffer of their own, in runs or packed, whatever is shorter."""
    runs = framed_runs(levels)
    packed, pieces = encode_levels(levels, np.array([0, len(levels)], np.int64))
    if len(runs) < int(pieces.sizes[0]):
        return Rle(LEVEL_BITS), runs
    return packed, pieces.piece(0)


def _raw(levels: Levels) -> Bytes:
    return np.ascontiguousarray(levels).view(np.uint8)


def _packed(levels: Levels, edges: Integers, width: int) -> Ragged:
    counts = np.diff(edges)
    tails = counts % BLOCK
    is_packed = tails > BLOCK * width // LEVEL_BITS
    blocks = counts // BLOCK + is_packed
    raw = np.where(is_packed, 0, tails)
    packed = pack(_blocks(levels, edges, blocks), width) if blocks.any() else np.empty(0, np.uint16)
    packed_bytes = packed.reshape(-1).view(np.uint8)
    size = 128 * width
    sizes = blocks * size + raw * 2
    starts = np.cumsum(sizes) - sizes
    if not raw.any():
        return Ragged(packed_bytes, starts, sizes)
    parts: list[Bytes] = []
    levels_bytes = _raw(levels)
    first = 0
    for number, (_, stop) in enumerate(pairwise(edges.tolist())):
        last = first + int(blocks[number]) * size
        parts.append(packed_bytes[first:last])
        parts.append(levels_bytes[(stop - int(raw[number])) * 2 : stop * 2])
        first = last
    return Ragged(np.concatenate(parts), starts, sizes)


def _blocks(levels: Levels, edges: Integers, blocks: Integers) -> Levels:
    """Lay the levels of all packed blocks side by side, the last of a piece filled with zeros."""
    counts = np.diff(edges)
    if (counts[:-1] == BLOCK * blocks[:-1]).all() and int(blocks[-1]) * BLOCK >= int(counts[-1]):
        out = np.zeros(int(blocks.sum()) * BLOCK, np.uint16)
        out[: len(levels)] = levels
        return out.reshape(-1, BLOCK)
    number = np.arange(int(blocks.sum())) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    starts = np.repeat(edges[:-1], blocks) + number * BLOCK
    stops = np.minimum(starts + BLOCK, np.repeat(edges[1:], blocks))
    places = starts[:, None] + np.arange(BLOCK)
    found: Levels = levels[np.minimum(places, len(levels) - 1)]
    found[places >= stops[:, None]] = 0
    return found
