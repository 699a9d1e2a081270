"""How are arrays handed to compiled functions?"""

import ctypes
from typing import Any, TypeAlias

import numpy.typing as npt
import pyarrow as pa

Array: TypeAlias = npt.NDArray[Any]
COUNT = ctypes.c_int64
POINTER = ctypes.c_void_p
Signatures: TypeAlias = dict[str, tuple[Any, tuple[Any, ...]]]


def address(array: Array) -> int:
    """Return where the memory of a contiguous array starts.

    Arrow finds it eight times as fast as the array's own description of itself is made, and a page
    of a few thousand values needs a dozen addresses.
    """
    place: int = pa.py_buffer(array).address
    return place


def declare(dll: ctypes.CDLL, signatures: Signatures) -> None:
    """Tell ctypes what the functions take and return."""
    for name, (result, arguments) in signatures.items():
        function = getattr(dll, name)
        function.restype = result
        function.argtypes = arguments
