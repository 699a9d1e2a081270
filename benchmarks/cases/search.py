"""Measure searches for words and for vectors, from a query to the best ten rows.

The queries follow from random positions, new ones for every repeat and the same for all peers. All
peers search the same index files, which pylance has built. What must be equal are the scores and
distances: rows with equal ones may come in any order. The recall of vector indices is measured
beside their times, as the kinds of codes leave peers some freedom.
"""

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from benchmarks.cases.base import RECALL_TARGET, Case, Subject, Unit
from benchmarks.searched import PARTITION_ROWS, TAGGED, phrase_of, queries, recall, words_of

_SIZES, _QUICK = (100_000, 1_000_000), (100_000,)
_FEW_TAGS = f"tag < {TAGGED}"
_LEAST_RECALL = 0.3
_REFINE = 5
_BATCH = 500
SAMPLE = 200
"""Of how many searches the recall is taken."""


def _rated(found: pa.Table) -> list[float]:
    """Return the scores or distances of rows."""
    rates: list[float] = found[-1].to_pylist()
    return rates


def any_word(count: int, subject: Subject) -> list[float]:
    """Find rows with any of some words."""
    words = " ".join(words_of(subject.rows[0], count))
    return _rated(subject.table.find_words(words, "or"))


def all_words(count: int, subject: Subject) -> list[float]:
    """Find rows with all of some words."""
    words = " ".join(words_of(subject.rows[0], count))
    return _rated(subject.table.find_words(words, "and"))


def phrase(subject: Subject) -> list[float]:
    """Find rows with two words one behind the other."""
    return _rated(subject.table.find_words(phrase_of(subject.rows[0]), "phrase"))


def fuzzy(subject: Subject) -> list[float]:
    """Find rows with a word in which one letter may differ."""
    return _rated(subject.table.find_words(words_of(subject.rows[0], 1)[0], "fuzzy"))


def some_words(subject: Subject) -> list[float]:
    """Find rows with any of two words among a twentieth of all rows, which an index names."""
    words = " ".join(words_of(subject.rows[0], 2))
    return _rated(subject.table.find_words(words, "or", _FEW_TAGS))


def exact(subject: Subject) -> list[float]:
    """Find the nearest rows without an index."""
    return _rated(subject.table.find_near("vector", queries(subject.rows)))


def near(column: str, where: str | None, refine: int | None, subject: Subject) -> int:
    """Find near rows of a vector, or of each of several, by an index; return how many."""
    found = subject.table.find_near(column, queries(subject.rows), where, refine)
    return len(found)


def near_recall(column: str, where: str | None, refine: int | None, subject: Subject) -> float:
    """Return which part of the nearest rows an index finds."""
    asked = queries(subject.rows)
    found = subject.table.find_near(column, asked, where, refine)
    part = recall(found, asked, subject.table.count(), only_tagged=where is not None)
    if part < _LEAST_RECALL:
        raise RuntimeError(f"{subject.peer.name} finds only {part:.0%} of the nearest rows")
    return part


def _vector_case(
    name: str, title: str, run: Callable[[Subject], object], target: float, draws: int
) -> Case:
    return Case(name, title, "near", run, target, draws=draws)


_TEXTS = (
    ("text_or_2", "any of 2 words, 10 rows", partial(any_word, 2), 4),
    ("text_or_5", "any of 5 words, 10 rows", partial(any_word, 5), 3),
    ("text_and_2", "both of 2 words, 10 rows", partial(all_words, 2), 4),
    ("text_and_5", "all of 5 words, 10 rows", partial(all_words, 5), 3),
    ("text_phrase", "phrase of 2 words, 10 rows", phrase, 2),
    ("text_fuzzy", "fuzzy word, 10 rows", fuzzy, 2),
    ("text_where", "any of 2 words among 5 % of the rows", some_words, 3),
)
_VECTORS = (
    *((kind, kind.upper(), kind, None, None, 4) for kind in PARTITION_ROWS),
    ("ivf_pq_refine", "IVF_PQ, refined", "ivf_pq", None, _REFINE, 6),
    ("ivf_pq_where", "IVF_PQ among 5 % of the rows", "ivf_pq", _FEW_TAGS, None, 3),
)

CASES = (
    *(
        Case(name, title, "texts", run, target, draws=1, sizes=_SIZES, quick_sizes=_QUICK)
        for name, title, run, target in _TEXTS
    ),
    Case("near_exact", "nearest 10 vectors, no index", "clustered", exact, 20, draws=1),
    *(
        _vector_case(
            f"near_{name}", f"near 10 by {title}", partial(near, column, where, refine), target, 1
        )
        for name, title, column, where, refine, target in _VECTORS
    ),
    _vector_case(
        "near_batch",
        f"near 10 of {_BATCH} vectors by IVF_PQ",
        partial(near, "ivf_pq", None, None),
        2,
        _BATCH,
    ),
    *(
        Case(
            f"recall_{name}",
            f"recall of {title}",
            "near",
            partial(near_recall, column, where, refine),
            RECALL_TARGET,
            draws=SAMPLE,
            unit=Unit.RECALL,
            repeats=1,
        )
        for name, title, column, where, refine, _ in _VECTORS
    ),
)
