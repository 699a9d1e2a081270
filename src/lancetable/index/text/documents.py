"""All documents of a column in a version of a table, and which of them have some words.

The documents are those of partitions of segments, and those of partitions in memory, which hold the
rows that no segment describes. Statistics count the documents of both, deleted ones of segments
included until the index is written anew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from lancetable.errors import InputError
from lancetable.expression.analysis.analyzer import QueryToken
from lancetable.format.arrays import Mask
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.ranking import (
    Best,
    Corpus,
    Part,
    Postings,
    Ranking,
    are_among,
    best,
)
from lancetable.format.encoding.kernels.token_set import LONGEST_WORD, Near
from lancetable.index.base import Numbers
from lancetable.index.text.bm25 import Statistics, norms_of
from lancetable.index.text.memory import MemoryPartition, Wanted
from lancetable.index.text.partition import Partition

StatisticsOf: TypeAlias = Literal["all", "index"]
"""Which documents are counted: all; or for those of segments only those of segments."""


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """How many letters of a word may differ, behind a beginning that may not."""

    distance: int
    prefix_length: int = 0
    most: int = 50
    is_json: bool = False
    """True when words begin with a path and a type, which may not differ."""

    def near(self, word: str) -> Near:
        """Return the words that stand for one.

        Raises:
            InputError: the word is too long.
        """
        if len(word) > LONGEST_WORD:
            raise InputError(
                f"a word of {len(word)} letters is too long for a fuzzy search; the most are "
                f"{LONGEST_WORD}"
            )
        fixed = len(word) - len(word.split(",", 2)[-1]) if self.is_json else 0
        return Near(word, self.distance, min(fixed + self.prefix_length, len(word)), self.most)


@dataclass(frozen=True, slots=True)
class Words:
    """Words that documents must have, after analysis."""

    tokens: tuple[QueryToken, ...]
    needs_all: bool = False
    slop: int | None = None
    """Of a phrase: how many words may lie between two of its words."""

    fuzzy: Fuzzy | None = None
    boost: float = 1.0

    def wanted(self) -> Wanted:
        """Return the words whose documents are needed."""
        if self.fuzzy is None:
            return Wanted(frozenset(_bytes(one.text) for one in self.tokens))
        return Wanted(frozenset(), tuple(self.fuzzy.near(one.text) for one in self.tokens))


class Member:
    """Documents of one partition as the version has them.

    ``rows`` are row ids of the version, or addresses when it has no stable ones. ``live`` says
    which documents it still has; None stands for all.
    """

    def __init__(self, partition: Partition, rows: Numbers, live: Mask | None) -> None:
        self.partition = partition
        self.rows = rows
        self.live = live
        self._corpora: dict[float, Corpus] = {}

    @property
    def is_stored(self) -> bool:
        """Whether the partition is one of a segment."""
        return not isinstance(self.partition, MemoryPartition)

    @cached_property
    def _order(self) -> Integers | None:
        """The documents in the order of their rows; None when they are in it."""
        rows = self.rows
        return None if (rows[1:] > rows[:-1]).all() else np.argsort(rows, kind="stable")

    def corpus(self, average: float, allowed: Numbers | None) -> Corpus:
        """Return the documents for a ranking; ``allowed`` are ascending rows."""
        made = self._corpora.get(average)
        if made is None:
            norms = norms_of(self.partition.lengths, average)
            scale = max(1.0, average / self.partition.statistics.average)
            self._corpora.clear()  # statistics rarely change within a version
            made = self._corpora[average] = Corpus(self.rows, norms, self.live, scale)
        return made if allowed is None else made.among(self.mask(allowed))

    def mask(self, allowed: Numbers) -> Mask:
        """Return which live documents are among ascending rows."""
        if self._order is None:
            found = are_among(self.rows, allowed)
        else:
            found = np.zeros(len(self.rows), np.bool_)
            found[self._order[are_among(self.rows[self._order], allowed)]] = True
        return found if self.live is None else found & self.live


@dataclass(frozen=True, slots=True)
class _Kind:
    """Members, and the documents that are counted for their scores."""

    members: Sequence[Member]
    counted: Sequence[Member]
    statistics: Statistics

    @classmethod
    def of(cls, members: Sequence[Member], counted: Sequence[Member]) -> "_Kind":
        """Count the documents."""
        statistics = Statistics()
        for member in counted:
            statistics = statistics.plus(member.partition.statistics)
        return cls(members, counted, statistics)

    def weight(self, token: bytes) -> float:
        """Return the weight of a word."""
        found = [(one.partition, one.partition.find(token)) for one in self.counted]
        return self.statistics.weight(
            sum(partition.count(number) for partition, number in found if number is not None)
        )


_MOST_WEIGHTS = 10_000


class Documents:
    """The documents of a column."""

    def __init__(self, members: Iterable[Member], statistics: StatisticsOf = "all") -> None:
        self.members = [*members]
        stored = [member for member in self.members if member.is_stored]
        others = [member for member in self.members if not member.is_stored]
        self._kinds = [_Kind.of(self.members, self.members)]
        if statistics == "index" and stored:
            self._kinds = [_Kind.of(stored, stored), _Kind.of(others, self.members)]
        self._weights: dict[bytes, list[float]] = {}

    def best(self, words: Words, most: int | None, allowed: Numbers | None = None) -> Best:
        """Return the best rows among those allowed; None for all.

        Raises:
            CorruptError: a file of a segment is damaged.
            InputError: a phrase is asked for and there are no positions.
        """
        tokens = self._tokens(words)
        places = tuple([place for place, _ in tokens])
        has_places = len(set(places)) > 1
        is_phrase = words.slop is not None and has_places
        ranking = Ranking(
            places,
            needs_all=(words.needs_all or is_phrase) and has_places,
            slop=words.slop if is_phrase else None,
        )
        names = [token for _, token in tokens]
        weights = [self._weights_of(name) for name in names]
        parts = []
        for number, kind in enumerate(self._kinds):
            own = [words.boost * each[number] for each in weights]
            for member in kind.members:
                lists = lists_of(member.partition, names, with_positions=is_phrase)
                if any(lists):
                    corpus = member.corpus(kind.statistics.average, allowed)
                    parts.append(Part(corpus, own, lists))
        total = sum(len(part.corpus.rows) for part in parts)
        return best(parts, ranking, total if most is None else most)

    def _weights_of(self, token: bytes) -> list[float]:
        """Return the weight of a word for each kind of member."""
        found = self._weights.get(token)
        if found is None:
            if len(self._weights) >= _MOST_WEIGHTS:
                self._weights.clear()
            found = self._weights[token] = [kind.weight(token) for kind in self._kinds]
        return found

    def _tokens(self, words: Words) -> list[tuple[int, bytes]]:
        """Return the words to look up with their places; fuzzy ones are replaced by many."""
        if words.fuzzy is None:
            return [(one.position, _bytes(one.text)) for one in words.tokens]
        found = []
        for place, one in enumerate(words.tokens):
            near = words.fuzzy.near(one.text)
            names: set[bytes] = set()
            for member in self.members:
                names.update(member.partition.near(near))
            # A word that nothing stands for is looked up itself: no document has it.
            chosen = sorted(names)[: near.most] or [_bytes(one.text)]
            found += [(place, name) for name in chosen]
        return found


def lists_of(
    partition: Partition, tokens: Sequence[bytes], *, with_positions: bool = False
) -> list[Postings | None]:
    """Return the list of each word; None when the partition does not have it.

    Raises:
        InputError: positions are needed, and the partition has none.
    """
    if with_positions and not partition.has_positions:
        raise InputError(
            "a phrase needs an index with the positions of words; create it with "
            "FullText(with_position=True)"
        )
    numbers = [partition.find(token) for token in tokens]
    wanted = [*dict.fromkeys([one for one in numbers if one is not None])]
    lists = partition.lists(wanted, with_positions=with_positions) if wanted else ()
    found = dict(zip(wanted, lists, strict=True))
    return [None if one is None else found[one] for one in numbers]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
