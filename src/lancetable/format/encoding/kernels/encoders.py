"""Signatures of all compiled functions, and those that write with arrays in place of pointers.

Signatures are in the order of the parameters in ``c``; the functions that write are in
``c/*encode.c``.
"""

import ctypes
from typing import Any, TypeAlias

import numpy as np

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.foreign import Array, address

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
    # Words of texts.
    "lt_split_words": (N, (P, P, N, P, N, P, P, P, P)),
    "lt_number_words": (N, (P, P, P, N, P, N, P, P, N, P, P)),
    "lt_enter_words": (None, (P, P, N, P, N)),
    # Full-text indices in the making.
    "lt_group_words": (None, (P, P, N, N, P, P, P, P)),
    "lt_join_documents": (N, (P, P, N, P)),
    "lt_encode_blocks": (N, (P, N, P, P, P, P, N, P, P, P)),
    "lt_encode_impacts": (N, (P, N, P, P, P, P, P, P)),
    "lt_encode_positions": (N, (P, N, P, P, P, P, P)),
    "lt_encode_position_items": (N, (P, N, P, P, P)),
    "lt_token_map_node": (N, ()),
    "lt_token_map_step": (N, ()),
    "lt_token_map": (N, (P, P, N, P, P, P, P, N, P)),
    # Postings of full-text indices.
    "lt_postings": (N, (P, P, N, N, N, N, P, P)),
    "lt_positions": (N, (P, P, N, N, P, P)),
    "lt_posting_lists": (N, (P, P, P, N, N, N, N, P, P)),
    "lt_position_lists": (N, (P, P, P, N, N, P, P)),
    "lt_position_items": (N, (P, P, P, N, P, P)),
    "lt_block_maxima": (None, (P, P, N, P, N, P)),
    "lt_mark_rows": (None, (P, N, P, N, P)),
    "lt_rank_cursor": (N, ()),
    "lt_rank": (N, (P, N, P, N, N, N, P, N, P, N, P, P)),
    "lt_token_frame": (N, ()),
    "lt_token_find": (N, (P, N, P, N)),
    "lt_token_list": (N, (P, N, N, N, P, N, P, P, N, P)),
    "lt_token_near": (N, (P, N, N, N, P, N, P, P, N, P, P, N, N, N, P)),
    # Values of indices.
    "lt_hash_wide": (None, (P, N, N, N, P)),
    "lt_hash_texts": (None, (P, P, N, N, P)),
    "lt_trigrams": (N, (P, P, N, P, N, P, P, P)),
    "lt_wkb_boxes": (N, (P, P, P, N, P)),
    "lt_hilbert": (None, (P, P, N, P)),
    "lt_row_sets": (None, (P, P, N, N, P, P)),
    "lt_order_rows": (None, (P, N, P)),
    "lt_order_texts": (None, (P, P, N, P, P)),
    # Vectors.
    "lt_distances": (None, (P, N, N, N, P, N, N, P, P)),
    "lt_offer": (None, (P, N, N, P, P, P, P, P, P, N)),
    "lt_search_partitions": (None, (P, P, P, P, N, P, P, P, P)),
    "lt_build_graph": (N, (P, N, N, N, N, P, P, P, N, N, P, P, P, P, P, P, P, P)),
}


class Encoders:
    """Values into packed blocks, chunks and codes. All arrays are contiguous."""

    def __init__(self, dll: ctypes.CDLL) -> None:
        self._encode = dll

    def pack(self, values: Array, starts: Integers, widths: Integers, out: Bytes) -> None:
        """Pack blocks of 1024 values; block i goes to ``out[starts[i]:]``."""
        self._encode.lt_pack(
            address(values),
            address(starts),
            address(widths),
            len(starts),
            values.dtype.itemsize * 8,
            address(out),
        )

    def scatter(
        self,
        out: Bytes,
        places: Integers,
        rooms: Integers,
        pieces: tuple[Bytes, Integers, Integers],
    ) -> None:
        """Copy pieces to their places and fill the rest of their rooms with zeros."""
        data, starts, sizes = pieces
        self._encode.lt_scatter(
            address(out),
            address(places),
            address(rooms),
            address(data),
            address(starts),
            address(sizes),
            len(places),
        )

    def text_chunks(
        self,
        out: Bytes,
        places: tuple[Integers, Integers],
        counts: Integers,
        text: tuple[Integers, Bytes],
        bits: int,
    ) -> None:
        """Write chunks of so many values each, to where they start and in the size they have."""
        (starts, sizes), (offsets, data) = places, text
        self._encode.lt_text_chunks(
            address(out),
            address(starts),
            address(sizes),
            address(counts),
            len(counts),
            address(data),
            address(offsets),
            bits,
        )

    def fsst_encode(
        self,
        table: tuple[Array, Bytes, int],
        data: Bytes,
        offsets: Integers,
        out: tuple[Bytes, Integers],
    ) -> int:
        """Encode values; return how many bytes of codes were written.

        ``table`` has the symbols as words, their lengths, and how many there are.
        """
        symbols, lengths, count = table
        room = np.empty(self._encode.lt_fsst_room(-1), np.uint8)
        total: int = self._encode.lt_fsst_encode(
            address(symbols),
            address(lengths),
            count,
            address(data),
            len(data),
            address(offsets),
            len(offsets) - 1,
            address(room),
            address(out[0]),
            address(out[1]),
        )
        return total

    def fsst_train(self, data: Bytes, offsets: Integers) -> tuple[Array, Bytes]:
        """Return the symbols that suit some values, as words and lengths."""
        room = np.zeros(self._encode.lt_fsst_room(len(data)), np.uint8)
        symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
        count: int = self._encode.lt_fsst_train(
            address(data),
            len(data),
            address(offsets),
            len(offsets) - 1,
            address(room),
            address(symbols),
            address(lengths),
        )
        return symbols[:count], lengths[:count]
