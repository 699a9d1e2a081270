"""How are arrays handed to compiled functions?"""

import ctypes
from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
COUNT = ctypes.c_int64
POINTER = ctypes.c_void_p
Signatures: TypeAlias = dict[str, tuple[Any, tuple[Any, ...]]]


def address(array: Array) -> int:
    """Return where the memory of an array starts."""
    place: int = array.__array_interface__["data"][0]
    return place


def declare(dll: ctypes.CDLL, signatures: Signatures) -> None:
    """Tell ctypes what the functions take and return."""
    for name, (result, arguments) in signatures.items():
        function = getattr(dll, name)
        function.restype = result
        function.argtypes = arguments
