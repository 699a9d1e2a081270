"""Keeps some rows of columns that are lists of chunks."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Columns: TypeAlias = list[list[pa.Array]]
"""For every column its chunks; the chunk lengths of all columns add up to the same number."""

Mask: TypeAlias = npt.NDArray[np.bool_]


def rows_of(column: Sequence[pa.Array]) -> int:
    """Return the number of rows of one column."""
    return len(column[0]) if len(column) == 1 else sum(len(chunk) for chunk in column)


def keep(columns: Columns, mask: Mask) -> Columns:
    """Return the rows for which the mask is true."""
    chosen = pa.array(mask)
    return [_keep(column, chosen) for column in columns]


def _keep(column: Sequence[pa.Array], mask: pa.BooleanArray) -> list[pa.Array]:
    if len(column) == 1:
        return [column[0].filter(mask)]
    kept, start = [], 0
    for chunk in column:
        part = chunk.filter(mask.slice(start, len(chunk)))
        start += len(chunk)
        if len(part):
            kept.append(part)
    return kept


def reorder(columns: Columns, order: npt.NDArray[np.int64]) -> Columns:
    """Return the rows at the given positions, in that order."""
    if not columns:
        return []
    positions = pa.array(order)
    try:
        whole = [column[0] if len(column) == 1 else pa.concat_arrays(column) for column in columns]
    except pa.ArrowInvalid:  # together they are too long for the offsets of one array
        return [pa.chunked_array(column).take(positions).chunks for column in columns]
    # One call for all columns: its fixed cost is most of the time for a few rows.
    batch = pa.RecordBatch.from_arrays(whole, names=[""] * len(whole))
    return [[array] for array in batch.take(positions).columns]
