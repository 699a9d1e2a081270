"""Keeps some rows of columns whose chunks are arrays, codes or runs."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import pyarrow as pa

from lancetable.file.coded import CodedChunk
from lancetable.format.arrays import booleans
from lancetable.fragment.select import Mask

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
