"""How is the compiled gather called? See ``c/gather.c``, whose structs these records mirror.

There is no NumPy twin with this signature: where the library is absent, or says that bytes
contradict each other, the open pages read the same rows themselves.
"""

import ctypes
from enum import IntEnum
from typing import Any, TypeAlias

from lancetable.format.encoding.kernels.compiled import LIBRARY


class Values(IntEnum):
    """How a page holds its values, as far as it is known and can be addressed."""

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
    """How the chunks of a page hold levels."""

    NONE = 0
    RAW = 1
    INLINE = 2
    PACKED = 3
    RUNS = 4


class Out(IntEnum):
    """What a column becomes."""

    FIXED = 1
    BITS = 2
    TEXT = 3


def _words(*names: str) -> list[tuple[str, type[ctypes.c_int64]]]:
    return [(name, ctypes.c_int64) for name in names]


class PageRecord(ctypes.Structure):
    """One page; fields without a meaning for it are 0."""

    _fields_ = [
        *_words("data", "size", "starts", "firsts", "row_firsts", "chunks", "shift"),
        *_words("rows", "first_row", "kind", "width", "header", "is_large"),
        *_words("rep_kind", "rep_width", "def_kind", "def_width", "level_map"),
        *_words("max_rep", "max_def", "max_visible", "symbols", "lengths"),
        *_words("items", "item_edges", "item_count", "item_width"),
    ]


class SlotRecord(ctypes.Structure):
    """The pages of a column in one data file."""

    _fields_ = _words("pages", "count")


class ColumnRecord(ctypes.Structure):
    """A column of the result: what it is made of, and where it goes."""

    _fields_ = [
        *_words("slots", "out", "width", "has_lists", "entries", "items", "bytes"),
        *_words("any_level", "any_byte", "values", "offsets", "rep", "def_", "places", "text"),
        *_words("is_unreadable", "list_size", "is_text"),
    ]


class TakeRecord(ctypes.Structure):
    """What is taken, whichever rows they are; see ``c/batch.c``."""

    _fields_ = _words("columns", "count", "starts", "fragments", "ready", "samples", "warm")


Columns: TypeAlias = "ctypes.Array[ColumnRecord]"


class Gather:
    """The compiled functions; addresses stand for arrays of 64-bit integers."""

    def __init__(self, dll: Any) -> None:  # noqa: ANN401 - ctypes gives libraries no type
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        self.places = dll.lt_gather_places
        self.places.restype = word
        self.places.argtypes = (pointer, word, pointer, word, pointer, pointer, pointer)
        self.missing = dll.lt_gather_missing
        self.missing.restype = word
        self.missing.argtypes = (pointer, word, pointer, pointer, word, pointer, word)
        self.ahead = dll.lt_gather_ahead
        self.ahead.restype = word
        self.ahead.argtypes = (pointer, word, pointer, pointer, word, word)
        self.count = dll.lt_gather_count
        self.count.restype = word
        self.count.argtypes = (pointer, word, pointer, pointer, word)
        self.layout = dll.lt_gather_layout
        self.layout.restype = None
        self.layout.argtypes = (pointer, word, word, pointer)
        self.values = dll.lt_gather_values
        self.values.restype = word
        self.values.argtypes = (pointer, word, pointer, pointer, word, pointer, pointer)
        self.text = dll.lt_gather_text
        self.text.restype = word
        self.text.argtypes = (pointer, word, word, pointer)
        self.take = dll.lt_take
        self.take.restype = word
        self.take.argtypes = (pointer, pointer, pointer, word, pointer)


GATHER = None if LIBRARY is None else Gather(LIBRARY.dll)
