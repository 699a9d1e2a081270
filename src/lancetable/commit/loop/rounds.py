"""Limit the rounds of a commit by time and number, and pause between them.

Each pause is random and its bound doubles, so that writers that collided once do not collide again.
"""

import logging
import random
import time

from lancetable.commit.options import CommitOptions

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
