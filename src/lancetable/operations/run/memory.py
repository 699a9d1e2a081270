"""Pause the garbage collector, and return unused memory to the system.

The collector visits all objects again and again while thousands of new ones are kept. The objects
that a step makes for many small files have no reference cycles and are freed without it.
"""

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pyarrow as pa

MANY_FRAGMENTS = 256
"""Number of fragments from which on a pause saves time."""


class _Pauses:
    """Count of the pauses in all threads; the end of the last one starts the collector again."""

    def __init__(self) -> None:
        # Freeing an object inside the lock may begin another pause.
        self.lock = threading.RLock()
        self.count = 0
        self.was_on = False


_PAUSES = _Pauses()


def collector_paused(fragments: int = MANY_FRAGMENTS) -> AbstractContextManager[None]:
    """Pause the collector while a step handles at least ``MANY_FRAGMENTS`` fragments.

    A collector that the program disabled stays disabled.
    """
    return _paused() if fragments >= MANY_FRAGMENTS else nullcontext()


@contextmanager
def _paused() -> Iterator[None]:
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


ROWS_WORTH_IT = 50_000
"""Below this number of rows, returning memory takes longer than the step."""


def _glibc_trim() -> "ctypes._NamedFuncPointer | None":
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:
        return None


_TRIM = _glibc_trim()


def give_back(rows: int = ROWS_WORTH_IT) -> None:
    """Return unused memory to the system after a step that handled so many rows."""
    if rows < ROWS_WORTH_IT:
        return
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)
