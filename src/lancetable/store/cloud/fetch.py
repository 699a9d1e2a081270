"""Fetch byte ranges over a network: few requests, sent concurrently, retried when they fail.

Neighbours are merged when the hole between them is cheaper to read than another request; large
ranges are divided over several connections. Requests of all threads share one pool, which bounds
their number.

Each call of a client makes one attempt; all retries happen here. A request that changes the store
has certainly failed only when every attempt was refused: after one attempt without an answer the
outcome is unknown, whatever later attempts return.
"""

import os
import random
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lancetable.errors import CorruptError, LanceTableError, StoreError
from lancetable.store.base import ByteRange, divide, merge_neighbours
from lancetable.store.cloud.client import Client, check_process
from lancetable.store.cloud.errors import Verb, is_client_error, read_refusal, translated
from lancetable.store.cloud.settings import Limits

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


_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
_lock = threading.Lock()


def pool_of(size: int) -> ThreadPoolExecutor:
    """Return the threads of this process that wait for requests."""
    key = (os.getpid(), size)
    with _lock:
        pool = _pools.get(key)
        if pool is None:
            pool = _pools[key] = ThreadPoolExecutor(size, thread_name_prefix="lancetable-fetch")
    return pool


def fetch_ranges(
    client: Client, key: str, ranges: Sequence[ByteRange], limits: Limits, place: str
) -> list[memoryview]:
    """Return the bytes of each range of one object, in the order of ``ranges``.

    Raises:
        FileNotFoundInStoreError: there is no such object.
        CorruptError: the object ends before a range does.
        StoreError: the store failed, and kept failing.
    """
    wanted = [one for one in ranges if one.stop > one.start]
    merged = merge_neighbours(wanted, gap=limits.merge_gap_bytes, most=limits.request_bytes)
    blocks = [piece for one in merged for piece in divide(one, limits.request_bytes)]
    contents = _fetch_all(client, key, blocks, limits, place)
    starts = [block.start for block in blocks]
    return [_cut(one, starts, contents) for one in ranges]


def _fetch_all(
    client: Client, key: str, blocks: list[ByteRange], limits: Limits, place: str
) -> list[memoryview]:
    if len(blocks) < 2:
        return [_fetch(client, key, block, limits, place) for block in blocks]
    pool = pool_of(limits.max_requests)
    futures: list[Future[memoryview]] = [
        pool.submit(_fetch, client, key, block, limits, place) for block in blocks[1:]
    ]
    try:
        first = _fetch(client, key, blocks[0], limits, place)
        return [first, *(future.result() for future in futures)]
    finally:
        for future in futures:
            future.cancel()


def _fetch(client: Client, key: str, block: ByteRange, limits: Limits, place: str) -> memoryview:
    start, stop = block

    def ask() -> memoryview:
        try:
            content = memoryview(client.get_range(key, start=start, end=stop))
        except Exception as cause:
            if read_refusal(cause).status == 416 or "Range" in str(cause).partition("\n")[0]:
                raise _too_short(place, stop) from None
            raise
        if len(content) != stop - start:
            raise _too_short(place, stop)
        return content

    return repeated(ask, place, limits)


def _too_short(place: str, stop: int) -> CorruptError:
    return CorruptError(f"the object is truncated: it ends before byte {stop}", path=place)


def _cut(wanted: ByteRange, starts: Sequence[int], contents: Sequence[memoryview]) -> memoryview:
    """Return one range out of the blocks; a copy only where it spans several of them."""
    start, stop = wanted
    if stop <= start:
        return memoryview(b"")
    number = bisect_right(starts, start) - 1
    block, first = contents[number], starts[number]
    if stop <= first + len(block):
        return block[start - first : stop - first]
    parts = [block[start - first :]]
    while (first := first + len(contents[number])) < stop:
        number += 1
        parts.append(contents[number][: stop - first])
    return memoryview(b"".join(parts))
