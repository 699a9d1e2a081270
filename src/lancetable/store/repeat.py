"""Retry failed requests, and track attempts that may have had an effect.

Each call of a client makes one attempt; all retries happen here. A request that changes the store
has certainly failed only when every attempt was refused: after one attempt without an answer the
outcome is unknown, whatever later attempts return.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from lancetable.errors import LanceTableError, StoreError
from lancetable.store.client import check_process
from lancetable.store.errors import Verb, is_client_error, read_refusal, translated
from lancetable.store.settings import Limits

T = TypeVar("T")

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


def repeated(action: Callable[[], T], place: str, limits: Limits, verb: Verb = Verb.READ) -> T:
    """Call an action until it succeeds, fails for good, or ``retry_timeout`` has passed.

    Raises:
        LanceTableError: the translated error of the last attempt.
    """
    return Request(place, limits, verb).run(action)


class Request:
    """One request and its attempts.

    ``is_unanswered`` is true when an attempt ended without an answer, or with one that leaves open
    whether the request was carried out.
    """

    __slots__ = ("_attempts", "_deadline", "_limits", "_pause", "_place", "_verb", "is_unanswered")

    def __init__(self, place: str, limits: Limits, verb: Verb) -> None:
        check_process()
        self._place = place
        self._limits = limits
        self._verb = verb
        self._deadline = time.monotonic() + limits.retry_timeout
        self._pause = _FIRST_PAUSE
        self._attempts = 0
        self.is_unanswered = False

    def run(self, action: Callable[[], T]) -> T:
        """Call an action until it succeeds, fails for good, or the time is up.

        Raises:
            LanceTableError: the translated error of the last attempt. A StoreError is certain
                only when all attempts were refused.
        """
        while True:
            try:
                return action()
            except LanceTableError:
                raise
            except BaseException as cause:
                if not is_client_error(cause):
                    raise
                refusal = read_refusal(cause)
                error = translated(cause, self._place, self._verb, self._limits.caller)
                self.is_unanswered |= self._verb.has_effect and refusal.may_have_worked
            # Not chained: the client's own text contains the whole answer with its secrets.
            is_open = isinstance(error, StoreError) and not error.is_certain
            if not is_open or not refusal.is_transient or not self.wait():
                raise self.accounted(error) from None

    def wait(self) -> bool:
        """Pause before the next attempt; false when there is no time for another one."""
        self._attempts += 1
        most = self._limits.max_retries
        is_last = most is not None and self._attempts > most
        if is_last or time.monotonic() + self._pause > self._deadline:
            return False
        time.sleep(random.uniform(self._pause / 2, self._pause))  # noqa: S311 - no secret
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True

    def accounted(self, error: LanceTableError) -> LanceTableError:
        """Return the error of the last attempt, uncertain when an earlier one was unanswered."""
        if not self.is_unanswered or not isinstance(error, StoreError) or not error.is_certain:
            return error
        return StoreError(
            f"{error}; an earlier attempt was not answered, so it may have been carried out"
        )
