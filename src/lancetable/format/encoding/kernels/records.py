"""Records that compiled functions read or fill, as ``c/records.h`` declares them.

They consist of 64-bit words, of which some are addresses.
"""

import ctypes
from typing import TypeAlias


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
    """The parameters of a take that do not depend on the rows."""

    _fields_ = _words("columns", "count", "starts", "fragments", "ready", "samples", "warm")


class ScanRecord(ctypes.Structure):
    """Input and result of a walk over the levels of lists."""

    _fields_ = _words("max_def", "max_visible", "any_row", "any_item")


class ComparisonRecord(ctypes.Structure):
    """A comparison with a constant; its word has the bits of an integer or of a float."""

    _fields_ = _words("type", "op", "is_opposite", "constant")


class PairRecord(ctypes.Structure):
    """A number and where it was found."""

    _fields_ = _words("value", "place")


class CorpusRecord(ctypes.Structure):
    """The documents of a partition of a full-text index; ``scale`` is a float."""

    _fields_ = [
        *_words("norms", "rows", "allowed", "documents", "ascending"),
        ("scale", ctypes.c_double),
    ]


class ListRecord(ctypes.Structure):
    """The documents that have a word of a query; ``weight`` is a float."""

    _fields_ = [
        *_words("ids", "frequencies", "maxima", "count", "positions", "starts", "gap"),
        ("weight", ctypes.c_double),
    ]


class PartitionRecord(ctypes.Structure):
    """One partition of a vector index."""

    _fields_ = [
        *_words("codes", "rows", "length", "centroid", "factors", "levels", "level_count"),
        *_words("ids", "edges", "neighbours", "entry"),
    ]


class SearchRecord(ctypes.Structure):
    """How partitions of a vector index are searched."""

    _fields_ = [
        *_words("kind", "type", "metric", "dim", "sub_vectors", "code_bits", "codebook"),
        *_words("parameters", "rotated", "spans", "span_count", "live", "range", "most", "ef"),
        *_words("tables", "heap", "heap_rows", "visited"),
    ]


class ArrowArrayRecord(ctypes.Structure):
    """An array of Arrow's C data interface."""

    _fields_ = [
        *_words("length", "null_count", "offset", "n_buffers", "n_children"),
        *_words("buffers", "children", "dictionary", "release", "private_data"),
    ]


Columns: TypeAlias = "ctypes.Array[ColumnRecord]"

RECORDS: dict[str, type[ctypes.Structure]] = {
    "page_t": PageRecord,
    "slot_t": SlotRecord,
    "column_t": ColumnRecord,
    "take_t": TakeRecord,
    "scan_t": ScanRecord,
    "test_t": ComparisonRecord,
    "pair_t": PairRecord,
    "corpus_t": CorpusRecord,
    "list_t": ListRecord,
    "partition_t": PartitionRecord,
    "probing_t": SearchRecord,
    "arrow_array_t": ArrowArrayRecord,
}
"""All records by their names in C, in the order in which the library lists their sizes."""
