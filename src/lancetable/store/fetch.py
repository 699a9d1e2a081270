"""Fetch byte ranges over a network: few requests, sent concurrently, retried when they fail.

Neighbours are merged when the hole between them is cheaper to read than another request; large
ranges are divided over several connections. Requests of all threads share one pool, which bounds
their number.
"""

import os
import threading
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from lancetable.errors import CorruptError
from lancetable.store.client import Client
from lancetable.store.errors import read_refusal
from lancetable.store.ranges import ByteRange, divide, merge_neighbours
from lancetable.store.repeat import repeated
from lancetable.store.settings import Limits

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
