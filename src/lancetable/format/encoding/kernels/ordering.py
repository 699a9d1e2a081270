"""Put numbers and texts in ascending order; equal ones stay as they stand."""

import ctypes

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address
from lancetable.format.encoding.kernels.records import PairRecord

_PAIR = ctypes.sizeof(PairRecord)
_FEWEST = 256
"""Fewer numbers are ordered as fast without the compiled function."""

Rows = npt.NDArray[np.uint64]


def order_rows(block: Rows) -> None:
    """Order numbers with their rows, in place: the block has all numbers, then all rows."""
    count = len(block) // 2
    if DLL is None or count < _FEWEST:
        order = np.argsort(block[:count], kind="stable")
        block.reshape(2, count)[:] = block.reshape(2, count)[:, order]
        return
    room = np.empty(count * _PAIR, np.uint8)
    DLL.lt_order_rows(address(block), count, address(room))


def ascending_order(values: Rows) -> Integers:
    """Return the places of numbers in ascending order."""
    count = len(values)
    if DLL is None or count < _FEWEST:
        return np.argsort(values, kind="stable")
    block = np.concatenate([values, np.arange(count, dtype=np.uint64)])
    order_rows(block)
    return block[count:].view(np.int64)


def text_order(values: pa.LargeBinaryArray) -> Integers:
    """Return the places of byte strings in ascending order; none is null."""
    count = len(values)
    if DLL is None or count < _FEWEST:
        order: Integers = pc.sort_indices(values).to_numpy().astype(np.int64)
        return order
    edges = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: count + 1]
    data = values.buffers()[2]
    pairs = np.empty(2 * count * _PAIR, np.uint8)
    order = np.empty(count, np.int64)
    DLL.lt_order_texts(
        0 if data is None else data.address, address(edges), count, address(pairs), address(order)
    )
    return order
