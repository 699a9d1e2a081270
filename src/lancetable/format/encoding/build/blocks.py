"""The memory of Arrow arrays as plain numbers and bytes, ready to be encoded."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.ragged import ELEMENTS


class FixedValues(NamedTuple):
    """Values of equal width: words where the width allows, else rows of bytes."""

    data: npt.NDArray[Any]
    width: int

    @property
    def raw(self) -> Bytes:
        """All bytes in one row."""
        return np.ascontiguousarray(self.data).reshape(-1).view(np.uint8)


class VariableValues(NamedTuple):
    """Value i is ``data[offsets[i] : offsets[i + 1]]``; ``bits`` is the width of an offset."""

    offsets: Integers
    data: Bytes
    bits: int


def fixed_values(array: pa.Array, width: int) -> FixedValues:
    """Return the memory of a fixed-width array; what lies under nulls is left as it is."""
    buffer = array.buffers()[1]
    if buffer is None:
        return FixedValues(np.zeros(len(array) * width, np.uint8), width)
    first = array.offset * width
    raw = np.frombuffer(buffer, np.uint8)[first : first + len(array) * width]
    if width in ELEMENTS:
        return FixedValues(raw.view(ELEMENTS[width]), width)
    return FixedValues(raw.reshape(-1, width), width)


def variable_values(array: pa.Array) -> VariableValues:
    """Return the memory of an array of strings or bytes; nulls become empty."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    kind = np.dtype(np.int64 if is_large else np.int32)
    _, edges, data = array.buffers()
    raw = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if edges is None or not edges.size:
        offsets = np.zeros(len(array) + 1, np.int64)
    else:
        first = array.offset
        offsets = np.frombuffer(edges, kind)[first : first + len(array) + 1].astype(np.int64)
    values = VariableValues(offsets, raw, 64 if is_large else 32)
    return _without_nulls(array, values) if array.null_count else values


def _without_nulls(array: pa.Array, values: VariableValues) -> VariableValues:
    """Drop bytes that lie under nulls; usually there are none."""
    lengths = np.diff(values.offsets)
    hidden = ~np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    if not lengths[hidden].any():
        return values
    dense = array.fill_null(b"" if pa.types.is_binary(array.type) else "")
    if pa.types.is_large_binary(array.type):
        dense = array.fill_null(pa.scalar(b"", pa.large_binary()))
    return variable_values(dense)


def bool_bytes(array: pa.Array) -> Bytes:
    """Return a boolean array as one byte per value."""
    filled = array.fill_null(False) if array.null_count else array  # noqa: FBT003
    return np.asarray(filled.to_numpy(zero_copy_only=False)).view(np.uint8)


def bool_bits(array: pa.Array) -> Bytes:
    """Return a boolean array as bits, zeros behind the last one."""
    count = len(array)
    if array.null_count or array.offset % 8 or not count:
        return np.packbits(bool_bytes(array), bitorder="little")
    first = array.offset // 8
    bits = np.frombuffer(array.buffers()[1], np.uint8)[first : first + (count + 7) // 8]
    if count % 8:
        bits = bits.copy()
        bits[-1] &= (1 << count % 8) - 1
    return bits


def list_items(array: pa.Array, size: int) -> pa.Array:
    """Return the items of lists of fixed size, also those under nulls."""
    return array.values.slice(array.offset * size, len(array) * size)


class PageDraft(NamedTuple):
    """The buffers of a page and the message that describes them."""

    rows: int
    buffers: Sequence[Bytes]
    description: bytes
