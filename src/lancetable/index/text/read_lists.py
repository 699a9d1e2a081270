"""Read the lists of many neighbouring words of a stored partition at once."""

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.posting_lists import decode_lists, decode_position_lists
from lancetable.format.encoding.kernels.postings import Pieces, Words, decode_position_items
from lancetable.format.encoding.kernels.postings_encode import PostingLists
from lancetable.index.text.partition import StoredPartition, edges_of, pieces_of


def read_lists(stored: StoredPartition, words: range, *, with_positions: bool) -> PostingLists:
    """Return the lists of some words.

    Raises:
        CorruptError: they are damaged.
    """
    (blocks,) = stored.read(("_posting",), words)
    counts = stored.counts[words.start : words.stop]
    per_word = -(-counts // stored.format.block)
    _check(blocks, per_word, "blocks")
    pieces = pieces_of(blocks.flatten())
    ids, frequencies = decode_lists(pieces, counts, stored.format, len(stored.lengths))
    lists = PostingLists(_sums(counts), ids, frequencies)
    if not with_positions:
        return lists
    starts = _sums(frequencies)[lists.edges]
    return lists._replace(positions=_positions(stored, words, lists), starts=starts)


def _positions(stored: StoredPartition, words: range, lists: PostingLists) -> Words:
    if stored.has_items:
        (items,) = stored.read(("_position",), words)
        _check(items, lists.counts, "documents with positions")
        of_documents = items.flatten()
        firsts = edges_of(of_documents)
        values = pieces_of(of_documents.flatten())
        return decode_position_items(values, firsts - firsts[0], lists.frequencies)
    streams, offsets = stored.read(("_compressed_position", "_position_block_offset"), words)
    per_word = -(-lists.counts // stored.format.block)
    _check(offsets, per_word, "parts of positions")
    whole = pieces_of(streams)
    starts = np.repeat(whole.edges[:-1], per_word) + np.asarray(offsets.flatten()).astype(np.int64)
    pieces = Pieces(whole.data, np.append(starts, whole.edges[-1]))
    return decode_position_lists(pieces, lists.counts, stored.format.block, lists.frequencies)


def _check(lists: pa.Array, sizes: Integers, what: str) -> None:
    if lists.null_count or (np.diff(edges_of(lists)) != sizes).any():
        raise CorruptError(f"a word of a full-text index has another number of {what} than it has")


def _sums(sizes: Integers | Words) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
