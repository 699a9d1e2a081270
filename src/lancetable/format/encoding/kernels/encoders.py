"""The compiled functions of the writing side (``c/encode.c``), with arrays in place of pointers."""

import ctypes

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.foreign import (
    COUNT,
    POINTER,
    Array,
    Signatures,
    address,
    declare,
)

_SIGNATURES: Signatures = {
    "lt_pack": (None, (POINTER, POINTER, POINTER, COUNT, COUNT, POINTER)),
    "lt_scatter": (None, (POINTER,) * 6 + (COUNT,)),
    "lt_fsst_encode": (COUNT, (POINTER,) * 6 + (COUNT, POINTER, COUNT, POINTER, POINTER)),
}


class Encoders:
    """Values into packed blocks, chunks and codes. All arrays are contiguous."""

    def __init__(self, dll: ctypes.CDLL) -> None:
        self._encode = dll
        declare(dll, _SIGNATURES)

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

    def fsst_encode(
        self,
        tables: tuple[Array, Array, Array, Array, Array],
        data: Bytes,
        offsets: Integers,
        out: tuple[Bytes, Integers],
    ) -> int:
        """Encode values; return how many bytes of codes were written."""
        total: int = self._encode.lt_fsst_encode(
            *map(address, tables),
            address(data),
            len(data),
            address(offsets),
            len(offsets) - 1,
            address(out[0]),
            address(out[1]),
        )
        return total
