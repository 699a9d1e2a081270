"""Find the places of points on a Hilbert curve."""

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

BITS = 16
Coordinates = npt.NDArray[np.uint16]


def hilbert_places(x: Coordinates, y: Coordinates) -> npt.NDArray[np.uint32]:
    """Return the place of each point on a curve through all points of these coordinates."""
    if DLL is None:
        return _places(x.astype(np.int64), y.astype(np.int64))
    whole = np.ascontiguousarray(x), np.ascontiguousarray(y)
    found = np.empty(len(x), np.uint32)
    DLL.lt_hilbert(*map(address, whole), len(x), address(found))
    return found


def _places(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    most = (1 << BITS) - 1
    found = np.zeros(len(x), np.uint32)
    for bit in range(BITS - 1, -1, -1):
        in_x, in_y = (x >> bit) & 1, (y >> bit) & 1
        found |= ((3 * in_x) ^ in_y).astype(np.uint32) << np.uint32(2 * bit)
        turned = (in_y == 0) & (in_x == 1)
        x, y = np.where(turned, most - x, x), np.where(turned, most - y, y)
        x, y = np.where(in_y == 0, y, x), np.where(in_y == 0, x, y)
    return found
