"""Rank documents by the words of several columns as if they were one (BM25F).

Frequencies and lengths of a column count as many times as its boost says. There are as many
documents, and as many with a word, as in the column that has the most of them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.ranking import Best, top
from lancetable.index.base import Numbers
from lancetable.index.text.bm25 import K1, B, Statistics
from lancetable.index.text.documents import Documents, lists_of

Floats = npt.NDArray[np.float64]


class Column(NamedTuple):
    """The documents of one column, and how many times they count."""

    documents: Documents
    boost: float


class _Rows(NamedTuple):
    """Rows, a number for each, and which of them are live."""

    rows: Numbers
    values: Floats
    live: Mask

    def of_live(self, wanted: Numbers) -> Floats:
        """Return the numbers of ascending live rows; 0 for others."""
        return values_of(self.rows[self.live], self.values[self.live], wanted)


def values_of(rows: Numbers, values: "npt.NDArray[Any]", wanted: Numbers) -> Floats:
    """Return the numbers that some rows have; 0 for rows that are not among them."""
    order = np.argsort(rows, kind="stable")
    rows, values = rows[order], values[order]
    found = np.zeros(len(wanted))
    places = np.searchsorted(rows, wanted)
    inside = np.flatnonzero(places < len(rows))
    inside = inside[rows[places[inside]] == wanted[inside]]
    found[inside] = values[places[inside]]
    return found


def combined(
    columns: Sequence[Column],
    tokens: Sequence[bytes],
    most: int | None,
    *,
    needs_all: bool = False,
    allowed: Numbers | None = None,
) -> Best:
    """Return the best rows with any word, or with all of them, in any of the columns."""
    lengths = [_lengths(column) for column in columns]
    words = sum(float(one.values.sum()) for one in lengths)
    statistics = Statistics(max(len(one.rows) for one in lengths))
    found = [[_frequencies(column, token) for column in columns] for token in tokens]
    rows = _candidates(found)
    if allowed is not None:
        rows = np.intersect1d(rows, allowed, assume_unique=True)
    length = sum((one.of_live(rows) for one in lengths), start=np.zeros(len(rows)))
    norms = K1 * (1 - B + B * length * statistics.documents / max(words, 1e-9))
    scores = np.zeros(len(rows))
    is_found = np.full(len(rows), needs_all)
    for each in found:
        with_word = max(len(one.rows) for one in each)
        frequency = sum((one.of_live(rows) for one in each), start=np.zeros(len(rows)))
        scores += statistics.weight(with_word) * (frequency / (frequency + norms))
        is_found = is_found & (frequency > 0) if needs_all else is_found | (frequency > 0)
    rows, scores = rows[is_found], scores[is_found]
    return top(rows, scores.astype(np.float32), len(rows) if most is None else most)


def _lengths(column: Column) -> _Rows:
    members = column.documents.members
    lengths = [one.partition.lengths * np.float64(column.boost) for one in members]
    live = [np.ones(len(one.rows), np.bool_) if one.live is None else one.live for one in members]
    return _joined([one.rows for one in members], lengths, live)


def _frequencies(column: Column, token: bytes) -> _Rows:
    """Return the rows with a word and how often each has it."""
    rows, frequencies, live = [], [], []
    for member in column.documents.members:
        (postings,) = lists_of(member.partition, [token])
        if postings is not None:
            rows.append(member.rows[postings.ids])
            frequencies.append(postings.frequencies * np.float64(column.boost))
            is_live = np.ones(len(postings.ids), np.bool_)
            live.append(is_live if member.live is None else member.live[postings.ids])
    return _joined(rows, frequencies, live)


def _joined(
    rows: Sequence[Numbers], values: "Sequence[npt.NDArray[Any]]", live: Sequence[Mask]
) -> _Rows:
    return _Rows(
        np.concatenate([np.empty(0, np.uint64), *rows]),
        np.concatenate([np.empty(0, np.float64), *values]),
        np.concatenate([np.empty(0, np.bool_), *live]),
    )


def _candidates(found: Sequence[Sequence[_Rows]]) -> Numbers:
    """Return the live rows that have any word, ascending."""
    each = [one.rows[one.live] for words in found for one in words]
    return np.unique(np.concatenate([np.empty(0, np.uint64), *each]))
