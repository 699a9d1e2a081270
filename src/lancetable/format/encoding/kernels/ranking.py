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
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.postings import Words, block_maxima
from lancetable.format.encoding.kernels.records import ListRecord

Rows: TypeAlias = npt.NDArray[np.uint64]
Norms: TypeAlias = npt.NDArray[np.float32]
Scores: TypeAlias = npt.NDArray[np.float32]

_LIST_WORDS = sizeof(ListRecord) // 8


class Positions(NamedTuple):
    """The positions of a word: those of document i are ``values[starts[i]:starts[i + 1]]``."""

    values: Words
    starts: Integers
    most: int
    """The most positions that a document has."""

    @property
    def nbytes(self) -> int:
        """The bytes they take."""
        return self.values.nbytes + self.starts.nbytes


class Postings:
    """The documents of a word, ascending, and how often each has it."""

    __slots__ = ("frequencies", "ids", "maxima", "place", "positions")

    def __init__(self, ids: Words, frequencies: Words, norms: Norms) -> None:
        """Take decoded postings; ``norms`` are those by which blocks are compared."""
        self.ids, self.frequencies = ids, frequencies
        self.maxima = block_maxima(ids, frequencies, norms)
        self.positions: Positions | None = None
        """The positions in all documents; None unless they are needed."""

        # Found once: a query of a few microseconds would look at arrays most of the time.
        self.place = (address(ids), address(frequencies), address(self.maxima), len(ids))

    @property
    def nbytes(self) -> int:
        """The bytes they take without positions."""
        return self.ids.nbytes + self.frequencies.nbytes + self.maxima.nbytes

    def placed(self, positions: Positions) -> "Postings":
        """Return the same documents with the positions of the word."""
        made = object.__new__(Postings)
        for name in ("ids", "frequencies", "maxima", "place"):
            setattr(made, name, getattr(self, name))
        made.positions = positions
        return made


class Corpus:
    """Documents as a version of a table has them.

    ``scale`` is how much larger shares may be with these norms than with those of the maxima.
    ``allowed`` says which documents may be found; None stands for all.
    """

    __slots__ = ("allowed", "norms", "place", "rows", "scale")

    def __init__(self, rows: Rows, norms: Norms, allowed: Mask | None, scale: float) -> None:
        self.rows, self.norms, self.allowed, self.scale = rows, norms, allowed, scale
        ascends = bool((rows[1:] > rows[:-1]).all())
        mask = 0 if allowed is None else address(allowed)
        self.place = (address(norms), address(rows), mask, len(rows), ascends)

    def among(self, allowed: Mask) -> "Corpus":
        """Return the same documents, of which others may be found."""
        made = object.__new__(Corpus)
        made.rows, made.norms, made.scale = self.rows, self.norms, self.scale
        made.allowed = allowed
        made.place = (*self.place[:2], address(allowed), *self.place[3:])
        return made


class Part(NamedTuple):
    """Documents, and for each word of the query its weight and its list; None when none has it."""

    corpus: Corpus
    weights: Sequence[float]
    lists: Sequence[Postings | None]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What documents must have."""

    groups: tuple[int, ...]
    """The group of each word of the query; words of a group are neighbours."""

    needs_all: bool = False
    """True when a document must have a word of each group."""

    slop: int | None = None
    """Positions that may lie between two words of a phrase beyond their gap; None for no phrase.

    The group of a word of a phrase is its place, and no two have the same.
    """

    @property
    def is_simple(self) -> bool:
        """Whether the compiled functions can tell: no two words of a group are alternatives."""
        return not self.needs_all or len(set(self.groups)) == len(self.groups)

    def gaps(self) -> list[int]:
        """Return how far each word of a phrase is behind the one before it."""
        return [0, *(after - before for before, after in pairwise(self.groups))]


class Best(NamedTuple):
    """Rows and their scores, the best first."""

    rows: Rows
    scores: Scores


def best(parts: Sequence[Part], ranking: Ranking, most: int) -> Best:
    """Return the best rows of all parts."""
    found = [_most_found(part, ranking) for part in parts]
    if not ranking.groups or not any(found):
        return _every([], ranking, most)
    # Where all documents are found anyway, none can be left out.
    if DLL is None or not ranking.is_simple or (not ranking.needs_all and most >= sum(found)):
        return _every(parts, ranking, most)
    return _ranked(
        [part for part, one in zip(parts, found, strict=True) if one],
        ranking,
        min(most, sum(found)),
    )


def are_among(rows: Rows, wanted: Rows) -> Mask:
    """Return which of some ascending rows are among others, which ascend, too."""
    marks = np.zeros(len(rows), np.bool_)
    if DLL is not None:
        whole = np.ascontiguousarray(wanted)
        DLL.lt_mark_rows(address(rows), len(rows), address(whole), len(whole), address(marks))
        return marks
    places = np.searchsorted(rows, wanted)
    places = places[places < len(rows)]
    marks[places[rows[places] == wanted[: len(places)]]] = True
    return marks


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
    is_least = ranking.needs_all and ranking.is_simple
    return min(counts, default=0) if is_least else sum(counts)


def _ranked(parts: Sequence[Part], ranking: Ranking, most: int) -> Best:
    count, gaps = len(ranking.groups), ranking.gaps()
    scores, rows = np.empty(most, np.float32), np.empty(most, np.uint64)
    room = 0 if ranking.slop is None else _longest(parts)
    reached = np.empty(2 * room + 1, np.uint32)
    corpora = np.array([(*part.corpus.place, 0) for part in parts], np.int64)
    corpora.view(np.float64)[:, -1] = [part.corpus.scale for part in parts]
    lists = np.array([_record(part, gaps) for part in parts], np.int64)
    lists = lists.reshape(len(parts), count, _LIST_WORDS)
    lists.view(np.float64)[:, :, -1] = [part.weights for part in parts]
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


def _record(part: Part, gaps: Sequence[int]) -> list[int]:
    """Return the words of the records of all lists, without their weights."""
    record: list[int] = []
    for postings, gap in zip(part.lists, gaps, strict=True):
        if postings is None:
            record += (0,) * _LIST_WORDS
        elif postings.positions is None:
            record += (*postings.place, 0, 0, gap, 0)
        else:
            values, starts, _ = postings.positions
            record += (*postings.place, address(values), address(starts), gap, 0)
    return record


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
    counts = np.zeros(len(corpus.rows), np.int32)
    words = zip(ranking.groups, part.weights, part.lists, strict=True)
    for _, group in groupby(words, itemgetter(0)):
        has_any = np.zeros(len(corpus.rows), np.bool_)
        for _, weight, postings in group:
            if postings is None:
                continue
            frequencies = postings.frequencies.astype(np.float64)
            norms = corpus.norms[postings.ids]
            sums[postings.ids] += weight * (frequencies / (frequencies + norms))
            has_any[postings.ids] = True
        counts += has_any
    is_found = counts >= (len(set(ranking.groups)) if ranking.needs_all else 1)
    if corpus.allowed is not None:
        is_found &= corpus.allowed
    ids = np.flatnonzero(is_found)
    if ranking.slop is not None:
        ids = ids[[_has_phrase(part.lists, ranking, id_) for id_ in ids.tolist()]]
    return Best(corpus.rows[ids], sums[ids].astype(np.float32))


def _has_phrase(lists: Sequence[Postings | None], ranking: Ranking, id_: int) -> bool:
    """Return whether a document that has all words has them one behind the other."""
    reached: set[int] | None = None
    for gap, postings in zip(ranking.gaps(), lists, strict=True):
        assert postings is not None
        assert postings.positions is not None
        place = int(np.searchsorted(postings.ids, id_))
        values, starts, _ = postings.positions
        here = values[starts[place] : starts[place + 1]].tolist()
        gaps = range(gap, gap + (ranking.slop or 0) + 1)
        reached = {one for one in here if reached is None or any(one - n in reached for n in gaps)}
    return bool(reached)
