"""The tables of mini-block pages through compiled functions.

Both return None when there is no library or when the table is damaged: the NumPy code beside the
callers then reads it, or says what is wrong.
"""

from typing import NamedTuple

import numpy as np

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

_DAMAGED = -2


class ChunkTable(NamedTuple):
    """The start of each chunk, its number of values, and the number of values before it.

    ``uniform`` is the number of values of all chunks but the last, which has no more; else 0.
    """

    starts: Integers
    counts: Integers
    firsts: Integers
    uniform: int


def chunk_table(words: Bytes, width: int, items: int, size: int) -> ChunkTable | None:
    """Read the words of a page's chunks, which hold ``items`` values in ``size`` bytes."""
    chunks = len(words) // width
    if DLL is None or not chunks:
        return None
    # One piece of memory: getting it costs more than filling it.
    whole = np.empty(3 * chunks + 2, np.int64)
    starts, firsts = whole[: chunks + 1], whole[chunks + 1 : 2 * chunks + 2]
    at = address(whole)
    alike = DLL.lt_chunk_table(
        address(words),
        chunks,
        width,
        items,
        size,
        at,
        at + 8 * (2 * chunks + 2),
        at + 8 * (chunks + 1),
    )
    if alike == _DAMAGED:
        return None
    return ChunkTable(starts, whole[2 * chunks + 2 :], firsts, max(alike, 0))


def row_firsts(data: Bytes, chunks: int, rows: int) -> Integers | None:
    """Read a repetition index: how many rows start before each chunk, and all of them."""
    if DLL is None or len(data) != chunks * 16:
        return None
    firsts = np.empty(chunks + 1, np.int64)
    if DLL.lt_row_index(address(data), chunks, rows, address(firsts)) == _DAMAGED:
        return None
    return firsts
