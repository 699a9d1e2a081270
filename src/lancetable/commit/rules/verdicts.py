"""Answers of the conflict rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lancetable.commit.transaction import Operation


@dataclass(frozen=True, slots=True)
class Compatible:
    """Both may land."""

    merge: frozenset[int] = frozenset()
    """Fragments whose deleted rows have to be merged."""


@dataclass(frozen=True, slots=True)
class Rebased:
    """Both may land if the operation is changed to this one."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Conflicting:
    """Only one may land."""

    reason: str
    retryable: bool


Verdict: TypeAlias = Compatible | Rebased | Conflicting


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a transaction that it does not record itself."""

    affected: Mapping[int, object] | None = None
    """The rows that the transaction deletes, by fragment; ``None`` when unknown."""
    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The data files of the fragments that it changes, as they were read."""
    are_moves_known: bool = False
    """True when the new place of each row of a Rewrite is known."""
    keeps_indices: bool = False
    """True when a Rewrite records its moves for the index segments of others."""


FINE = Compatible()


def stop(reason: str) -> Conflicting:
    """Return a conflict that repeating the same change does not solve."""
    return Conflicting(reason, retryable=False)


def retry(reason: str) -> Conflicting:
    """Return a conflict that is solved by repeating the change on the new version."""
    return Conflicting(reason, retryable=True)


def first(*rules: tuple[object, Conflicting]) -> Verdict:
    """Return the verdict of the first rule whose condition holds, or ``FINE``."""
    return next((verdict for holds, verdict in rules if holds), FINE)


def first_verdict(*verdicts: Verdict) -> Verdict:
    """Return the first verdict other than ``FINE``."""
    return next((verdict for verdict in verdicts if verdict != FINE), FINE)


LOG = stop("another writer recorded progress of the write-ahead log")
NULLS = retry("another writer may have forbidden nulls in a column")
ALL_FRAGMENTS = retry("another writer added columns to all fragments")
