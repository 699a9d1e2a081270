"""One partition of a segment: its documents, its words, and which documents have them.

===========================  =====================================================================
``part_N_docs.lance``        a row for each document: ``_rowid``, ``_num_tokens``
``part_N_tokens.lance``      the words and their numbers
``part_N_invert.lance``      a row for each word: ``_length`` documents have it, ``_posting`` holds
                             the blocks of their list; with positions ``_compressed_position``, one
                             stream, and ``_position_block_offset``, the parts of the blocks in it,
                             or in format 1 ``_position``, the items of each document
===========================  =====================================================================
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.postings import (
    SMALL_BLOCK,
    Pieces,
    PostingFormat,
    Words,
    decode_position_items,
    decode_positions,
    decode_postings,
)
from lancetable.format.encoding.kernels.ranking import Norms, Positions, Postings
from lancetable.format.encoding.kernels.token_set import Found, Near
from lancetable.index.base import Numbers
from lancetable.index.files import PAGES, SegmentFiles
from lancetable.index.text.bm25 import Statistics, norms_of
from lancetable.index.text.tokens import TokenSet, open_tokens

_BLOCKS = (128, 256)
_MOST_FOUND = 10_000
_TAILS = {"varint_delta_v1": False, "fixed32_v1": True}


class Partition(Protocol):
    """Documents and their words."""

    @property
    def rows(self) -> Numbers:
        """The row id or address of each document."""
        ...

    @property
    def lengths(self) -> Words:
        """How many words each document has."""
        ...

    @property
    def statistics(self) -> Statistics:
        """The number of documents and of their words."""
        ...

    @property
    def has_positions(self) -> bool:
        """Whether the positions of words are known."""
        ...

    def find(self, token: bytes) -> int | None:
        """Return the number of a word; None when no document has it."""
        ...

    def near(self, near: Near) -> list[bytes]:
        """Return the first words, in the order of their bytes, that are near another."""
        ...

    def count(self, number: int) -> int:
        """Return how many documents have a word."""
        ...

    def lists(self, numbers: Sequence[int], *, with_positions: bool) -> list[Postings]:
        """Return the documents of words."""
        ...


class StoredPartition:
    """A partition in the files of a segment, which are read when they are needed."""

    def __init__(self, files: SegmentFiles, number: int, token_format: str) -> None:
        """Open the partition.

        Raises:
            CorruptError: the format of its files is not known.
        """
        self._files = files
        self._number = number
        self._token_format = token_format
        self._lists = self._name("invert")
        found = files.metadata(self._lists)
        block = found.get("posting_block_size", str(SMALL_BLOCK))
        tail = found.get("posting_tail_codec", "fixed32_v1")
        if block not in map(str, _BLOCKS) or tail not in _TAILS:
            raise CorruptError(
                f"{self._lists} has blocks of {block} documents and tails {tail!r}, which this "
                "release does not know"
            )
        self.format = PostingFormat(int(block), _TAILS[tail])
        self._columns = files.columns(self._lists)
        self._found: dict[bytes, int | None] = {}
        """Words that were looked up."""

    def _name(self, what: str) -> str:
        return f"part_{self._number}_{what}.lance"

    @property
    def has_positions(self) -> bool:
        """Whether the positions of words are stored."""
        return "_compressed_position" in self._columns or "_position" in self._columns

    @property
    def has_items(self) -> bool:
        """Whether positions are stored document by document."""
        return "_position" in self._columns

    def read(self, columns: tuple[str, ...], words: range) -> list[pa.Array]:
        """Return columns of the lists of neighbouring words."""
        return self._files.read(self._lists, columns, words)

    def all_words(self) -> Found:
        """Return all words with their numbers.

        Raises:
            CorruptError: they are damaged.
        """
        return self._tokens.all()

    @cached_property
    def counts(self) -> Integers:
        """How many documents have each word.

        Raises:
            CorruptError: a number is null.
        """
        return self._counts.astype(np.int64)

    @cached_property
    def _documents(self) -> tuple[Numbers, Words]:
        rows, lengths = self._files.read(self._name("docs"), ("_rowid", "_num_tokens"))
        if rows.null_count or lengths.null_count:
            raise CorruptError(f"{self._name('docs')} has nulls")
        return np.asarray(rows), np.asarray(lengths)

    @property
    def rows(self) -> Numbers:
        """The row id or address of each document."""
        return self._documents[0]

    @property
    def lengths(self) -> Words:
        """How many words each document has."""
        return self._documents[1]

    @cached_property
    def statistics(self) -> Statistics:
        """The number of documents and of their words."""
        return Statistics(len(self.lengths), int(self.lengths.sum(dtype=np.int64)))

    @cached_property
    def _norms(self) -> Norms:
        return norms_of(self.lengths, self.statistics.average)

    @cached_property
    def _tokens(self) -> TokenSet:
        return open_tokens(self._files, self._name("tokens"), self._token_format)

    @cached_property
    def _counts(self) -> Words:
        (counts,) = self._files.read(self._lists, ("_length",))
        if counts.null_count:
            raise CorruptError(f"{self._lists} has nulls")
        return np.asarray(counts)

    def find(self, token: bytes) -> int | None:
        """Return the number of a word; None when no document has it.

        Raises:
            CorruptError: the word has no list.
        """
        known = self._found
        if token in known:
            return known[token]
        found = self._tokens.find(token)
        if found is not None and found >= len(self._counts):
            raise CorruptError(f"{self._lists} has no list {found}")
        if len(known) >= _MOST_FOUND:
            known.clear()
        known[token] = found
        return found

    def near(self, near: Near) -> list[bytes]:
        """Return the first words that are near another."""
        return self._tokens.near(near)

    def count(self, number: int) -> int:
        """Return how many documents have a word."""
        return int(self._counts[number])

    def lists(self, numbers: Sequence[int], *, with_positions: bool) -> list[Postings]:
        """Return the documents of words, read together.

        Raises:
            CorruptError: they are damaged.
        """
        place = (self._files.place, self._lists)
        known: dict[int, Postings | None] = {one: PAGES.get((place, one)) for one in numbers}
        if None in known.values():
            missing = np.array(sorted(one for one, kept in known.items() if kept is None))
            (blocks,) = self._files.read(self._lists, ("_posting",), missing)
            for at, number in enumerate(missing.tolist()):
                made = self._decoded(_item(blocks, at), number)
                PAGES.put((place, number), made, made.nbytes)
                known[number] = made
        found = [one for number in numbers if (one := known[number]) is not None]
        if with_positions:
            return [self._placed(*one) for one in zip(numbers, found, strict=True)]
        return found

    def _decoded(self, blocks: pa.Array, number: int) -> Postings:
        pieces, count = pieces_of(blocks), self.count(number)
        found = decode_postings(pieces, count, self.format, len(self.lengths))
        return Postings(*found, self._norms)

    def _placed(self, number: int, postings: Postings) -> Postings:
        def read() -> tuple[Positions, int]:
            found = self._read_positions(number, postings.frequencies)
            return found, found.nbytes

        return postings.placed(self._files.kept(("positions", self._lists, number), read))

    def _read_positions(self, number: int, frequencies: Words) -> Positions:
        row = np.array([number])
        starts = np.concatenate([[0], np.cumsum(frequencies, dtype=np.int64)])
        if "_position" in self._columns:
            (documents,) = self._files.read(self._lists, ("_position",), row)
            lists = _item(documents, 0)
            firsts = edges_of(lists) - lists.offsets[0].as_py()
            items = pieces_of(lists.flatten())
            values = decode_position_items(items, firsts, frequencies)
            return Positions(values, starts, int(frequencies.max(initial=0)))
        columns = ("_compressed_position", "_position_block_offset")
        stream, parts = self._files.read(self._lists, columns, row)
        whole = pieces_of(stream)
        edges = np.append(np.asarray(_item(parts, 0)).astype(np.int64), whole.edges[1])
        edges[:-1] += whole.edges[0]
        pieces = Pieces(whole.data, np.ascontiguousarray(edges))
        values = decode_positions(pieces, self.format.block, frequencies)
        return Positions(values, starts, int(frequencies.max(initial=0)))


def pieces_of(values: pa.Array) -> Pieces:
    """Return byte strings of an Arrow array.

    Raises:
        CorruptError: one is null.
    """
    if values.null_count:
        raise CorruptError("a block of a full-text index is null")
    _, _, data = values.buffers()
    bytes_ = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Pieces(bytes_, edges_of(values))


def edges_of(values: pa.Array) -> Integers:
    """Return the offsets of lists or byte strings."""
    width = np.int64 if pa.types.is_large_list(values.type) else np.int32
    if pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type):
        width = np.int64
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(1, np.int64)
    edges = np.frombuffer(buffer, width)[values.offset : values.offset + len(values) + 1]
    return np.ascontiguousarray(edges, np.int64)


def _item(lists: pa.Array, place: int) -> pa.Array:
    """Return one list of many.

    Raises:
        CorruptError: it is null.
    """
    found = lists[place].values
    if found is None:
        raise CorruptError("a word of a full-text index has no list")
    return found
