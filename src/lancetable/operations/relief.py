"""When does memory that nobody uses go back to the system?

Allocators keep what was freed for the next one who asks. Between two steps of a large change the
next one asks for other sizes, so what the last one left would add to its peak.
"""

import ctypes
import sys

import pyarrow as pa

ROWS_WORTH_IT = 50_000
"""Below this the kept memory is little, and giving it back takes longer than the step."""


def _glibc_trim() -> "ctypes._NamedFuncPointer | None":
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:
        return None


_TRIM = _glibc_trim()


def give_back(rows: int) -> None:
    """Give unused memory back to the system, after a step that handled so many rows."""
    if rows >= ROWS_WORTH_IT:
        _give_back()


class Relief:
    """Gives unused memory back to the system whenever so many bytes went through."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._seen = 0

    def passed(self, bytes_: int) -> None:
        """Note that so many bytes were handled, and are needed no more."""
        self._seen += bytes_
        if self._seen >= self._every:
            self._seen = 0
            _give_back()


def _give_back() -> None:
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)
