"""In which order do numbers ascend?"""

from typing import Any

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.foreign import COUNT, POINTER, address, declare

_SIGNATURES = {"lt_order": (None, (POINTER, COUNT, POINTER, POINTER))}
_FEWEST = 256
_MOST = 1 << 19
"""The compiled function takes 32 bytes for each number, which must not add up."""


def ascending_order(values: npt.NDArray[np.uint64]) -> Integers:
    """Return the places of numbers in ascending order, those of equal numbers as they stand."""
    count = len(values)
    if _DLL is None or not _FEWEST <= count <= _MOST:
        return np.argsort(values, kind="stable")
    pairs = np.empty(4 * count, np.uint64)
    order = np.empty(count, np.int64)
    whole = np.ascontiguousarray(values)
    _DLL.lt_order(address(whole), count, address(pairs), address(order))
    return order


def _load() -> Any:  # noqa: ANN401 - a library of ctypes
    if LIBRARY is None:
        return None
    try:
        declare(LIBRARY.dll, _SIGNATURES)
    except AttributeError:  # a library of another release
        return None
    return LIBRARY.dll


_DLL = _load()
