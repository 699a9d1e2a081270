"""Combine the answers of indices to parts of a predicate.

An answer tells for each fragment which rows may match, and which parts of the predicate these rows
have still to be compared with: none of those that an index answers exactly. A part that no index
answers leaves all rows, and itself to be compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lancetable.expression import And, Expression
from lancetable.format.rows import RowSet

Offsets = npt.NDArray[np.int64]
NO_ROWS: Offsets = np.empty(0, np.int64)
DECODED_ROWS = 1 << 20
"""Larger answers are decoded fragment by fragment: most of their fragments are scanned anyway."""


class Known(NamedTuple):
    """What is known of one fragment."""

    offsets: Offsets | None
    """The rows that may match, which ascend; None when any may."""

    rest: Expression | None
    """What these rows have still to be compared with; None when all of them match."""


class Rows(NamedTuple):
    """All rows of some fragments that match, or that may."""

    rows: RowSet
    fragments: frozenset[int]


class Answer(Protocol):
    """What indices know about a part of a predicate."""

    @property
    def leaves(self) -> "Sequence[Leaf]":
        """The answers of single indices that it consists of."""
        ...

    def known(self, fragment_id: int) -> Known:
        """Return what is known of one fragment."""
        ...

    def exact(self) -> Rows | None:
        """Return all rows that match of the fragments where that is known; None for nowhere."""
        ...


@dataclass(frozen=True)
class Leaf:
    """The answer of the segments of indices on one column."""

    part: Expression
    names: tuple[str, ...]
    found: tuple[Rows, ...]
    """Rows of different fragments: those that match, then those that may."""

    @property
    def leaves(self) -> "Sequence[Leaf]":
        """The answers of single indices that it consists of."""
        return (self,)

    @cached_property
    def _by_fragment(self) -> Mapping[int, Known]:
        known = {}
        for rows, fragments in self.found:
            rest = None if rows.is_exact else self.part
            known.update(dict.fromkeys(fragments, Known(NO_ROWS, rest)))
            for id_, offsets in rows.by_fragment().items():
                known[id_] = Known(offsets, rest)
        return known

    def known(self, fragment_id: int) -> Known:
        """Return what is known of one fragment."""
        if sum(len(rows) for rows, _ in self.found) <= DECODED_ROWS:
            return self._by_fragment.get(fragment_id) or Known(None, self.part)
        for rows, fragments in self.found:
            if fragment_id in fragments:
                return Known(rows.of_fragment(fragment_id), None if rows.is_exact else self.part)
        return Known(None, self.part)

    def exact(self) -> Rows | None:
        """Return all rows that match of the fragments where that is known; None for nowhere."""
        return next((one for one in self.found if one.rows.is_exact), None)


@dataclass(frozen=True, slots=True)
class Both:
    """The answers to parts of which all must hold.

    Each answer is to the operands that are numbered beside it. Operands that are still to be
    compared keep their order: one of them may guard another that fails for some values.
    """

    part: And
    answers: tuple[tuple[Answer, tuple[int, ...]], ...]

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The answers of single indices that it consists of."""
        return [leaf for answer, _ in self.answers for leaf in answer.leaves]

    def known(self, fragment_id: int) -> Known:
        """Return what is known of one fragment."""
        offsets: Offsets | None = None
        done: set[int] = set()
        for answer, numbers in self.answers:
            found = answer.known(fragment_id)
            if found.offsets is None:
                continue
            if found.rest is None:
                done.update(numbers)
            if offsets is None:
                offsets = found.offsets
            elif len(offsets):
                offsets = np.intersect1d(offsets, found.offsets, assume_unique=True)
        rest = [one for number, one in enumerate(self.part.operands) if number not in done]
        return Known(offsets, _all_of(rest) if done else self.part)

    def exact(self) -> Rows | None:
        """Return all rows that match of the fragments where that is known; None for nowhere."""
        each = [answer.exact() for answer, _ in self.answers]
        answered = {number for _, numbers in self.answers for number in numbers}
        if len(answered) < len(self.part.operands):
            return None
        return _joined(each, is_and=True)


@dataclass(frozen=True, slots=True)
class Either:
    """The answers to parts of which one must hold."""

    part: Expression
    answers: tuple[Answer, ...]

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The answers of single indices that it consists of."""
        return [leaf for answer in self.answers for leaf in answer.leaves]

    def known(self, fragment_id: int) -> Known:
        """Return what is known of one fragment."""
        each = [answer.known(fragment_id) for answer in self.answers]
        found = [one.offsets for one in each if one.offsets is not None]
        if len(found) < len(each):
            return Known(None, self.part)
        is_exact = all(one.rest is None for one in each)
        return Known(np.unique(np.concatenate(found)), None if is_exact else self.part)

    def exact(self) -> Rows | None:
        """Return all rows that match of the fragments where that is known; None for nowhere."""
        return _joined([answer.exact() for answer in self.answers], is_and=False)


def _all_of(parts: Sequence[Expression]) -> Expression | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _joined(each: Sequence[Rows | None], *, is_and: bool) -> Rows | None:
    """Return the rows of all or any of some answers in the fragments that all of them describe."""
    found = [one for one in each if one is not None]
    if not found or len(found) < len(each):
        return None
    fragments = frozenset.intersection(*(one.fragments for one in found))
    rows = found[0].rows
    for one in found[1:]:
        rows = rows & one.rows if is_and else rows | one.rows
    if any(one.fragments != fragments for one in found):
        rows = rows.within(fragments)
    return Rows(rows, fragments) if fragments else None
