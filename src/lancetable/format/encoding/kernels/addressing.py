"""Call the compiled gather; see ``c/gather.c``.

There is no NumPy twin with this signature: where the library is absent, or says that bytes
contradict each other, the open pages read the same rows themselves.
"""

from enum import IntEnum
from typing import Any

from lancetable.format.encoding.kernels.compiled import DLL


class Values(IntEnum):
    """The storage of a page's values, as far as it is known and can be addressed."""

    UNREADABLE = -1
    UNOPENED = 0
    FLAT = 1
    BITS = 2
    PACKED = 3
    TEXT = 4
    STRIDED = 5
    CONSTANT = 6
    RUNS = 7


class LevelCode(IntEnum):
    """The storage of levels in the chunks of a page."""

    NONE = 0
    RAW = 1
    INLINE = 2
    PACKED = 3
    RUNS = 4


class Out(IntEnum):
    """The output form of a column."""

    FIXED = 1
    BITS = 2
    TEXT = 3


class Gather:
    """The compiled functions; addresses stand for arrays of 64-bit integers."""

    def __init__(self, dll: Any) -> None:  # noqa: ANN401 - ctypes gives libraries no type
        self.places = dll.lt_gather_places
        self.missing = dll.lt_gather_missing
        self.ahead = dll.lt_gather_ahead
        self.count = dll.lt_gather_count
        self.layout = dll.lt_gather_layout
        self.values = dll.lt_gather_values
        self.text = dll.lt_gather_text
        self.take = dll.lt_take


GATHER = None if DLL is None else Gather(DLL)
