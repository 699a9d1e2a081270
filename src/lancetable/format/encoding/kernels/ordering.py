"""In which order do numbers ascend?"""

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import declared
from lancetable.format.encoding.kernels.foreign import COUNT, POINTER, address

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


_DLL = declared(_SIGNATURES)
