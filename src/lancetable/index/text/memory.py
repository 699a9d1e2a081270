"""A partition in memory, made of rows that no index describes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.expression.analysis.analyzer import Analyzer
from lancetable.expression.analysis.parameters import Analysis
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.postings import Words
from lancetable.format.encoding.kernels.ranking import Positions, Postings
from lancetable.format.encoding.kernels.token_set import Near
from lancetable.index.base import Numbers
from lancetable.index.text.bm25 import Statistics, norms_of
from lancetable.index.text.tokens import near_words


class Wanted(NamedTuple):
    """The words that queries ask for."""

    tokens: frozenset[bytes]
    near: tuple[Near, ...] = ()


class MemoryPartition:
    """Documents in memory and all their words, or those that a query asks for."""

    has_positions = True

    def __init__(self, rows: Numbers, lengths: Words, words: "_WordLists") -> None:
        self.rows = rows
        self.lengths = lengths
        self.statistics = Statistics(len(lengths), int(lengths.sum(dtype=np.int64)))
        self._words = words
        self._norms = norms_of(lengths, self.statistics.average)

    @property
    def nbytes(self) -> int:
        """About the bytes it takes."""
        return self.rows.nbytes + 2 * self.lengths.nbytes + self._words.nbytes

    def find(self, token: bytes) -> int | None:
        """Return the number of a word; None when no document has it."""
        return self._words.numbers.get(token)

    def near(self, near: Near) -> list[bytes]:
        """Return the first words, in the order of their bytes, that are near another."""
        return near_words(sorted(self._words.numbers), near)

    def count(self, number: int) -> int:
        """Return how many documents have a word."""
        edges = self._words.edges
        return int(edges[number + 1] - edges[number])

    def lists(self, numbers: Sequence[int], *, with_positions: bool) -> list[Postings]:
        """Return the documents of words."""
        return [self._list(number, with_positions=with_positions) for number in numbers]

    def _list(self, number: int, *, with_positions: bool) -> Postings:
        words = self._words
        here = slice(*words.edges[number : number + 2].tolist())
        made = Postings(words.ids[here], words.frequencies[here], self._norms)
        if not with_positions:
            return made
        starts = words.starts[here.start : here.stop + 1]
        values = words.positions[starts[0] : starts[-1]]
        most = int(made.frequencies.max(initial=0))
        return made.placed(Positions(values, starts - starts[0], most))

    def only(self, wanted: Wanted) -> "MemoryPartition":
        """Return the same documents with the words that a query asks for, the others forgotten."""
        names = {token for token in wanted.tokens if token in self._words.numbers}
        for near in wanted.near:
            names.update(self.near(near))
        return MemoryPartition(self.rows, self.lengths, self._words.only(sorted(names)))


class _WordLists(NamedTuple):
    """Lists of words one behind the other: those of word i are from ``edges[i]`` on."""

    numbers: dict[bytes, int]
    edges: Integers
    ids: Words
    frequencies: Words
    starts: Integers
    """Where the positions of each document begin, and at the end where the last ones stop."""

    positions: Words

    @property
    def nbytes(self) -> int:
        """About the bytes they take."""
        arrays = (self.edges, self.ids, self.frequencies, self.starts, self.positions)
        return sum(one.nbytes for one in arrays) + sum(100 + len(one) for one in self.numbers)

    def only(self, names: Sequence[bytes]) -> "_WordLists":
        """Return copies of the lists of some words."""
        spans = [self.edges[number : number + 2] for number in map(self.numbers.__getitem__, names)]
        places = [np.arange(*span) for span in spans]
        kept = np.concatenate([np.empty(0, np.int64), *places])
        sizes = np.diff(self.starts)[kept]
        parts = [self.positions[slice(*self.starts[span].tolist())] for span in spans]
        return _WordLists(
            {name: number for number, name in enumerate(names)},
            _sums([len(place) for place in places]),
            self.ids[kept],
            self.frequencies[kept],
            _sums(sizes),
            np.concatenate([np.empty(0, np.uint32), *parts]),
        )


def partition_of(
    analysis: Analysis, batches: Iterable[tuple[pa.Array, Numbers]]
) -> MemoryPartition:
    """Return the partition of the values and rows of some batches.

    Raises:
        CorruptError: a value is damaged.
        UnsupportedError: this release does not have the tokenizer.
    """
    analyzer = Analyzer(analysis)
    documents, codes, positions = [np.empty(0, np.int64)], [], []
    rows = [np.empty(0, np.uint64)]
    total = 0
    for values, numbers in batches:
        found = analyzer.add(values)
        documents.append(found.documents.astype(np.int64) + total)
        codes.append(found.codes)
        positions.append(found.positions)
        rows.append(numbers)
        total += len(values)
    words = analyzer.words.texts().cast(pa.large_binary()).to_pylist()
    return _partition(
        words,
        np.concatenate(documents),
        np.concatenate([np.empty(0, np.int32), *codes]),
        np.concatenate([np.empty(0, np.int32), *positions]),
        np.concatenate(rows),
    )


def _partition(
    words: list[bytes], documents: Integers, codes: Words, positions: Words, rows: Numbers
) -> MemoryPartition:
    lengths = np.bincount(documents, minlength=len(rows)).astype(np.uint32)
    has_words = lengths > 0
    ids = (np.cumsum(has_words) - 1)[documents]
    order = np.argsort(codes, kind="stable")  # documents ascend, and positions in each
    codes, ids = codes[order], ids[order]
    is_first = np.ones(len(codes), np.bool_)
    is_first[1:] = (codes[1:] != codes[:-1]) | (ids[1:] != ids[:-1])
    firsts = np.flatnonzero(is_first)
    lists = _WordLists(
        {word: number for number, word in enumerate(words)},
        _sums(np.bincount(codes[firsts], minlength=len(words))),
        ids[firsts].astype(np.uint32),
        np.diff(np.append(firsts, len(codes))).astype(np.uint32),
        np.append(firsts, len(codes)),
        positions[order].astype(np.uint32),
    )
    return MemoryPartition(rows[has_words], lengths[has_words], lists)


def _sums(sizes: "Integers | Sequence[int]") -> Integers:
    """Return where each of some pieces begins, and at the end where the last one stops."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
