"""How is a commit made: what is said about it, and how long it is tried."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import COMMIT_MESSAGE
from lancetable.errors import InputError


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """What is recorded with a commit, and when trying ends."""

    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    attempts: int | None = None
    """How often the next version is tried for at most; without a number the time alone counts."""
    deadline_seconds: float = 30.0
    """How long is tried again after other writers were faster."""
    strict: bool = False
    """Refuse to follow versions that others made since this one was read, whatever they did."""
    detached: bool = False
    """Make a version apart from the history: only its number finds it, and nobody conflicts."""

    def __post_init__(self) -> None:
        if self.attempts is not None and self.attempts < 1:
            raise InputError(f"attempts is {self.attempts}; give a number from 1")
        if not self.deadline_seconds >= 0:
            raise InputError(
                f"deadline_seconds is {self.deadline_seconds}; give a number of seconds from 0"
            )

    def recorded(self) -> dict[str, str]:
        """Return the properties of the transaction, the message among them."""
        if self.message is None:
            return dict(self.properties)
        return {**self.properties, COMMIT_MESSAGE: self.message}


class CommitResult(NamedTuple):
    """The version that was made, and how often its name was claimed."""

    snapshot: Snapshot
    attempts: int


class CreateMode(enum.Enum):
    """What to do when there is a table already."""

    ERROR = "error"
    IGNORE = "ignore"
    OVERWRITE = "overwrite"
