"""Evaluate a full-text query: what each of its parts needs, and how their scores make one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from lancetable.errors import InputError
from lancetable.format.encoding.kernels.ranking import Best, top
from lancetable.index.base import Numbers
from lancetable.index.text.combined import Column, Floats, combined, values_of
from lancetable.index.text.documents import Documents, Fuzzy, Words
from lancetable.query import Boolean, Boost, CombinedFields, Match, MultiMatch, Phrase, Query
from lancetable.scan.texts.column import TextColumn, are_alike


class Context(NamedTuple):
    """The documents of the columns of a query, and the rows that may be found; None for all."""

    documents: Mapping[str, Documents]
    allowed: Numbers | None = None


class Node(Protocol):
    """A part of a query, its texts analysed."""

    def leaves(self) -> "Iterator[Leaf]":
        """Yield the words that are asked for, with their columns."""
        ...

    def best(self, context: Context, most: int | None) -> Best:
        """Return the best rows, or all of them."""
        ...


@dataclass(frozen=True, slots=True)
class Leaf:
    """Words in one column."""

    column: str
    words: Words

    def leaves(self) -> "Iterator[Leaf]":
        """Yield this leaf."""
        yield self

    def best(self, context: Context, most: int | None) -> Best:
        """Return the best rows."""
        return context.documents[self.column].best(self.words, most, context.allowed)


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes of which each row has the best score."""

    nodes: Sequence[Node]

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves of all nodes."""
        return (leaf for node in self.nodes for leaf in node.leaves())

    def best(self, context: Context, most: int | None) -> Best:
        """Return the best rows of all nodes."""
        every = [node.best(context, most) for node in self.nodes]
        rows = np.concatenate([one.rows for one in every])
        scores = np.concatenate([one.scores for one in every])
        order = np.lexsort((-scores, rows))
        rows, scores = rows[order], scores[order]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = rows[1:] != rows[:-1]
        return _top(rows[is_first], scores[is_first].astype(np.float64), most)


@dataclass(frozen=True, slots=True)
class _Boolean:
    must: Sequence[Node]
    should: Sequence[Node]
    must_not: Sequence[Node]

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves of all nodes."""
        nodes = (*self.must, *self.should, *self.must_not)
        return (leaf for node in nodes for leaf in node.leaves())

    def best(self, context: Context, most: int | None) -> Best:
        """Return the best of the rows that all of ``must``, or one of ``should``, find."""
        must = [node.best(context, None) for node in self.must]
        should = [node.best(context, None) for node in self.should]
        rows = must[0].rows if must else np.concatenate([one.rows for one in should])
        rows = np.unique(rows)
        for one in must[1:]:
            rows = np.intersect1d(rows, one.rows, assume_unique=True)
        for node in self.must_not:
            excluded = node.best(context, None).rows
            rows = np.setdiff1d(rows, excluded, assume_unique=True)
        scores = np.zeros(len(rows))
        for one in (*must, *should):
            scores += values_of(one.rows, one.scores, rows)
        return _top(rows, scores, most)


@dataclass(frozen=True, slots=True)
class _Boosted:
    positive: Node
    negative: Node
    factor: float

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves of both nodes."""
        yield from self.positive.leaves()
        yield from self.negative.leaves()

    def best(self, context: Context, most: int | None) -> Best:
        """Return the best rows of the first node."""
        found, other = (one.best(context, None) for one in (self.positive, self.negative))
        scores = found.scores.astype(np.float64) - self.factor * values_of(
            other.rows, other.scores, found.rows
        )
        return _top(found.rows, scores, most)


@dataclass(frozen=True, slots=True)
class _Combined:
    words: Sequence[Leaf]
    boosts: Sequence[float]

    def leaves(self) -> Iterator[Leaf]:
        """Yield a leaf for each column."""
        yield from self.words

    def best(self, context: Context, most: int | None) -> Best:
        """Return the best rows."""
        columns = [
            Column(context.documents[leaf.column], boost)
            for leaf, boost in zip(self.words, self.boosts, strict=True)
        ]
        words = self.words[0].words
        tokens = [one.text.encode() for one in words.tokens]
        needs_all = words.needs_all and len({one.position for one in words.tokens}) > 1
        return combined(columns, tokens, most, needs_all=needs_all, allowed=context.allowed)


def node_of(query: Query, defaults: Sequence[str], column_of: Callable[[str], TextColumn]) -> Node:
    """Return a query with its texts analysed; parts without a column ask ``defaults``.

    Raises:
        InputError: the query cannot be evaluated.
        SchemaError: there is no such column, or it does not hold texts.
    """

    def nodes(queries: Sequence[Query]) -> list[Node]:
        return [node_of(one, defaults, column_of) for one in queries]

    match query:
        case Match() | Phrase():
            names = defaults if query.column is None else (query.column,)
            if not names:
                raise InputError("the table has no column of texts; name a column to search in")
            found = [Leaf(name, _words(query, column_of(name))) for name in names]
            return found[0] if len(found) == 1 else _Group(found)
        case MultiMatch(text, columns, boosts, operator):
            pairs = zip(columns, boosts or [1.0] * len(columns), strict=True)
            return _Group(
                nodes([Match(text, name, operator, boost=boost) for name, boost in pairs])
            )
        case CombinedFields():
            return _combined(query, column_of)
        case Boolean(must, should, must_not):
            if not must and not should:
                raise InputError(
                    "a Boolean query needs must or should: nothing is left to be excluded from"
                )
            return _Boolean(nodes(must), nodes(should), nodes(must_not))
        case Boost(positive, negative, factor):
            first, other = nodes([positive, negative])
            return _Boosted(first, other, factor)
    raise InputError(f"{query!r} is not a query")


def _words(query: Match | Phrase, column: TextColumn) -> Words:
    tokens = column.query_tokens(query.text)
    if isinstance(query, Phrase):
        return Words(tokens, slop=query.slop)
    fuzzy = None
    if query.fuzziness:
        is_json = column.analysis.lance_tokenizer == "json"
        fuzzy = Fuzzy(query.fuzziness, query.prefix_length, query.max_expansions, is_json)
    return Words(tokens, needs_all=query.operator == "and", fuzzy=fuzzy, boost=query.boost)


def _combined(query: CombinedFields, column_of: Callable[[str], TextColumn]) -> _Combined:
    columns = [column_of(name) for name in query.columns]
    if not all(are_alike(one.analysis, columns[0].analysis) for one in columns):
        raise InputError(
            f"the columns {', '.join(query.columns)} are analysed in different ways; "
            "CombinedFields needs indices of the same parameters, MultiMatch does not"
        )
    words = Words(columns[0].query_tokens(query.text), needs_all=query.operator == "and")
    return _Combined(
        [Leaf(name, words) for name in query.columns], query.boosts or [1.0] * len(columns)
    )


def _top(rows: Numbers, scores: Floats, most: int | None) -> Best:
    return top(rows, scores.astype(np.float32), len(rows) if most is None else most)
