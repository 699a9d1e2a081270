"""Convert Python values to Arrow scalars without importing pandas.

``pyarrow.scalar`` and ``pyarrow.array`` import pandas on their first call wherever it is
installed, which takes longer than most filters. Plain constants of a predicate are built from
buffers instead.
"""

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_FORMATS = {
    pa.int8(): "b",
    pa.int16(): "<h",
    pa.int32(): "<i",
    pa.int64(): "<q",
    pa.uint8(): "B",
    pa.uint16(): "<H",
    pa.uint32(): "<I",
    pa.uint64(): "<Q",
    pa.float32(): "<f",
    pa.float64(): "<d",
    pa.bool_(): "?",
}
_NATURAL = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def make_scalar(value: object, type: pa.DataType | None = None) -> pa.Scalar:  # noqa: A002
    """Return a Python value as a scalar of the given or its natural type."""
    if value is None:
        return pa.nulls(1, type if type is not None else pa.null())[0]
    kind = _NATURAL.get(value.__class__) if type is None else type
    if isinstance(value, str) and kind == pa.string():
        return _text(value)
    code = _FORMATS.get(kind)
    if code is None or not isinstance(value, int | float):
        return pa.scalar(value, type)
    try:
        data = struct.pack(code, value)
    except (struct.error, OverflowError):
        return pa.scalar(value, type)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(data)])[0]


def row_numbers(numbers: npt.NDArray[np.int64]) -> pa.Array:
    """Return row numbers as an Arrow array over the same memory."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _text(value: str) -> pa.Scalar:
    data = value.encode()
    offsets = pa.py_buffer(struct.pack("<ii", 0, len(data)))
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(data)])[0]
