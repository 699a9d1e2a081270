"""Options of a commit: its message, its notes and how long to retry.

The rounds of a commit are limited by time and number, with pauses between them. Each pause is
random and its bound doubles, so that writers that collided once do not collide again.
"""

import enum
import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import COMMIT_MESSAGE
from lancetable.errors import InputError
from lancetable.options import check_options, option


@dataclass(frozen=True, slots=True)
class CommitOptions:
    """Options of a commit: what the history records, and how long to retry."""

    message: str | None = option(None, help="A note for the history.")
    properties: Mapping[str, str] = field(default_factory=dict)
    """Further notes for the history."""
    attempts: int | None = option(
        None, minimum=1, help="The most attempts to create the next version; by default unlimited."
    )
    deadline_seconds: float = option(
        30.0, minimum=0, help="How long to retry after other writers were faster."
    )
    strict: bool = option(
        False,  # noqa: FBT003 - the default
        help="Fail if other writers committed since the version was read, whatever they did.",
    )
    detached: bool = option(
        False,  # noqa: FBT003 - the default
        help="Create a version outside the history, which only its number finds.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not isinstance(cast("object", self.properties), Mapping) or not all(
            isinstance(one, str) for pair in self.properties.items() for one in pair
        ):
            raise InputError(f"properties is {self.properties!r}; give a mapping of text to text")

    @classmethod
    def of(cls, commit: "CommitOptions | str | None") -> "CommitOptions":
        """Return the options that the argument ``commit`` stands for; text is the message.

        Raises:
            InputError: the argument is something else.
        """
        if commit is None:
            return DEFAULT_COMMIT
        if isinstance(commit, str):
            return cls(message=commit)
        if not isinstance(cast("object", commit), cls):
            raise InputError(f"commit is {commit!r}; give a message or CommitOptions")
        return commit

    def recorded(self) -> dict[str, str]:
        """Return the properties of the transaction, the message among them."""
        if self.message is None:
            return dict(self.properties)
        return {**self.properties, COMMIT_MESSAGE: self.message}


DEFAULT_COMMIT = CommitOptions()


class CommitResult(NamedTuple):
    """The new version, and the number of attempts it took."""

    snapshot: Snapshot
    attempts: int


class CreateMode(enum.Enum):
    """Behaviour of ``create_table`` when the table exists."""

    ERROR = "error"
    IGNORE = "ignore"
    OVERWRITE = "overwrite"


LOG = logging.getLogger("lancetable.commit")

_LONGEST_PAUSE = 0.25
_DOUBTFUL_PAUSE = 0.05
_MOST_DOUBLINGS = 10


class Rounds:
    """The rounds of one commit."""

    __slots__ = ("_options", "_root", "_started", "lost", "missing")

    def __init__(self, root: str, options: CommitOptions) -> None:
        self._root = root
        self._options = options
        self._started = time.monotonic()
        self.lost = 0
        """Number of rounds that failed."""
        self.missing = 0
        """Number of rounds in which the store reported a name as taken but found nothing there."""

    @property
    def seconds(self) -> float:
        """The time since the first round began."""
        return time.monotonic() - self._started

    def is_over(self) -> bool:
        """Say whether the time or the attempts are used up."""
        most = self._options.attempts
        if most is not None and self.lost >= most:
            return True
        return self.seconds > self._options.deadline_seconds

    def lose(self, path: str, *, is_missing: bool = False) -> None:
        """Count a failed round, and log it."""
        self.lost += 1
        self.missing += is_missing
        why = "another writer was first"
        if is_missing:
            why = "the store reports that it exists but does not find it"
        # A few lost rounds are normal when several writers commit at a time.
        level = logging.DEBUG if self.lost < 5 and not is_missing else logging.INFO
        LOG.log(level, "%s: round %d for %s was lost: %s", self._root, self.lost, path, why)

    def pause(self) -> None:
        """Wait for a random time before the next round; the first loss costs no wait."""
        slot = 1.1 * self.seconds / self.lost
        doublings = min(self.lost - 2, _MOST_DOUBLINGS)
        bound = slot * 2**doublings if self.lost > 1 else 0.0
        if self.missing:
            bound = max(bound, _DOUBTFUL_PAUSE * 2 ** min(self.missing, 5))
        bound = min(bound, max(_LONGEST_PAUSE, 4 * slot) * (4 if self.missing else 1))
        time.sleep(random.uniform(0.0, bound))  # noqa: S311 - no secret

    def describe(self) -> str:
        """Return the number of rounds and their time, for messages."""
        text = f"{self.lost} rounds and {self.seconds:.1f} seconds"
        if self.missing:
            text += (
                f" ({self.missing} times the store reported the name as taken but found nothing)"
            )
        return text
