"""Run store requests in parallel threads."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def spread(work: Callable[[Item], Result], items: Iterable[Item], width: int) -> list[Result]:
    """Return the results of all items in order, with up to ``width`` of them under way.

    After an error no further item is begun.
    """
    given = list(items)
    if width < 2 or len(given) < 2:
        return [work(item) for item in given]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - opening a table waits

    with ThreadPoolExecutor(min(width, len(given)), "lancetable-spread") as pool:
        futures = [pool.submit(work, item) for item in given]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
