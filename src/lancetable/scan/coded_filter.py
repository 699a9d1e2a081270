"""Evaluate a predicate on the values that pages name, in place of the rows that have them.

That is done when every part of the predicate reads one column: a row passes when each part holds
for its value, whatever the others say.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lancetable.errors import ExpressionError
from lancetable.expression import Expression, evaluate_mask
from lancetable.file.read.codes import CodedChunk
from lancetable.fragment.select import CodedColumns, Mask, rows_in
from lancetable.scan.predicate import Lone


def coded_filter(
    lone: Sequence[Lone], names: tuple[str, ...], read: Callable[[int], list[CodedChunk]]
) -> tuple[CodedColumns, Mask] | None:
    """Return the columns of a predicate, read by their slots, and which of their rows pass.

    Columns are left out when no row is left for them. None when it cannot be said whether the
    predicate holds for some value: perhaps no row has it.
    """
    columns: CodedColumns = [[] for _ in names]
    mask: Mask | None = None
    try:
        for slot, predicate in lone:
            columns[slot] = read(slot)
            own = _of_column(predicate, names[slot], columns[slot])
            mask = own if mask is None else mask & own
            if not mask.any():
                break
    except ExpressionError:
        return None
    return None if mask is None else (columns, mask)


def _of_column(predicate: Expression, name: str, column: list[CodedChunk]) -> Mask:
    masks = [_of_chunk(predicate, name, chunk) for chunk in column if rows_in(chunk)]
    return np.concatenate(masks) if masks else np.empty(0, np.bool_)


def _of_chunk(predicate: Expression, name: str, chunk: CodedChunk) -> Mask:
    if isinstance(chunk, pa.Array):
        return evaluate_mask(predicate, pa.RecordBatch.from_arrays([chunk], [name]))
    values = pa.RecordBatch.from_arrays([chunk.values], [name])
    return chunk.spread(evaluate_mask(predicate, values))
