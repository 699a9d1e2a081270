"""Write one segment of a full-text index from several, or one whose rows moved.

1. Number the words of all partitions anew, and the documents that are still there.
2. Read the lists of each partition in parts that fit the memory, under their new numbers.
3. Write the lists of all parts as one partition, as a build does.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.postings_encode import PostingLists, Words
from lancetable.format.encoding.kernels.ragged import Ragged, join
from lancetable.format.encoding.kernels.words import WordNumbers, word_numbers
from lancetable.index.base import Sink, Source
from lancetable.index.specs import FullText
from lancetable.index.text.partition import StoredPartition
from lancetable.index.text.read_lists import read_lists
from lancetable.index.text.runs import Runs
from lancetable.index.text.segment import TextSegment
from lancetable.index.text.write import Documents, PartitionWriter

_CHUNK_SHARE, _HELD_SHARE = 8, 4
_BYTES_PER_DOCUMENT = 64
_GONE = -1


class _Part(NamedTuple):
    """A partition, and the new numbers of its words and documents; -1 for those that are gone."""

    stored: StoredPartition
    words: Integers
    documents: Integers


def merge(sources: Sequence[Source], spec: FullText, sink: Sink, memory_bytes: int) -> bool:
    """Write the files of a segment; False, with nothing written, when they must be built anew.

    That is so when texts were analysed in other ways, or positions are missing.

    Raises:
        CorruptError: a file of a segment is damaged.
    """
    segments = [TextSegment(source.files) for source in sources]
    stored = [one for segment in segments for one in segment.partitions]
    if any(one.analysis.to_json() != spec.to_json() for one in segments):
        return False
    if spec.with_position and not all(one.has_positions for one in stored):
        return False
    numbering = word_numbers()
    kept = [Documents(np.empty(0, np.uint64), np.empty(0, np.uint32))]
    parts, first = [], 0
    for source, segment in zip(sources, segments, strict=True):
        for one in segment.partitions:
            rows, is_kept = source.translate(one.rows)
            numbers = np.where(is_kept, first + np.cumsum(is_kept) - 1, _GONE)
            kept.append(Documents(rows[is_kept], one.lengths[is_kept]))
            first += len(kept[-1].rows)
            parts.append(_Part(one, _numbered(one, numbering), numbers))
    documents = Documents(*map(np.concatenate, zip(*kept, strict=True)))
    runs = Runs(sink, memory_bytes // _HELD_SHARE)
    for part in parts:
        for lists in _lists(part, len(numbering), spec, memory_bytes // _CHUNK_SHARE):
            runs.add(lists)
    writer = PartitionWriter(sink, spec, memory_bytes // _CHUNK_SHARE)
    if len(documents.rows):
        writer.write_partition(0, documents, numbering.texts(), runs)
    writer.write_metadata([0] if len(documents.rows) else [])
    return True


def _numbered(stored: StoredPartition, numbering: WordNumbers) -> Integers:
    """Return the new number of each word of a partition; -1 for a list without a word."""
    found = stored.all_words()
    sizes = np.diff(found.edges).astype(np.int32)
    made = numbering.number(found.text, found.edges[:-1].copy(), sizes)
    words = np.full(len(stored.counts), _GONE, np.int64)
    if len(made) and int(found.numbers.max()) >= len(words):
        raise CorruptError(f"a word of a full-text index has number {found.numbers.max()}")
    words[found.numbers] = made
    return words


def _lists(part: _Part, words: int, spec: FullText, memory_bytes: int) -> Iterator[PostingLists]:
    """Yield the lists of a partition under new numbers, as many at a time as fit the memory."""
    ends = np.cumsum(part.stored.counts)
    most = max(memory_bytes // _BYTES_PER_DOCUMENT, 1)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + most, side="right"))
        stop = min(max(stop, first + 1), len(ends))
        lists = read_lists(part.stored, range(first, stop), with_positions=bool(spec.with_position))
        yield _in_order(_without(lists, part.documents), part.words[first:stop], words)
        first = stop


def _without(lists: PostingLists, documents: Integers) -> PostingLists:
    """Return lists of new documents; those that are gone are left out."""
    ids = documents[lists.ids]
    kept = ids != _GONE
    new = ids[kept].astype(np.uint32)
    if kept.all():
        return lists._replace(ids=new)
    before = np.concatenate([[0], np.cumsum(kept)])
    found = PostingLists(before[lists.edges], new, lists.frequencies[kept])
    if lists.positions is None or lists.starts is None:
        return found
    stays = np.repeat(kept, lists.frequencies)
    places = np.concatenate([[0], np.cumsum(stays)])
    return found._replace(positions=lists.positions[stays], starts=places[lists.starts])


def _in_order(lists: PostingLists, numbers: Integers, words: int) -> PostingLists:
    """Return lists in the order of the new numbers of their words, empty ones for the others."""
    known = np.flatnonzero(numbers != _GONE)
    order = known[np.argsort(numbers[known])]
    edges, ids = _taken(lists.edges, lists.ids, order)
    frequencies = _taken(lists.edges, lists.frequencies, order)[1]
    found = PostingLists(_spread(edges, numbers[order], words), ids, frequencies)
    if lists.positions is None or lists.starts is None:
        return found
    starts, positions = _taken(lists.starts, lists.positions, order)
    return found._replace(positions=positions, starts=_spread(starts, numbers[order], words))


def _taken(edges: Integers, values: Words, order: Integers) -> tuple[Integers, Words]:
    sizes = np.diff(edges)[order]
    pieces = Ragged(np.ascontiguousarray(values).view(np.uint8), edges[order] * 4, sizes * 4)
    return np.concatenate([[0], np.cumsum(sizes)]), join(pieces).view(np.uint32)


def _spread(edges: Integers, numbers: Integers, words: int) -> Integers:
    """Return the edges of all words when only some have values."""
    sizes = np.zeros(words, np.int64)
    sizes[numbers] = np.diff(edges)
    return np.concatenate([[0], np.cumsum(sizes)])
