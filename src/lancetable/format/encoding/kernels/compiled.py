"""Load the compiled versions of the kernels, if they are available, and call them.

The build compiles the files in ``c`` when it finds a C compiler. Without the library, or with
``LANCETABLE_KERNELS=numpy`` in the environment, every caller takes its NumPy path, which is always
there and is what the compiled functions are tested against. ``LANCETABLE_KERNELS=c`` makes a
missing library an error instead.
"""

import ctypes
import os
import sys
import warnings
from typing import Any

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers, Levels
from lancetable.format.encoding.kernels.encoders import SIGNATURES, Encoders
from lancetable.format.encoding.kernels.foreign import Array, address
from lancetable.format.encoding.kernels.records import RECORDS

ABI = 20
FOLDER = __file__.replace("\\", "/").rpartition("/")[0]
ENDING = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
PATH = f"{FOLDER}/_kernels.{ENDING}"


class _OtherReleaseError(OSError):
    """There is a library, compiled from other sources than these."""


def _has_own_records(dll: ctypes.CDLL) -> bool:
    """Return whether the records of a library are as large as those in Python."""
    sizes = ctypes.pointer(ctypes.c_int64.in_dll(dll, "lt_record_sizes"))
    own = [*map(ctypes.sizeof, RECORDS.values()), 0]
    return all(sizes[number] == size for number, size in enumerate(own))


class Library(Encoders):
    """The compiled functions, with arrays in place of pointers. All arrays are contiguous."""

    def __init__(self, path: str) -> None:
        self._dll = ctypes.CDLL(path)
        self._declare("lt_abi")
        if self._dll.lt_abi() != ABI or not _has_own_records(self._dll):
            raise _OtherReleaseError(f"{path} is of another release")
        for name in SIGNATURES:
            self._declare(name)
        super().__init__(self._dll)

    def _declare(self, name: str) -> None:
        function = getattr(self._dll, name)
        function.restype, function.argtypes = SIGNATURES[name]

    @property
    def dll(self) -> ctypes.CDLL:
        """The library itself, all of whose functions are declared."""
        return self._dll

    def unpack(self, data: Bytes, starts: Integers, widths: Integers, out: Array) -> None:
        """Unpack blocks of 1024 values; block i has ``widths[i]`` bits a value."""
        self._dll.lt_unpack(
            address(data),
            address(starts),
            address(widths),
            len(starts),
            out.dtype.itemsize * 8,
            address(out),
        )

    def levels(
        self, pieces: tuple[Bytes, Integers, Integers], counts: Integers, width: int, out: Levels
    ) -> int:
        """Unpack the levels of chunks; -1 when a piece has a wrong size."""
        data, starts, sizes = pieces
        outcome: int = self._dll.lt_levels(
            address(data),
            address(starts),
            address(sizes),
            address(counts),
            len(starts),
            width,
            address(out),
        )
        return outcome

    def join(self, data: Bytes, starts: Integers, sizes: Integers, out: Bytes) -> None:
        """Copy pieces one behind the other."""
        self._dll.lt_join(address(data), address(starts), address(sizes), len(starts), address(out))

    def text_write(
        self,
        pieces: tuple[Bytes, Integers, Integers],
        counts: Integers,
        width: int,
        table: tuple[Array, Bytes] | None,
        out: tuple[Bytes, Array],
    ) -> int:
        """Write the text of chunks and its edges; negative as ``c/text.c`` says."""
        data, starts, sizes = pieces
        text, edges = out
        total: int = self._dll.lt_text_write(
            address(data),
            address(starts),
            address(sizes),
            address(counts),
            len(starts),
            width,
            None if table is None else address(table[0]),
            None if table is None else address(table[1]),
            address(text),
            len(text),
            address(edges),
            edges.dtype.itemsize,
        )
        return total

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
            address(symbols),
            address(lengths),
            address(codes),
            address(offsets),
            len(offsets) - 1,
            address(out[0]),
            address(out[1]),
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
            address(rep),
            None if def_ is None else address(def_),
            len(rep),
            address(bounds),
            address(lists[0]),
            address(lists[1]),
            address(kept[0]),
            address(kept[1]),
            address(counts),
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
        if isinstance(cause, _OtherReleaseError):
            remedy = "install the package again, or run `python hatch_build.py` in its source tree"
            text = f"{cause}, so NumPy does its work: {remedy}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        return None


LIBRARY = _load()
DLL: Any = None if LIBRARY is None else LIBRARY.dll
"""The functions for the modules that call them with addresses; None when NumPy does their work."""

NAME = "numpy" if LIBRARY is None else "c"
