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


def reorder(column: Sequence[pa.Array], order: pa.Array) -> list[pa.Array]:
    """Return the rows at the given positions, in that order."""
    if len(column) == 1:
        return [column[0].take(order)]
    return [pa.concat_arrays(column).take(order)] if column else []
