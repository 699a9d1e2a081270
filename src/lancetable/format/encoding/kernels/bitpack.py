"""Pack integers to fewer bits, 1024 at a time (the FastLanes order).

A block holds 1024 values of T bits (8, 16, 32, 64) in W bits each. It has L = 1024 / T lanes and
T rows; every lane is a bit stream of its own, row r in bits [r*W, (r+1)*W), and word w of lane l
is stored as packed word w*L + l. Value ``ORDER[r // 8] * 16 + (r % 8) * 128 + l`` is in row r of
lane l.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL, LIBRARY
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.ragged import Ragged, check_inside, empty_bytes, join

BLOCK = 1024
ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
TILE_BYTES = 1 << 19

Words = npt.NDArray[Any]


def unpack_blocks(data: Bytes, starts: Integers, widths: Integers, bits: int) -> Words:
    """Unpack blocks that lie anywhere in a buffer, each with its own width.

    Args:
        data: the buffer; every block lies inside it.
        starts: where the packed words of each block start.
        widths: bits per packed value of each block, at most ``bits``.
        bits: the uncompressed width.

    Returns:
        The values, shape (blocks, 1024).
    """
    out = empty_bytes(len(starts) * BLOCK * bits // 8).view(WORDS[bits]).reshape(-1, BLOCK)
    check_inside(Ragged(data, starts, 128 * widths))
    if LIBRARY is not None:
        places = np.ascontiguousarray(starts), np.ascontiguousarray(widths)
        LIBRARY.unpack(np.ascontiguousarray(data), *places, out)
        return out
    for width in np.unique(widths).tolist():
        members = np.flatnonzero(widths == width)
        if width == 0:
            out[members] = 0
            continue
        size = np.full(len(members), 128 * width, np.int64)
        words = join(Ragged(data, starts[members], size)).view(WORDS[bits])
        unpacked = unpack(words.reshape(len(members), -1), width)
        if len(members) == len(starts):
            return unpacked
        out[members] = unpacked
    return out


def unpack_inline(pieces: Ragged, counts: Integers, bits: int) -> Words | None:
    """Unpack blocks that have their widths in front of them; None without compiled kernels.

    Args:
        pieces: width and packed words of each block.
        counts: how many values of each block count.
        bits: the uncompressed width.

    Returns:
        The values that count, of all blocks one behind the other.

    Raises:
        CorruptError: a block is not what its width says.
    """
    if DLL is None:
        return None
    data, starts, sizes = (np.ascontiguousarray(each) for each in pieces)
    total = int(counts.sum())
    if not 0 <= total <= BLOCK * len(counts) or not len(starts) == len(sizes) == len(counts):
        raise CorruptError(_DAMAGES[-1])
    out = empty_bytes(total * bits // 8)
    places = address(starts), address(sizes), address(np.ascontiguousarray(counts))
    outcome = DLL.lt_unpack_inline(
        address(data), len(data), *places, len(starts), bits, address(out), total
    )
    if outcome:
        raise CorruptError(_DAMAGES[outcome].format(bits))
    words: Words = out.view(WORDS[bits])
    return words


_DAMAGES = {
    -1: "a bit-packed chunk has no width or more than 1024 values",
    -2: "a chunk of {}-bit integers is packed to more bits",
    -3: "a bit-packed chunk does not have the size of its bit width",
    -4: "a part of a page reaches beyond its bytes",
    -5: "the counts of bit-packed chunks do not add up",
}


def unpack(packed: Words, width: int) -> Words:
    """Unpack blocks of one width.

    Args:
        packed: shape (blocks, width * lanes), unsigned words of the uncompressed width.
        width: bits per packed value, at least 1.

    Returns:
        The values, shape (blocks, 1024).
    """
    blocks = packed.shape[0]
    out = np.empty((blocks, BLOCK), packed.dtype)
    # A tile of blocks stays in the cache while its rows are produced and brought to order.
    tile = max(1, TILE_BYTES // (BLOCK * packed.dtype.itemsize))
    for start in range(0, blocks, tile):
        _unpack_tile(packed[start : start + tile], width, out[start : start + tile])
    return out


def _unpack_tile(packed: Words, width: int, out: Words) -> None:
    bits = packed.dtype.itemsize * 8
    lanes = BLOCK // bits
    blocks = packed.shape[0]
    # Words first, so that each row of the tile is one long run for the shifts below.
    words = np.ascontiguousarray(packed.reshape(blocks, width, lanes).transpose(1, 0, 2))
    rows = np.empty((bits, blocks, lanes), packed.dtype)
    mask = packed.dtype.type((1 << width) - 1)
    scratch = np.empty((blocks, lanes), packed.dtype)
    for row in range(bits):
        word, shift = divmod(row * width, bits)
        np.right_shift(words[word], shift, out=rows[row])
        if shift + width > bits:
            np.left_shift(words[word + 1], bits - shift, out=scratch)
            np.bitwise_or(rows[row], scratch, out=rows[row])
    if width < bits:
        np.bitwise_and(rows, mask, out=rows)
    grouped = rows.reshape(bits // 8, 8, blocks, lanes)
    target = out.reshape(blocks, 8, bits // 8, lanes)
    for eighth in range(bits // 8):
        slot = ORDER[eighth] * 16 * bits // BLOCK
        target[:, :, slot] = grouped[eighth].transpose(1, 0, 2)


def pack(values: Words, width: int) -> Words:
    """Pack blocks to one width; the reverse of ``unpack``.

    Args:
        values: shape (blocks, 1024), unsigned words, none wider than ``width`` bits.
        width: bits per packed value, at least 1.

    Returns:
        The packed words, shape (blocks, width * lanes).
    """
    blocks = values.shape[0]
    lanes = BLOCK // (values.dtype.itemsize * 8)
    out = np.empty((blocks, width * lanes), values.dtype)
    if LIBRARY is not None:
        starts = np.arange(blocks) * (128 * width)
        widths = np.full(blocks, width, np.int64)
        LIBRARY.pack(np.ascontiguousarray(values), starts, widths, out.reshape(-1).view(np.uint8))
        return out
    tile = max(1, TILE_BYTES // (BLOCK * values.dtype.itemsize))
    for start in range(0, blocks, tile):
        _pack_tile(values[start : start + tile], width, out[start : start + tile])
    return out


def _pack_tile(values: Words, width: int, out: Words) -> None:
    bits = values.dtype.itemsize * 8
    lanes = BLOCK // bits
    blocks = values.shape[0]
    source = values.reshape(blocks, 8, bits // 8, lanes)
    rows = np.empty((bits // 8, 8, blocks, lanes), values.dtype)
    for eighth in range(bits // 8):
        slot = ORDER[eighth] * 16 * bits // BLOCK
        rows[eighth] = source[:, :, slot].transpose(1, 0, 2)
    flat = rows.reshape(bits, blocks, lanes)
    words = np.zeros((width, blocks, lanes), values.dtype)
    scratch = np.empty((blocks, lanes), values.dtype)
    for row in range(bits):
        word, shift = divmod(row * width, bits)
        np.left_shift(flat[row], shift, out=scratch)
        np.bitwise_or(words[word], scratch, out=words[word])
        if shift + width > bits:
            np.right_shift(flat[row], bits - shift, out=words[word + 1])
    out.reshape(blocks, width, lanes)[...] = words.transpose(1, 0, 2)


@lru_cache(maxsize=4)
def _places(bits: int) -> tuple[Integers, Integers]:
    """Return row and lane of each of the 1024 values."""
    lanes = BLOCK // bits
    rows = np.empty(BLOCK, np.int64)
    lane_of = np.empty(BLOCK, np.int64)
    for row in range(bits):
        first = ORDER[row // 8] * 16 + (row % 8) * 128
        rows[first : first + lanes] = row
        lane_of[first : first + lanes] = np.arange(lanes)
    return rows, lane_of


@lru_cache(maxsize=4)
def _masks(bits: int) -> Words:
    """Return for each packed width the mask of that many low bits."""
    return np.array([(1 << width) - 1 for width in range(bits + 1)], np.uint64).astype(WORDS[bits])


def pick(words: Words, firsts: Integers, widths: Integers, inside: Integers) -> Words:
    """Return single values without unpacking their blocks.

    Args:
        words: the memory that holds the packed blocks, as words of the uncompressed width.
        firsts: for each value, the first word of its block.
        widths: for each value, the packed width of its block.
        inside: for each value, its index inside the block.
    """
    bits = words.dtype.itemsize * 8
    lanes = BLOCK // bits
    rows, lane_of = _places(bits)
    bit = rows.take(inside) * widths
    place = (bit >> (bits.bit_length() - 1)) * lanes
    place += firsts
    place += lane_of.take(inside)
    shift = (bit & (bits - 1)).astype(words.dtype)
    # A shift by the whole width gives zero, and what the next word adds beyond the packed width
    # is masked off, so values inside one word need no case of their own.
    low: Words = words.take(place, mode="clip") >> shift
    place += lanes
    low |= words.take(place, mode="clip") << (words.dtype.type(bits) - shift)
    low &= _masks(bits).take(widths)
    return low
