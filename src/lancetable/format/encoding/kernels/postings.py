"""Documents, frequencies and positions of a token in a full-text index.

Documents ascend. They are stored in blocks of 128 or 256, the last of which may have fewer:

==========  ======================================================================================
128         f32 best score, u32 first document, u8 width and packed differences (the first is 0),
            u8 width and packed frequencies
256         u32 first document, u8 width and packed differences, u8 width, u8 number of
            exceptions, packed low bits of the frequencies, then for each exception u8 place and a
            varint with its high bits
last        f32 best score (of blocks of 128 only), then as varints the first document, the
            differences and the frequencies; or documents and frequencies as u32
==========  ======================================================================================

Positions of all documents form one stream of differences, cut into the parts of the blocks; the
first of each document is a position. Each 128 of a part are packed behind their u8 width, the rest
are varints. Format 1 has a list for each document instead: its number of positions as u32, each
128 as u32 first, u8 width and packed differences, and the rest as u32.

Packed values have 4 or 8 lanes of 32 values. Value k is in lane k % lanes, every lane is a stream
of bits, and the 32-bit words of the lanes take turns.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

SMALL_BLOCK, LARGE_BLOCK = 128, 256
_LANE = 32

Words: TypeAlias = npt.NDArray[np.uint32]


class Pieces(NamedTuple):
    """Pieces of a buffer: piece i is ``data[edges[i]:edges[i + 1]]``."""

    data: Bytes
    edges: Integers

    def check(self, count: int) -> None:
        """Check that there are so many pieces, all inside the buffer.

        Raises:
            CorruptError: there are not.
        """
        edges = self.edges
        if len(edges) != count + 1:
            raise CorruptError(f"a token has {len(edges) - 1} blocks, expected {count}")
        if edges[0] < 0 or edges[-1] > len(self.data) or (edges[1:] < edges[:-1]).any():
            raise CorruptError("the blocks of a token do not lie inside its bytes")


class PostingFormat(NamedTuple):
    """How blocks are stored: documents of each, and whether the last one holds words."""

    block: int = SMALL_BLOCK
    plain_tail: bool = False

    def blocks(self, documents: int) -> int:
        """Return the number of blocks of a token."""
        return -(-documents // self.block)


def decode_postings(
    blocks: Pieces, count: int, format_: PostingFormat, documents: int
) -> tuple[Words, Words]:
    """Return the documents of a token in ascending order, and their frequencies.

    Args:
        blocks: the blocks of the token.
        count: how many documents have the token.
        format_: how blocks are stored.
        documents: how many documents there are.

    Raises:
        CorruptError: the blocks are damaged.
    """
    if not 0 <= count <= documents:
        raise CorruptError(f"a token has {count} documents of {documents}")
    blocks.check(format_.blocks(count))
    ids, frequencies = np.empty(count, np.uint32), np.empty(count, np.uint32)
    if DLL is None:
        _decode(blocks, format_, ids, frequencies)
        is_damaged = bool((ids[1:] <= ids[:-1]).any() or not frequencies.all())
        is_damaged = is_damaged or (count > 0 and int(ids[-1]) >= documents)
    else:
        is_damaged = (
            DLL.lt_postings(
                address(blocks.data),
                address(blocks.edges),
                count,
                format_.block,
                format_.plain_tail,
                documents,
                address(ids),
                address(frequencies),
            )
            < 0
        )
    if is_damaged:
        raise CorruptError("the documents of a token are damaged")
    return ids, frequencies


def decode_positions(parts: Pieces, block: int, frequencies: Words) -> Words:
    """Return the positions of a token in all its documents.

    Raises:
        CorruptError: the positions are damaged.
    """
    parts.check(-(-len(frequencies) // block))
    total = _total(frequencies, len(parts.data))
    positions = np.empty(total, np.uint32)
    if DLL is None:
        return _positions(parts, block, frequencies, positions)
    outcome = DLL.lt_positions(
        address(parts.data),
        address(parts.edges),
        len(frequencies),
        block,
        address(frequencies),
        address(positions),
    )
    if outcome < 0:
        raise CorruptError("the positions of a token are damaged")
    return positions


def decode_position_items(items: Pieces, firsts: Integers, frequencies: Words) -> Words:
    """Return the positions of a token from the items of format 1.

    Args:
        items: the items of all documents.
        firsts: the first item of each document, and at the end the number of all.
        frequencies: the number of positions of each document.

    Raises:
        CorruptError: the positions are damaged.
    """
    items.check(len(items.edges) - 1)
    expected = 1 + -(-frequencies.astype(np.int64) // SMALL_BLOCK)
    if len(firsts) != len(frequencies) + 1 or (np.diff(firsts) != expected).any():
        raise CorruptError("a token has positions for other documents than it has")
    if len(firsts) and not 0 <= firsts[0] <= firsts[-1] < len(items.edges):
        raise CorruptError("the positions of a token do not lie inside its bytes")
    positions = np.empty(_total(frequencies, len(items.data)), np.uint32)
    if DLL is None:
        return _position_items(items, firsts, frequencies, positions)
    outcome = DLL.lt_position_items(
        address(items.data),
        address(items.edges),
        address(firsts),
        len(frequencies),
        address(frequencies),
        address(positions),
    )
    if outcome < 0:
        raise CorruptError("the positions of a token are damaged")
    return positions


def block_maxima(
    ids: Words, frequencies: Words, norms: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """Return the largest share ``tf / (tf + norm)`` of each 128 documents of a token."""
    maxima = np.empty(-(-len(ids) // SMALL_BLOCK), np.float64)
    if DLL is None:
        shares = frequencies / (frequencies + norms[ids].astype(np.float64))
        firsts = np.arange(0, len(ids), SMALL_BLOCK)
        return np.maximum.reduceat(shares, firsts) if len(ids) else maxima
    DLL.lt_block_maxima(
        address(ids), address(frequencies), len(ids), address(norms), SMALL_BLOCK, address(maxima)
    )
    return maxima


def _total(frequencies: Words, bytes_: int) -> int:
    """Return the number of positions; 128 of them take a byte at least."""
    total = int(frequencies.sum(dtype=np.int64))
    if total > SMALL_BLOCK * bytes_:
        raise CorruptError(f"a token has {total} positions in {bytes_} bytes")
    return total


class _Input:
    """Bytes that are read from front to back."""

    def __init__(self, pieces: Pieces, number: int) -> None:
        self.data = bytes(pieces.data[pieces.edges[number] : pieces.edges[number + 1]])
        self.at = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        self.at += size
        if self.at > len(self.data):
            raise CorruptError("a block of a token ends too early")
        return self.data[self.at - size : self.at]

    def byte(self) -> int:
        """Return the next byte as a number."""
        return self.take(1)[0]

    def words(self, count: int) -> Words:
        """Return the next numbers of 32 bits."""
        return np.frombuffer(self.take(4 * count), np.uint32)

    def varint(self) -> int:
        """Return the next number of variable size."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                if value >> 32:
                    break
                return value
        raise CorruptError("a number of a token is too large")

    def varints(self, count: int) -> Words:
        """Return the next numbers of variable size."""
        return np.array([self.varint() for _ in range(count)], np.uint32)

    def packed(self, lanes: int) -> Words:
        """Return the next packed values with their width."""
        return self.unpacked(lanes, self.byte())

    def unpacked(self, lanes: int, width: int) -> Words:
        """Return the next packed values."""
        if width > 32:
            raise CorruptError(f"values of a token have {width} bits, the most is 32")
        if not width:
            return np.zeros(lanes * _LANE, np.uint32)
        by_lane = np.ascontiguousarray(self.words(lanes * width).reshape(width, lanes).T)
        bits = np.unpackbits(by_lane.view(np.uint8), axis=1, bitorder="little")
        values = bits.reshape(lanes, _LANE, width) @ (np.uint64(1) << np.arange(width, dtype="u8"))
        return values.T.reshape(-1).astype(np.uint32)


def _decode(blocks: Pieces, format_: PostingFormat, ids: Words, frequencies: Words) -> None:
    for number in range(format_.blocks(len(ids))):
        place = slice(number * format_.block, min((number + 1) * format_.block, len(ids)))
        here, source = place.stop - place.start, _Input(blocks, number)
        if format_.block == SMALL_BLOCK:
            source.words(1)
        if here < format_.block and format_.plain_tail:
            ids[place], frequencies[place] = source.words(here), source.words(here)
            continue
        if here < format_.block:
            steps, frequencies[place] = source.varints(here), source.varints(here)
        else:
            steps, frequencies[place] = _whole_block(source, format_.block // _LANE)
        sums = np.cumsum(steps, dtype=np.uint64)
        if sums[-1] >> np.uint64(32):
            raise CorruptError("a document of a token has too large a number")
        ids[place] = sums


def _whole_block(source: _Input, lanes: int) -> tuple[Words, Words]:
    first = source.words(1)[0]
    steps = source.packed(lanes)
    steps[0] = first
    if lanes * _LANE == SMALL_BLOCK:
        return steps, source.packed(lanes)
    width, exceptions = source.byte(), source.byte()
    frequencies = source.unpacked(lanes, width)
    for _ in range(exceptions):
        place, high = source.byte(), source.varint()
        if width > 31:
            raise CorruptError("a frequency of a token has too many bits")
        frequencies[place] |= np.uint32(high << width & 0xFFFFFFFF)
    return steps, frequencies


def _positions(parts: Pieces, block: int, frequencies: Words, positions: Words) -> Words:
    at = 0
    for number in range(-(-len(frequencies) // block)):
        counts = frequencies[number * block : (number + 1) * block].astype(np.int64)
        source, total = _Input(parts, number), int(counts.sum())
        whole = [source.packed(4) for _ in range(total // SMALL_BLOCK)]
        steps = np.concatenate([*whole, source.varints(total % SMALL_BLOCK)])
        positions[at : at + total] = _add_up(steps, counts)
        at += total
    return positions


def _add_up(steps: Words, counts: Integers) -> npt.NDArray[np.uint64]:
    """Return positions of documents from differences."""
    sums = np.cumsum(steps, dtype=np.uint64)
    before = np.concatenate([np.zeros(1, np.uint64), sums])[np.cumsum(counts) - counts]
    found: npt.NDArray[np.uint64] = sums - np.repeat(before, counts)
    if len(found) and int(found.max()) >> 32:
        raise CorruptError("a position of a token is too large")
    return found


def _position_items(items: Pieces, firsts: Integers, frequencies: Words, positions: Words) -> Words:
    at = 0
    for item, count in zip(firsts.tolist(), frequencies.tolist(), strict=False):
        if int(_Input(items, item).words(1)[0]) != count:
            raise CorruptError("a document has another number of positions than it has")
        for number, first in enumerate(range(0, count, SMALL_BLOCK), 1):
            source, here = _Input(items, item + number), min(count - first, SMALL_BLOCK)
            if here < SMALL_BLOCK:
                found = source.words(here)
            else:
                start = source.words(1)[0]
                found = source.packed(4)
                found[0] = start
                found = _add_up(found, np.array([SMALL_BLOCK])).astype(np.uint32)
            positions[at : at + here] = found
            at += here
    return positions
