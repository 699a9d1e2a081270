"""What a conflict rule may answer."""

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
    """What is known beside the two transactions."""

    affected: Mapping[int, object] | None = None
    """The rows that mine deletes, by fragment; ``None`` when they are not known."""
    files: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The data files of the fragments that mine changes, as they were read."""
    are_moves_known: bool = False
    """True when it can be told where each row of a Rewrite went."""
    keeps_indices: bool = False
    """True when a Rewrite records its moves for the index segments of others."""


FINE = Compatible()


def stop(reason: str) -> Conflicting:
    """Answer that the change cannot follow, not even when it is made again as it is."""
    return Conflicting(reason, retryable=False)


def retry(reason: str) -> Conflicting:
    """Answer that the change has to be made again on the new version."""
    return Conflicting(reason, retryable=True)


def first(*rules: tuple[object, Conflicting]) -> Verdict:
    """Return the answer of the first rule whose condition holds."""
    return next((verdict for holds, verdict in rules if holds), FINE)


def first_verdict(*verdicts: Verdict) -> Verdict:
    """Return the first answer that is not simply yes."""
    return next((verdict for verdict in verdicts if verdict != FINE), FINE)


LOG = stop("another writer recorded progress of the write-ahead log")
NULLS = retry("another writer may have forbidden nulls in a column")
ALL_FRAGMENTS = retry("another writer added columns to all fragments")
