"""When may Python's garbage collector not run?

The collector looks at all objects again and again while thousands of new ones are kept. What a
step makes for each of many small files has no circles, so it is freed without the collector.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MANY_FRAGMENTS = 64
"""From so many fragments on the objects made for them are worth it."""


class _Pauses:
    """The pauses under way in all threads; the last that ends has the collector run again."""

    def __init__(self) -> None:
        # An object that is freed inside may begin a pause of its own.
        self.lock = threading.RLock()
        self.count = 0
        self.was_on = False


_PAUSES = _Pauses()


@contextmanager
def collector_paused(fragments: int = MANY_FRAGMENTS) -> Iterator[None]:
    """Keep the collector from running while so many fragments are worked on, if they are many.

    A collector that the program switched off itself stays off.
    """
    if fragments < MANY_FRAGMENTS:
        yield
        return
    with _PAUSES.lock:
        if not _PAUSES.count:
            _PAUSES.was_on = gc.isenabled()
            gc.disable()
        _PAUSES.count += 1
    try:
        yield
    finally:
        with _PAUSES.lock:
            _PAUSES.count -= 1
            if not _PAUSES.count and _PAUSES.was_on:
                gc.enable()
