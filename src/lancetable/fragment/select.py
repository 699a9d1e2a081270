"""Keep some rows of columns that are lists of chunks."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.file.read.codes import CodedChunk
from lancetable.format.arrays import booleans, numbers

Columns: TypeAlias = list[list[pa.Array]]
"""For every column its chunks; the chunk lengths of all columns add up to the same number."""

Mask: TypeAlias = npt.NDArray[np.bool_]

SPARSE = 0.1
"""Below this share of rows, places are used instead of a mask."""


def rows_of(column: Sequence[pa.Array]) -> int:
    """Return the number of rows of one column."""
    return len(column[0]) if len(column) == 1 else sum(len(chunk) for chunk in column)


def keep(columns: Columns, mask: Mask) -> Columns:
    """Return the rows for which the mask is true."""
    if np.count_nonzero(mask) < SPARSE * len(mask):
        places = np.flatnonzero(mask)
        return [_pick(column, places) for column in columns]
    chosen = booleans(mask)
    return [_keep(column, chosen) for column in columns]


def _pick(column: Sequence[pa.Array], places: npt.NDArray[np.int64]) -> list[pa.Array]:
    """Take a few rows by their places, which is quicker than looking at a mask for all."""
    if len(column) == 1:
        return [column[0].take(numbers(places))]
    kept, start = [], 0
    for chunk in column:
        stop = start + len(chunk)
        first, last = np.searchsorted(places, [start, stop])
        if first < last:
            kept.append(chunk.take(numbers(places[first:last] - start)))
        start = stop
    return kept


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
    positions = numbers(order)
    try:
        whole = [column[0] if len(column) == 1 else pa.concat_arrays(column) for column in columns]
    except pa.ArrowInvalid:  # together they are too long for the offsets of one array
        return [pa.chunked_array(column).take(positions).chunks for column in columns]
    # One call for all columns: its fixed cost is most of the time for a few rows.
    batch = pa.RecordBatch.from_arrays(whole, names=[""] * len(whole))
    return [[array] for array in batch.take(positions).columns]


CodedColumns: TypeAlias = list[list[CodedChunk]]
"""As ``Columns``, with chunks as their pages store them."""


def rows_in(chunk: CodedChunk) -> int:
    """Return the number of rows of a chunk."""
    return len(chunk) if isinstance(chunk, pa.Array) else chunk.rows


def keep_coded(column: Sequence[CodedChunk], mask: Mask) -> list[CodedChunk]:
    """Return the rows for which the mask is true."""
    ends = list(accumulate(map(rows_in, column)))
    starts = [0, *ends]
    return [
        _kept(chunk, mask[start:end])
        for chunk, start, end in zip(column, starts, ends, strict=False)
    ]


def decoded(column: Sequence[CodedChunk]) -> list[pa.Array]:
    """Return the value of each row."""
    return [chunk if isinstance(chunk, pa.Array) else chunk.decoded() for chunk in column]


def _kept(chunk: CodedChunk, mask: Mask) -> CodedChunk:
    return chunk.filter(booleans(mask)) if isinstance(chunk, pa.Array) else chunk.keep(mask)
