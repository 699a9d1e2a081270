"""NumPy arrays as Arrow arrays over the same memory.

``pa.array`` would do, but it loads pandas first where that is installed, which takes longer than
most reads.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]
"""Positions of rows within a fragment, or within other rows."""


def numbers(values: npt.NDArray[Any], validity: Mask | None = None) -> pa.Array:
    """Return integers or floats as an array; ``validity`` says which are not null."""
    type_ = pa.from_numpy_dtype(values.dtype)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values), [bitmap(validity), data])


def booleans(values: Mask) -> pa.Array:
    """Return a mask as an array."""
    data = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, data])


def byte_strings(values: Sequence[bytes]) -> pa.LargeBinaryArray:
    """Return byte strings as an array."""
    edges = np.zeros(len(values) + 1, np.int64)
    np.cumsum([*map(len, values)], out=edges[1:])
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def bitmap(validity: Mask | None) -> pa.Buffer | None:
    """Return a validity buffer; None when everything is valid."""
    return None if validity is None else pa.py_buffer(np.packbits(validity, bitorder="little"))
