"""Find the documents of a full-text index that suit a query best.

The score of a document is a sum over the words of the query: weight x tf / (tf + norm), where tf
is how often the document has the word, and norm grows with the length of the document. Words of a
query come as lists of documents. The NumPy path scores every document that has a word. The compiled
one leaves out documents, and blocks of 128 documents of a list, whose score cannot be among the
best: the largest share tf / (tf + norm) of each block is known. Both add up in the order of the
query, so equal documents have equal scores.

Best are the rows with the highest scores, and of those with equal scores the smallest.
"""

from collections.abc import Sequence
from ctypes import sizeof
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.postings import Words, block_maxima
from lancetable.format.encoding.kernels.records import CorpusRecord, ListRecord

Rows: TypeAlias = npt.NDArray[np.uint64]
Norms: TypeAlias = npt.NDArray[np.float32]
Scores: TypeAlias = npt.NDArray[np.float32]

_CORPUS_WORDS, _LIST_WORDS = sizeof(CorpusRecord) // 8, sizeof(ListRecord) // 8


class Positions(NamedTuple):
    """The positions of a word: those of document i are ``values[starts[i]:starts[i + 1]]``."""

    values: Words
    starts: Integers

    @property
    def most(self) -> int:
        """The most positions that a document has."""
        return int(np.diff(self.starts).max(initial=0))


class Postings:
    """The documents of a word, ascending, and how often each has it."""

    __slots__ = ("frequencies", "ids", "maxima", "place", "positions")

    def __init__(self, ids: Words, frequencies: Words, norms: Norms) -> None:
        """Take decoded postings; ``norms`` are those by which blocks are compared."""
        self.ids, self.frequencies = ids, frequencies
        self.maxima = block_maxima(ids, frequencies, norms)
        self.positions: Positions | None = None
        # Found once: a query of a few microseconds would look at arrays most of the time.
        self.place = (address(ids), address(frequencies), address(self.maxima), len(ids))

    @property
    def nbytes(self) -> int:
        """About the bytes they take."""
        size = self.ids.nbytes + self.frequencies.nbytes + self.maxima.nbytes
        if self.positions is not None:
            size += self.positions.values.nbytes + self.positions.starts.nbytes
        return size


class Word(NamedTuple):
    """A word of a query: what it weighs, and its distance from the one before it."""

    weight: float
    gap: int = 0


class Corpus:
    """Documents as a version of a table has them.

    ``norms`` were those of the maxima times at most ``scale``. ``allowed`` says which documents may
    be found; None stands for all.
    """

    __slots__ = ("allowed", "norms", "place", "rows", "scale")

    def __init__(self, rows: Rows, norms: Norms, allowed: Mask | None, scale: float) -> None:
        self.rows, self.norms, self.allowed, self.scale = rows, norms, allowed, scale
        ascends = bool((rows[1:] > rows[:-1]).all())
        mask = 0 if allowed is None else address(allowed)
        self.place = (address(rows), mask, len(rows), ascends)


class Part(NamedTuple):
    """Documents, and for each word of the query its list in them; None when none has it."""

    corpus: Corpus
    lists: Sequence[Postings | None]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What documents must have."""

    words: tuple[Word, ...]
    needs_all: bool = False
    slop: int | None = None
    """Positions that may lie between two words of a phrase beyond their gap; None for no phrase."""


class Best(NamedTuple):
    """Rows and their scores, the best first."""

    rows: Rows
    scores: Scores


def best(parts: Sequence[Part], ranking: Ranking, most: int) -> Best:
    """Return the best rows of all parts."""
    found = [_most_found(part, ranking) for part in parts]
    # Where all documents are found anyway, none can be left out.
    if DLL is None or (not ranking.needs_all and most >= sum(found)):
        return _every(parts, ranking, most)
    return _ranked(
        [part for part, one in zip(parts, found, strict=True) if one],
        ranking,
        min(most, sum(found)),
    )


def top(rows: Rows, scores: Scores, most: int) -> Best:
    """Return the best of some rows."""
    if 0 < most < len(rows) // 4:
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        places = np.flatnonzero(scores >= least)
        rows, scores = rows[places], scores[places]
    order = np.lexsort((rows, -scores))[:most]
    return Best(rows[order], scores[order])


def _most_found(part: Part, ranking: Ranking) -> int:
    """Return how many documents are found at most."""
    counts = [0 if one is None else len(one.ids) for one in part.lists]
    return min(counts, default=0) if ranking.needs_all else sum(counts)


def _ranked(parts: Sequence[Part], ranking: Ranking, most: int) -> Best:
    count = len(ranking.words)
    scores, rows = np.empty(most, np.float32), np.empty(most, np.uint64)
    room = 0 if ranking.slop is None else _longest(parts)
    reached = np.empty(2 * room + 1, np.uint32)
    corpora = np.zeros((len(parts), _CORPUS_WORDS), np.int64)
    lists = np.zeros((len(parts), count, _LIST_WORDS), np.int64)
    for part, corpus, own in zip(parts, corpora, lists, strict=True):
        corpus[:5] = (address(part.corpus.norms), *part.corpus.place)
        corpus.view(np.float64)[5] = part.corpus.scale
        for word, postings, one in zip(ranking.words, part.lists, own, strict=True):
            if postings is None:
                continue
            one[:4] = postings.place
            if postings.positions is not None:
                one[4] = address(postings.positions.values)
                one[5] = address(postings.positions.starts)
            one[6] = word.gap
            one.view(np.float64)[7] = word.weight
    cursors = np.empty(count * DLL.lt_rank_cursor(), np.uint8)
    found = DLL.lt_rank(
        address(corpora),
        len(parts),
        address(lists),
        count,
        ranking.needs_all,
        -1 if ranking.slop is None else ranking.slop,
        address(reached),
        room,
        address(cursors),
        most,
        address(scores),
        address(rows),
    )
    return top(rows[:found], scores[:found], most)


def _longest(parts: Sequence[Part]) -> int:
    """Return the most positions that a document has of a word."""
    lists = [one for part in parts for one in part.lists if one is not None]
    return max((one.positions.most for one in lists if one.positions is not None), default=0)


def _every(parts: Sequence[Part], ranking: Ranking, most: int) -> Best:
    """Score every document with the words, and return the best."""
    found = [every(part, ranking) for part in parts]
    rows = np.concatenate([np.empty(0, np.uint64), *(one.rows for one in found)])
    scores = np.concatenate([np.empty(0, np.float32), *(one.scores for one in found)])
    return top(rows, scores, most)


def every(part: Part, ranking: Ranking) -> Best:
    """Return all documents of a part that have the words, in their order, and their scores."""
    corpus = part.corpus
    sums = np.zeros(len(corpus.rows), np.float64)
    counts = np.zeros(len(corpus.rows), np.uint16)
    for word, postings in zip(ranking.words, part.lists, strict=True):
        if postings is not None:
            frequencies = postings.frequencies.astype(np.float64)
            norms = corpus.norms[postings.ids]
            sums[postings.ids] += word.weight * (frequencies / (frequencies + norms))
            counts[postings.ids] += 1
    is_found = counts >= (len(ranking.words) if ranking.needs_all else 1)
    if corpus.allowed is not None:
        is_found &= corpus.allowed
    ids = np.flatnonzero(is_found)
    if ranking.slop is not None:
        ids = ids[[_has_phrase(part.lists, ranking, id_) for id_ in ids.tolist()]]
    return Best(corpus.rows[ids], sums[ids].astype(np.float32))


def _has_phrase(lists: Sequence[Postings | None], ranking: Ranking, id_: int) -> bool:
    """Return whether a document that has all words has them one behind the other."""
    reached: set[int] | None = None
    for word, postings in zip(ranking.words, lists, strict=True):
        assert postings is not None
        assert postings.positions is not None
        place = int(np.searchsorted(postings.ids, id_))
        values, starts = postings.positions
        here = values[starts[place] : starts[place + 1]].tolist()
        gaps = range(word.gap, word.gap + (ranking.slop or 0) + 1)
        reached = {
            one for one in here if reached is None or any(one - gap in reached for gap in gaps)
        }
    return bool(reached)
