"""All documents of a column in a version of a table, and which of them have some words.

The documents are those of partitions of segments, and those of partitions in memory, which hold the
rows that no segment describes. Statistics count the documents of both, deleted ones of segments
included until the index is written anew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

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
        rows = self.rows if self._order is None else self.rows[self._order]
        found = np.zeros(len(rows), np.bool_)
        places = np.searchsorted(rows, allowed)
        inside = places < len(rows)
        places = places[inside]
        places = places[rows[places] == allowed[inside]]
        found[places if self._order is None else self._order[places]] = True
        return found if self.live is None else found & self.live


class _Counted(NamedTuple):
    """The members of one kind, and what is counted for them."""

    members: Sequence[Member]
    counted: Sequence[Member]

    @property
    def statistics(self) -> Statistics:
        """The documents that are counted."""
        found = Statistics()
        for member in self.counted:
            found = found.plus(member.partition.statistics)
        return found


class Documents:
    """The documents of a column."""

    def __init__(self, members: Iterable[Member], statistics: StatisticsOf = "all") -> None:
        self.members = [*members]
        stored = [member for member in self.members if member.is_stored]
        others = [member for member in self.members if not member.is_stored]
        self._kinds = [_Counted(self.members, self.members)]
        if statistics == "index" and stored:
            self._kinds = [_Counted(stored, stored), _Counted(others, self.members)]

    def best(self, words: Words, most: int | None, allowed: Numbers | None = None) -> Best:
        """Return the best rows among those allowed; None for all.

        Raises:
            CorruptError: a file of a segment is damaged.
            InputError: a phrase is asked for and there are no positions.
        """
        tokens = self._tokens(words)
        places = [place for place, _ in tokens]
        is_phrase = words.slop is not None and len(set(places)) > 1
        ranking = Ranking(
            tuple(places),
            needs_all=(words.needs_all or is_phrase) and len(set(places)) > 1,
            slop=words.slop if is_phrase else None,
        )
        parts = [
            part
            for kind in self._kinds
            for part in self._parts(kind, words, [token for _, token in tokens], allowed, is_phrase)
        ]
        total = sum(len(part.corpus.rows) for part in parts)
        return best(parts, ranking, total if most is None else most)

    def _parts(
        self,
        kind: _Counted,
        words: Words,
        tokens: Sequence[bytes],
        allowed: Numbers | None,
        is_phrase: bool,  # noqa: FBT001
    ) -> list[Part]:
        statistics = kind.statistics
        weights = [
            words.boost * statistics.weight(self.count(kind.counted, token)) for token in tokens
        ]
        found = []
        for member in kind.members:
            lists = lists_of(member.partition, tokens, with_positions=is_phrase)
            if any(one is not None for one in lists):
                corpus = member.corpus(statistics.average, allowed)
                found.append(Part(corpus, weights, lists))
        return found

    def count(self, members: Sequence[Member], token: bytes) -> int:
        """Return how many documents have a word."""
        found = 0
        for member in members:
            number = member.partition.find(token)
            found += 0 if number is None else member.partition.count(number)
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
    wanted = [*dict.fromkeys(one for one in numbers if one is not None)]
    found = dict(
        zip(wanted, partition.lists(wanted, with_positions=with_positions), strict=True)
        if wanted
        else ()
    )
    return [None if one is None else found[one] for one in numbers]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
