"""Write documents, frequencies and positions of words; see ``postings.py`` for their bytes.

Words are the rows of a ragged array: those of word w are ``ids[edges[w]:edges[w + 1]]``. Positions
follow each other in the order of the documents, as many for each as its frequency says.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.words import Codes

Words: TypeAlias = npt.NDArray[np.uint32]
BLOCK = 128
_LANES = 4
_HEAD, _PER_DOCUMENT, _PER_BLOCK = 4, 10, 1100
_EMPTY = np.empty(0, np.uint32)
_COUNTED = 1 << 20
"""So many words are counted at a time, as each takes eight bytes meanwhile."""


class PostingLists(NamedTuple):
    """The documents of some words."""

    edges: Integers
    ids: Words
    """Documents of each word in ascending order."""
    frequencies: Words
    positions: Words | None = None
    """None when they are not stored."""
    starts: Integers | None = None
    """Where the positions of each word start, and where the last ones stop."""

    @property
    def counts(self) -> Integers:
        """The number of documents of each word."""
        return np.diff(self.edges)

    @property
    def blocks(self) -> Integers:
        """The number of blocks of each word."""
        return -(-self.counts // BLOCK)

    def of_words(self, first: int, stop: int) -> "PostingLists":
        """Return the documents of neighbouring words."""
        edges = self.edges[first : stop + 1]
        here = slice(*edges[[0, -1]].tolist())
        found = PostingLists(edges - here.start, self.ids[here], self.frequencies[here])
        if self.starts is None or self.positions is None:
            return found
        starts = self.starts[first : stop + 1]
        positions = self.positions[slice(*starts[[0, -1]].tolist())]
        return found._replace(positions=positions, starts=starts - starts[0])


class Encoded(NamedTuple):
    """Items one after the other: item i is ``data[ends[i - 1]:ends[i]]``."""

    data: Bytes
    ends: Integers


class Weights(NamedTuple):
    """What scores depend on."""

    norms: npt.NDArray[np.float32]
    """For each document, the frequency at which a word has half of its largest score."""
    words: npt.NDArray[np.float64]
    """For each word, its largest score."""


def group_words(
    words: Codes, lengths: Codes, first: int, distinct: int, positions: Codes | None
) -> PostingLists:
    """Return the documents of each word from the words of each document.

    Args:
        words: the words of all documents, one document after the other.
        lengths: how many words each document has.
        first: the number of the first document.
        distinct: how many distinct words there are.
        positions: the position of each of ``words``; None to leave them out.
    """
    edges = np.zeros(distinct + 1, np.int64)
    for start in range(0, len(words), _COUNTED):
        edges[1:] += np.bincount(words[start : start + _COUNTED], minlength=distinct)
    np.cumsum(edges, out=edges)
    ids = np.empty(len(words), np.uint32)
    places = None if positions is None else np.empty(len(words), np.uint32)
    starts = None if positions is None else edges.copy()
    frequencies = np.empty(len(words), np.uint32)
    if DLL is None:
        order = np.argsort(words, kind="stable")
        ids = np.repeat(np.arange(len(lengths), dtype=np.uint32) + np.uint32(first), lengths)[order]
        places = None if positions is None else positions[order].astype(np.uint32)
        return _joined(edges, ids, places, starts)
    stops = edges[:-1].copy()
    DLL.lt_group_words(
        address(words),
        address(lengths),
        len(lengths),
        first,
        0 if positions is None else address(positions),
        address(stops),
        address(ids),
        0 if places is None else address(places),
    )
    count = DLL.lt_join_documents(address(ids), address(edges), distinct, address(frequencies))
    return PostingLists(edges, ids[:count], frequencies[:count], places, starts)


def _joined(
    edges: Integers, ids: Words, places: Words | None, starts: Integers | None
) -> PostingLists:
    owners = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    is_new = np.ones(len(ids), np.bool_)
    is_new[1:] = (ids[1:] != ids[:-1]) | (owners[1:] != owners[:-1])
    firsts = np.flatnonzero(is_new)
    frequencies = np.diff(np.append(firsts, len(ids))).astype(np.uint32)
    counts = np.bincount(owners[firsts], minlength=len(edges) - 1)
    joined = np.concatenate([[0], np.cumsum(counts)])
    return PostingLists(joined, ids[firsts], frequencies, places, starts)


def encode_blocks(
    postings: PostingLists, weights: Weights, *, plain_tail: bool
) -> tuple[Encoded, npt.NDArray[np.float32]]:
    """Return the blocks of words, and the largest score of each word."""
    best = np.zeros(len(postings.counts), np.float32)
    if DLL is None:
        return _encoded(_blocks(postings, weights, best, plain_tail=plain_tail)), best
    blocks = int(postings.blocks.sum())
    room = _HEAD * blocks + max(_PER_DOCUMENT * len(postings.ids), 1) + _PER_BLOCK
    out, ends = np.empty(room, np.uint8), np.empty(blocks, np.int64)
    size = DLL.lt_encode_blocks(
        address(postings.edges),
        len(best),
        address(postings.ids),
        address(postings.frequencies),
        address(weights.norms),
        address(weights.words),
        plain_tail,
        address(out),
        address(ends),
        address(best),
    )
    return Encoded(out[:size], ends), best


def encode_impacts(postings: PostingLists, lengths: Words) -> Encoded:
    """Return the impacts of each block, and behind those of a word the ones of the whole word.

    Impacts are the pairs of frequency and length of document that no other beats in both.
    """
    if DLL is None:
        return _encoded(_impacts(postings, lengths))
    items = int(postings.blocks.sum()) + len(postings.counts)
    front = np.empty(2 * (int(postings.counts.max(initial=0)) + BLOCK + 2), np.uint32)
    room = 2 * _PER_DOCUMENT * len(postings.ids) + _PER_DOCUMENT * (items + 1)
    out, ends = np.empty(room, np.uint8), np.empty(items, np.int64)
    size = DLL.lt_encode_impacts(
        address(postings.edges),
        len(postings.counts),
        address(postings.ids),
        address(postings.frequencies),
        address(lengths),
        address(front),
        address(out),
        address(ends),
    )
    return Encoded(out[:size], ends)


def encode_positions(postings: PostingLists) -> Encoded:
    """Return the part of the positions that belongs to each block."""
    positions = _EMPTY if postings.positions is None else postings.positions
    if DLL is None:
        return _encoded(_parts(postings, positions))
    blocks = int(postings.blocks.sum())
    most = _most_in_a_block(postings)
    out = np.empty(5 * len(positions) + blocks + _PER_BLOCK, np.uint8)
    ends, held = np.empty(blocks, np.int64), np.empty(most + BLOCK, np.uint32)
    size = DLL.lt_encode_positions(
        address(postings.edges),
        len(postings.counts),
        address(postings.frequencies),
        address(positions),
        address(held),
        address(out),
        address(ends),
    )
    return Encoded(out[:size], ends)


def encode_position_items(postings: PostingLists) -> tuple[Encoded, Integers]:
    """Return the items of the positions of each document for format 1, and how many each has."""
    positions = _EMPTY if postings.positions is None else postings.positions
    counts = 1 + -(-postings.frequencies.astype(np.int64) // BLOCK)
    if DLL is None:
        return _encoded(_items(postings.frequencies.tolist(), positions)), counts
    items = int(counts.sum())
    out = np.empty(5 * len(positions) + 4 * items + _PER_BLOCK, np.uint8)
    ends = np.empty(items, np.int64)
    size = DLL.lt_encode_position_items(
        address(postings.frequencies),
        len(postings.frequencies),
        address(positions),
        address(out),
        address(ends),
    )
    return Encoded(out[:size], ends), counts


def _most_in_a_block(postings: PostingLists) -> int:
    """Return how many positions the documents of a block have at most."""
    if not len(postings.ids):
        return 0
    blocks = postings.blocks
    inside = np.arange(int(blocks.sum())) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    firsts = np.repeat(postings.edges[:-1], blocks) + BLOCK * inside
    return int(np.add.reduceat(postings.frequencies.astype(np.int64), firsts).max())


def _encoded(items: Iterable[bytes]) -> Encoded:
    parts = [*items]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return Encoded(np.frombuffer(b"".join(parts), np.uint8), ends)


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _packed(values: Words) -> bytes:
    """Return the width of 128 values and their packed words."""
    width = int(values.max()).bit_length()
    bits = values.reshape(-1, _LANES).T[:, :, None] >> np.arange(width, dtype=np.uint32) & 1
    lanes = np.packbits(bits.reshape(_LANES, -1).astype(np.uint8), axis=1, bitorder="little")
    words = lanes.reshape(_LANES, width, 4).transpose(1, 0, 2)
    return bytes([width]) + words.tobytes()


def _ranges(postings: PostingLists) -> Iterator[tuple[int, list[slice]]]:
    """Yield each word and the places of its blocks."""
    for word, (start, stop) in enumerate(pairwise(postings.edges.tolist())):
        firsts = range(start, stop, BLOCK)
        yield word, [slice(first, min(first + BLOCK, stop)) for first in firsts]


def _steps(values: Words) -> Words:
    return np.diff(values, prepend=values[:1])


def _blocks(
    postings: PostingLists, weights: Weights, best: npt.NDArray[np.float32], *, plain_tail: bool
) -> Iterator[bytes]:
    for word, places in _ranges(postings):
        for place in places:
            ids, counts = postings.ids[place], postings.frequencies[place]
            shares = counts / (counts + weights.norms[ids].astype(np.float64))
            score = np.float32(weights.words[word] * shares.max())
            best[word] = max(best[word], score)
            if len(ids) == BLOCK:
                body = ids[:1].tobytes() + _packed(_steps(ids)) + _packed(counts)
            elif plain_tail:
                body = ids.tobytes() + counts.tobytes()
            else:
                numbers = [int(ids[0]), *_steps(ids)[1:].tolist(), *counts.tolist()]
                body = b"".join(map(varint, numbers))
            yield score.tobytes() + body


def _front(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs that no other beats, in ascending order."""
    found: list[tuple[int, int]] = []
    for frequency, length in sorted(set(pairs), key=lambda pair: (-pair[0], pair[1])):
        if not found or length < found[-1][1]:
            found.append((frequency, length))
    return found[::-1]


def _impacts(postings: PostingLists, lengths: Words) -> Iterator[bytes]:
    for _, places in _ranges(postings):
        whole: list[tuple[int, int]] = []
        last = 0
        for place in places:
            ids = postings.ids[place]
            pairs = zip(postings.frequencies[place].tolist(), lengths[ids].tolist(), strict=True)
            front, last = _front(pairs), int(ids[-1])
            whole += front
            yield _impact(last, front)
        yield _impact(last, _front(whole))


def _impact(last: int, front: list[tuple[int, int]]) -> bytes:
    parts = [varint(last), varint(len(front))]
    for (before, shorter), (frequency, length) in pairwise([(0, 0), *front]):
        more, longer = frequency - before - 1, length - shorter
        parts.append(varint(more << 1 | (longer != 1)))
        if longer != 1:
            parts.append(varint(longer))
    return b"".join(parts)


def _parts(postings: PostingLists, positions: Words) -> Iterator[bytes]:
    at = 0
    for _, places in _ranges(postings):
        for place in places:
            counts = postings.frequencies[place].astype(np.int64)
            total = int(counts.sum())
            here = positions[at : at + total]
            steps = _steps(here)
            firsts = np.cumsum(counts) - counts
            steps[firsts] = here[firsts]
            whole = total // BLOCK * BLOCK
            parts = [_packed(steps[n : n + BLOCK]) for n in range(0, whole, BLOCK)]
            yield b"".join([*parts, *map(varint, steps[whole:].tolist())])
            at += total


def _items(frequencies: list[int], positions: Words) -> Iterator[bytes]:
    at = 0
    for count in frequencies:
        yield count.to_bytes(4, "little")
        for first in range(at, at + count, BLOCK):
            here = positions[first : min(first + BLOCK, at + count)]
            is_whole = len(here) == BLOCK
            yield here[:1].tobytes() + _packed(_steps(here)) if is_whole else here.tobytes()
        at += count
