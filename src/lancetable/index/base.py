"""The contract of scalar indices, and what they share: a part of a predicate in terms of values.

An index holds values of one column. A part of a predicate that reads this column only is evaluated
on the values of the index by the same code that evaluates it on rows, so both agree on nulls, NaN
and the two zeros.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from lancetable.expression import Column, Expression, evaluate_mask
from lancetable.expression.tree import rebuild
from lancetable.format.arrays import Mask
from lancetable.format.rows import RowSet

VALUE = "value"
Rows: TypeAlias = Mapping[int, int]
"""Fragments by id, with their numbers of physical rows."""


class ScalarIndex(Protocol):
    """One opened segment of an index on a column."""

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments among those of the segment that its files describe."""
        ...

    def search(self, part: Expression) -> RowSet | None:
        """Return all rows for which a part of a predicate is true, exactly or at most.

        The part reads the column ``value`` only. None when the index cannot answer it.

        Raises:
            CorruptError: a file of the segment is damaged.
        """
        ...


def in_terms_of_values(part: Expression) -> Expression:
    """Return a part of a predicate on one column as one on the column ``value``."""
    if isinstance(part, Column):
        return Column((VALUE,))
    return rebuild(part, in_terms_of_values)


def matching(part: Expression, values: pa.Array) -> Mask:
    """Return for which of some values a part of a predicate is true."""
    if not len(values):
        return np.zeros(0, np.bool_)
    return evaluate_mask(part, pa.RecordBatch.from_arrays([values], [VALUE]))
