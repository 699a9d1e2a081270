"""Stores that count requests, wait, fail or mislead, to test what operations make of it."""

import enum
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lancetable.errors import StoreError
from lancetable.store.base import Store
from lancetable.store.location import TableLocation
from lancetable.store.wrap import WrappedStore

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: object) -> object:
        """Stand in for the decorator that typing has only from Python 3.12 on."""
        return method


_T = TypeVar("_T")


class CountingStore(WrappedStore):
    """Counts calls by verb, and remembers them in order."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.calls: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    @property
    def counts(self) -> Counter[str]:
        """How often each verb was called."""
        return Counter(verb for verb, _ in self.calls)

    @override
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        """Remember the call, then do it."""
        with self._lock:
            self.calls.append((verb, path))
        return action()


class SlowStore(WrappedStore):
    """Waits before each call, as a request over a network would."""

    def __init__(self, inner: Store, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    @override
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        """Wait, then do it."""
        time.sleep(self._seconds)
        return action()


class Moment(enum.Enum):
    """When a call fails."""

    BEFORE = "before"
    """Nothing happened."""
    AFTER = "after"
    """It happened, but the answer was lost."""


class FaultyStore(WrappedStore):
    """Fails at the n-th call, counted from 0, and at all later ones when it ``stays_down``."""

    def __init__(
        self, inner: Store, fail_at: int, moment: Moment, *, stays_down: bool = False
    ) -> None:
        super().__init__(inner)
        self.calls = 0
        self._fail_at = fail_at
        self._moment = moment
        self._stays_down = stays_down
        self._lock = threading.Lock()

    @property
    def has_failed(self) -> bool:
        """True once the call that fails was made."""
        return self.calls > self._fail_at

    @override
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        """Do it, or fail, or both."""
        with self._lock:
            number = self.calls
            self.calls += 1
        if self._stays_down and number > self._fail_at:
            raise StoreError(f"{path}: the store is down, {verb} failed on purpose")
        if number != self._fail_at:
            return action()
        if self._moment is Moment.AFTER:
            action()
        raise StoreError(f"{path}: call {number}, {verb}, failed on purpose")


class MisleadingStore(WrappedStore):
    """Carries out the n-th call of some verbs, counted from 0, and then answers with an error."""

    def __init__(
        self, inner: Store, verbs: frozenset[str], number: int, answer: Callable[[str], Exception]
    ) -> None:
        super().__init__(inner)
        self.calls = 0
        self._verbs = verbs
        self._number = number
        self._answer = answer
        self._lock = threading.Lock()

    @property
    def has_misled(self) -> bool:
        """True once the call with the wrong answer was made."""
        return self.calls > self._number

    @override
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        """Do it, and answer."""
        if verb not in self._verbs:
            return action()
        with self._lock:
            number = self.calls
            self.calls += 1
        done = action()
        if number == self._number:
            raise self._answer(f"{path}: {verb} was done, and is answered wrongly on purpose")
        return done


class WrappedLocation(TableLocation):
    """A location whose stores are wrapped."""

    def __init__(self, uri: str, *, wrap: Callable[[Store], Store] | None = None) -> None:
        super().__init__(uri)
        self.wrap = wrap

    @override
    def open(self) -> Store:
        """Return the wrapped store of this folder."""
        inner = super().open()
        return inner if self.wrap is None else self.wrap(inner)
