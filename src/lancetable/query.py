"""Queries of a full-text search.

=================  ================================================================================
``Match``          documents with any word of a text, or with all of them
``Phrase``         documents with the words one behind the other
``Boolean``        what must be, should be and must not be there
``Boost``          documents of one query, those of another further behind
``MultiMatch``     a text in several columns, each document with its best column
``CombinedFields`` a text in several columns as if they were one
=================  ================================================================================

``a & b`` finds what both find, ``a | b`` what one finds, ``a & ~b`` what only the first finds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeAlias

from lancetable.errors import InputError
from lancetable.options import check_options, option

__all__ = ["Boolean", "Boost", "CombinedFields", "Match", "MultiMatch", "Phrase", "Query"]

Operator: TypeAlias = Literal["or", "and"]
MOST_EDITS = 8


class Query:
    """Any query."""

    __slots__ = ()

    def __and__(self, other: "Query") -> "Boolean":
        """Return the query for what both find."""
        return _joined(self, other, "must")

    def __or__(self, other: "Query") -> "Boolean":
        """Return the query for what one finds."""
        return _joined(self, other, "should")

    def __invert__(self) -> "Boolean":
        """Return what excludes the documents that this finds; combine it with another by ``&``."""
        return Boolean(must_not=(self,))


@dataclass(frozen=True, slots=True)
class Match(Query):
    """Documents with words of a text."""

    text: str
    column: str | None = None
    operator: Operator = option("or", help="or: any word is enough; and: all are needed.")
    fuzziness: int = option(
        0, minimum=0, maximum=MOST_EDITS, help="How many letters of a word may differ."
    )
    prefix_length: int = option(
        0, minimum=0, help="How many letters at the beginning of a word may not differ."
    )
    max_expansions: int = option(
        50, minimum=1, help="The most words that stand for one that may differ."
    )
    boost: float = option(1.0, help="What scores are multiplied by.")

    def __post_init__(self) -> None:
        check_options(self)
        _check_text(self.text)
        _check_factor("boost", self.boost)


@dataclass(frozen=True, slots=True)
class Phrase(Query):
    """Documents with the words of a text one behind the other."""

    text: str
    column: str | None = None
    slop: int = option(0, minimum=0, help="How many words may lie between two of the phrase.")

    def __post_init__(self) -> None:
        check_options(self)
        _check_text(self.text)


@dataclass(frozen=True, slots=True)
class Boolean(Query):
    """What must be, should be and must not be there; without ``must`` one of ``should``."""

    must: Sequence[Query] = ()
    should: Sequence[Query] = ()
    must_not: Sequence[Query] = ()

    def __post_init__(self) -> None:
        for name in ("must", "should", "must_not"):
            given = getattr(self, name)
            if isinstance(given, Query | str) or not isinstance(given, Sequence):
                raise InputError(f"{name} is {given!r}; give a list of queries")
            for one in given:
                _check_query(name, one)
            object.__setattr__(self, name, tuple(given))


@dataclass(frozen=True, slots=True)
class Boost(Query):
    """Documents of one query; those that another finds, too, are further behind."""

    positive: Query
    negative: Query
    negative_boost: float = option(0.5, help="How much of the other score is subtracted.")

    def __post_init__(self) -> None:
        check_options(self)
        _check_query("positive", self.positive)
        _check_query("negative", self.negative)
        _check_factor("negative_boost", self.negative_boost)


@dataclass(frozen=True, slots=True)
class MultiMatch(Query):
    """A text in several columns; the best column gives the score."""

    text: str
    columns: Sequence[str]
    boosts: Sequence[float] | None = None
    operator: Operator = option("or", help="or: any word is enough; and: all in one column.")

    def __post_init__(self) -> None:
        check_options(self)
        _check_columns(self)


@dataclass(frozen=True, slots=True)
class CombinedFields(Query):
    """A text in several columns as if they were one (BM25F)."""

    text: str
    columns: Sequence[str]
    boosts: Sequence[float] | None = None
    operator: Operator = option("or", help="or: any word is enough; and: all in some column.")

    def __post_init__(self) -> None:
        check_options(self)
        _check_columns(self)


def _joined(one: Query, other: Query, name: Literal["must", "should"]) -> Boolean:
    """Join two queries; those that were joined in the same way before are taken apart."""
    must: list[Query] = []
    should: list[Query] = []
    must_not: list[Query] = []
    for each in (one, other):
        _check_query("a part of a query", each)
        parts = _parts(each, name)
        (must if name == "must" else should).extend(parts[0])
        must_not.extend(parts[1])
    return Boolean(must, should, must_not)


def _parts(query: Query, name: str) -> tuple[Sequence[Query], Sequence[Query]]:
    """Return the operands of a query that is joined with others, and what it excludes."""
    if isinstance(query, Boolean):
        own = query.must if name == "must" else query.should
        rest = query.should if name == "must" else query.must
        is_exclusion = not query.must and not query.should
        if not rest and (name == "must" or not query.must_not) and (own or is_exclusion):
            return own, query.must_not
    return (query,), ()


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InputError(f"text is {text!r}; give the words to search for")


def _check_query(name: str, query: object) -> None:
    if not isinstance(query, Query):
        raise InputError(f"{name} is {query!r}; give a query such as Match('words')")


def _check_factor(name: str, value: object) -> None:
    if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
        raise InputError(f"{name} is {value!r}; give a number from 0")


def _check_columns(query: MultiMatch | CombinedFields) -> None:
    _check_text(query.text)
    columns: object = query.columns
    if not isinstance(columns, list | tuple) or not columns:
        raise InputError(f"columns is {columns!r}; give a list of names")
    for one in columns:
        if not isinstance(one, str) or columns.count(one) > 1:
            raise InputError(f"columns has {one!r}; give each name once")
    object.__setattr__(query, "columns", tuple(columns))
    boosts: object = query.boosts
    if boosts is None:
        return
    if not isinstance(boosts, list | tuple) or len(boosts) != len(columns):
        raise InputError(f"boosts is {boosts!r}; give a number for each of {len(columns)} columns")
    for one in boosts:
        _check_factor("boosts", one)
    object.__setattr__(query, "boosts", tuple(map(float, boosts)))
