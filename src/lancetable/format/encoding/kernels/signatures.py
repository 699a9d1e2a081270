"""Signatures of all compiled functions, in the order of their parameters in ``c``."""

import ctypes
from typing import Any, TypeAlias

Signature: TypeAlias = tuple[Any, tuple[Any, ...]]
"""The type of the result, None for none, and those of the parameters."""

N = ctypes.c_int64
P = ctypes.c_void_p

SIGNATURES: dict[str, Signature] = {
    "lt_abi": (N, ()),
    # Reading: blocks, levels, text and lists of whole pages.
    "lt_unpack": (None, (P, P, P, N, N, P)),
    "lt_unpack_inline": (N, (P, N, P, P, P, N, N, P, N)),
    "lt_levels": (N, (P, P, P, P, N, N, P)),
    "lt_join": (None, (P, P, P, N, P)),
    "lt_text_write": (N, (P, P, P, P, N, N, P, P, P, N, P, N)),
    "lt_fsst_decode": (N, (P, P, P, P, N, P, P)),
    "lt_lists": (N, (P, P, N, P, P, P, P, P, P)),
    "lt_list_scan": (N, (P, P, P, P, P, N, P, P, P, P)),
    "lt_chunk_table": (N, (P, N, N, N, N, P, P, P)),
    "lt_row_index": (N, (P, N, N, P)),
    # Neighbouring rows of mapped pages.
    "lt_stretch_values": (N, (P, N, N, N, N, P, P)),
    "lt_stretch_compare": (N, (P, N, N, N, N, P, N, P)),
    "lt_stretch_list_room": (N, (P, N, N, N, P)),
    "lt_stretch_lists": (N, (P, N, N, N, N, P, P, P, P, P, N)),
    # Single rows of mapped pages.
    "lt_gather_places": (N, (P, N, P, N, P, P, P)),
    "lt_gather_missing": (N, (P, N, P, P, N, P, N)),
    "lt_gather_ahead": (N, (P, N, P, P, N, N)),
    "lt_gather_count": (N, (P, N, P, P, N)),
    "lt_gather_layout": (None, (P, N, N, P)),
    "lt_gather_values": (N, (P, N, P, P, N, P, P, N)),
    "lt_gather_text": (N, (P, N, N, P, N)),
    "lt_take": (N, (P, P, P, N, N, P)),
    # Writing.
    "lt_pack": (None, (P, P, P, N, N, P)),
    "lt_scatter": (None, (P, P, P, P, P, P, N)),
    "lt_text_chunks": (None, (P, P, P, P, N, P, P, N)),
    "lt_fsst_room": (N, (N,)),
    "lt_fsst_encode": (N, (P, P, N, P, N, P, N, P, P, P)),
    "lt_fsst_train": (N, (P, N, P, N, P, P, P)),
    # Keys.
    "lt_mark": (None, (P, N, P, N)),
    "lt_probe": (N, (P, N, P, N, P)),
    "lt_mark_keys": (None, (P, N, P, P, N)),
    "lt_order": (None, (P, N, P, P)),
}
