"""The compiled functions that write (``c/*encode.c``), with arrays in place of pointers."""

import ctypes

import numpy as np

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.foreign import Array, address


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
