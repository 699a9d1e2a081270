"""Is there a compiled twin of the kernels, and how is it called?

The build compiles ``c/kernels.c`` when it finds a C compiler. Without the library, or with
``LANCETABLE_KERNELS=numpy`` in the environment, every caller takes its NumPy path, which is always
there and is what the compiled functions are tested against. ``LANCETABLE_KERNELS=c`` makes a
missing library an error instead.
"""

import ctypes
import os
import sys
from typing import Any

import numpy.typing as npt

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers, Levels

ABI = 3
FOLDER = __file__.replace("\\", "/").rpartition("/")[0]
ENDING = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
PATH = f"{FOLDER}/_kernels.{ENDING}"

Array = npt.NDArray[Any]


def _address(array: Array) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


class Library:
    """The compiled functions, with arrays in place of pointers. All arrays are contiguous."""

    def __init__(self, path: str) -> None:
        self._dll = ctypes.CDLL(path)
        count, pointer = ctypes.c_int64, ctypes.c_void_p
        self._dll.lt_abi.restype = count
        if self._dll.lt_abi() != ABI:
            raise OSError(f"{path} is of another release")
        signatures = {
            "lt_unpack": (None, (pointer, pointer, pointer, count, count, pointer)),
            "lt_pack": (None, (pointer, pointer, pointer, count, count, pointer)),
            "lt_levels": (count, (pointer,) * 4 + (count, count, pointer)),
            "lt_join": (None, (pointer, pointer, pointer, count, pointer)),
            "lt_scatter": (None, (pointer,) * 6 + (count,)),
            "lt_text_offsets": (count, (pointer,) * 4 + (count, count, pointer)),
            "lt_text_bytes": (None, (pointer,) * 3 + (count, count, pointer)),
            "lt_fsst_decode": (count, (pointer,) * 4 + (count, pointer, pointer)),
            "lt_fsst_encode": (
                count,
                (pointer,) * 6 + (count, pointer, count, pointer, pointer),
            ),
            "lt_lists": (count, (pointer, pointer, count) + (pointer,) * 6),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self._dll, name)
            function.restype = result
            function.argtypes = arguments

    def unpack(self, data: Bytes, starts: Integers, widths: Integers, out: Array) -> None:
        """Unpack blocks of 1024 values; block i has ``widths[i]`` bits a value."""
        self._dll.lt_unpack(
            _address(data),
            _address(starts),
            _address(widths),
            len(starts),
            out.dtype.itemsize * 8,
            _address(out),
        )

    def pack(self, values: Array, starts: Integers, widths: Integers, out: Bytes) -> None:
        """Pack blocks of 1024 values; block i goes to ``out[starts[i]:]``."""
        self._dll.lt_pack(
            _address(values),
            _address(starts),
            _address(widths),
            len(starts),
            values.dtype.itemsize * 8,
            _address(out),
        )

    def levels(
        self, pieces: tuple[Bytes, Integers, Integers], counts: Integers, width: int, out: Levels
    ) -> int:
        """Unpack the levels of chunks; -1 when a piece has a wrong size."""
        data, starts, sizes = pieces
        outcome: int = self._dll.lt_levels(
            _address(data),
            _address(starts),
            _address(sizes),
            _address(counts),
            len(starts),
            width,
            _address(out),
        )
        return outcome

    def join(self, data: Bytes, starts: Integers, sizes: Integers, out: Bytes) -> None:
        """Copy pieces one behind the other."""
        self._dll.lt_join(
            _address(data), _address(starts), _address(sizes), len(starts), _address(out)
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
        self._dll.lt_scatter(
            _address(out),
            _address(places),
            _address(rooms),
            _address(data),
            _address(starts),
            _address(sizes),
            len(places),
        )

    def text_offsets(
        self, pieces: tuple[Bytes, Integers, Integers], counts: Integers, width: int, out: Integers
    ) -> int:
        """Bring the offsets of chunks to one base; -1 when they are damaged."""
        data, starts, sizes = pieces
        total: int = self._dll.lt_text_offsets(
            _address(data),
            _address(starts),
            _address(sizes),
            _address(counts),
            len(starts),
            width,
            _address(out),
        )
        return total

    def text_bytes(
        self, data: Bytes, starts: Integers, counts: Integers, width: int, out: Bytes
    ) -> None:
        """Copy the text of chunks one behind the other."""
        self._dll.lt_text_bytes(
            _address(data), _address(starts), _address(counts), len(starts), width, _address(out)
        )

    def fsst_decode(
        self,
        table: tuple[Array, Bytes],
        codes: Bytes,
        offsets: Integers,
        out: tuple[Bytes, Integers],
    ) -> int:
        """Decode values; negative when a code is damaged."""
        symbols, lengths = table
        total: int = self._dll.lt_fsst_decode(
            _address(symbols),
            _address(lengths),
            _address(codes),
            _address(offsets),
            len(offsets) - 1,
            _address(out[0]),
            _address(out[1]),
        )
        return total

    def fsst_encode(
        self,
        tables: tuple[Array, Array, Array, Array, Array],
        data: Bytes,
        offsets: Integers,
        out: tuple[Bytes, Integers],
    ) -> int:
        """Encode values; return how many bytes of codes were written."""
        total: int = self._dll.lt_fsst_encode(
            *map(_address, tables),
            _address(data),
            len(data),
            _address(offsets),
            len(offsets) - 1,
            _address(out[0]),
            _address(out[1]),
        )
        return total

    def lists(
        self,
        levels: tuple[Levels, Levels | None],
        bounds: Integers,
        lists: tuple[Integers, Bytes],
        kept: tuple[Levels, Levels],
        counts: Integers,
    ) -> int:
        """Take one list layer off the levels; return how many lists are null."""
        rep, def_ = levels
        nulls: int = self._dll.lt_lists(
            _address(rep),
            None if def_ is None else _address(def_),
            len(rep),
            _address(bounds),
            _address(lists[0]),
            _address(lists[1]),
            _address(kept[0]),
            _address(kept[1]),
            _address(counts),
        )
        return nulls


def _load() -> Library | None:
    wanted = os.environ.get("LANCETABLE_KERNELS", "")
    if wanted not in {"", "c", "numpy"}:
        raise UnsupportedError(f"LANCETABLE_KERNELS is {wanted!r}; use c or numpy")
    if wanted == "numpy" or sys.byteorder != "little":
        return None
    try:
        return Library(PATH)
    except (OSError, AttributeError) as cause:
        if wanted == "c":
            raise UnsupportedError(
                f"the compiled kernels cannot be loaded ({cause}); install a C compiler and"
                " install the package again, or unset LANCETABLE_KERNELS"
            ) from cause
        return None


LIBRARY = _load()
NAME = "numpy" if LIBRARY is None else "c"
