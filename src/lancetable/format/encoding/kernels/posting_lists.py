"""Decode the documents and positions of many words at once; see ``postings.py`` for their bytes."""

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.postings import (
    Pieces,
    PostingFormat,
    Words,
    decode_positions,
    decode_postings,
)


def decode_lists(
    blocks: Pieces, counts: Integers, format_: PostingFormat, documents: int
) -> tuple[Words, Words]:
    """Return the documents of words and their frequencies, one word behind the other.

    Args:
        blocks: the blocks of all words.
        counts: how many documents have each word.
        format_: how blocks are stored.
        documents: how many documents there are.

    Raises:
        CorruptError: the blocks are damaged.
    """
    if ((counts < 0) | (counts > documents)).any():
        raise CorruptError(f"a word has more than all {documents} documents")
    blocks.check(int(_blocks(counts, format_.block).sum()))
    if DLL is None:
        parts = [
            decode_postings(piece, count, format_, documents)
            for piece, count in _each(blocks, counts, format_.block)
        ]
        empty = np.empty(0, np.uint32)
        ids, frequencies = zip((empty, empty), *parts, strict=True)
        return np.concatenate(ids), np.concatenate(frequencies)
    total = int(counts.sum())
    documents_of, frequencies_of = np.empty(total, np.uint32), np.empty(total, np.uint32)
    outcome = DLL.lt_posting_lists(
        address(blocks.data),
        address(blocks.edges),
        address(counts),
        len(counts),
        format_.block,
        format_.plain_tail,
        documents,
        address(documents_of),
        address(frequencies_of),
    )
    if outcome < 0:
        raise CorruptError("the documents of a word are damaged")
    return documents_of, frequencies_of


def decode_position_lists(parts: Pieces, counts: Integers, block: int, frequencies: Words) -> Words:
    """Return the positions of words in all their documents, one word behind the other.

    Args:
        parts: the part of each block.
        counts: how many documents have each word.
        block: how many documents a block has.
        frequencies: how often the word is in each document.

    Raises:
        CorruptError: the positions are damaged.
    """
    parts.check(int(_blocks(counts, block).sum()))
    total = int(frequencies.sum(dtype=np.int64))
    if total > (len(parts.data) + 1) * block:
        raise CorruptError(f"there are {total} positions in {len(parts.data)} bytes")
    if DLL is None:
        edges = np.concatenate([[0], np.cumsum(counts)]).tolist()
        found = [
            decode_positions(piece, block, frequencies[edges[word] : edges[word + 1]])
            for word, (piece, _) in enumerate(_each(parts, counts, block))
        ]
        return np.concatenate([np.empty(0, np.uint32), *found])
    positions = np.empty(total, np.uint32)
    outcome = DLL.lt_position_lists(
        address(parts.data),
        address(parts.edges),
        address(counts),
        len(counts),
        block,
        address(frequencies),
        address(positions),
    )
    if outcome < 0:
        raise CorruptError("the positions of a word are damaged")
    return positions


def _blocks(counts: Integers, size: int) -> Integers:
    return -(-counts // size)


def _each(pieces: Pieces, counts: Integers, size: int) -> list[tuple[Pieces, int]]:
    """Return the blocks of each word and its number of documents."""
    stops = np.cumsum(_blocks(counts, size))
    return [
        (Pieces(pieces.data, pieces.edges[stop - -(-count // size) : stop + 1]), count)
        for stop, count in zip(stops.tolist(), counts.tolist(), strict=True)
    ]
