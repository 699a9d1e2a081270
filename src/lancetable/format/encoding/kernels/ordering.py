"""Sort numbers in ascending order."""

import ctypes

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import PairRecord

_PAIR = ctypes.sizeof(PairRecord)
_FEWEST = 256
_MOST = 1 << 19
"""The compiled function takes 32 bytes for each number, which must not add up."""


def ascending_order(values: npt.NDArray[np.uint64]) -> Integers:
    """Return the places of numbers in ascending order, those of equal numbers as they stand."""
    count = len(values)
    if DLL is None or not _FEWEST <= count <= _MOST:
        return np.argsort(values, kind="stable")
    pairs = np.empty(2 * count * _PAIR, np.uint8)
    order = np.empty(count, np.int64)
    whole = np.ascontiguousarray(values)
    DLL.lt_order(address(whole), count, address(pairs), address(order))
    return order
