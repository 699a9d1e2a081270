"""Rows as a page stores them when it names few values often: by codes, or in runs.

What is asked of every row can then be asked of every value. That is exact, as the answer depends
on nothing else.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.arrays import numbers
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import Block, Indices, Repeated, RunBlock
from lancetable.format.encoding.layout import Entries
from lancetable.format.encoding.leaf import Kind, Shape, check_expansion, leaf_array
from lancetable.format.encoding.repdef import Layers, Mask, leaf_validity, visible
from lancetable.format.limits import read_limits

_SHAPES = {Shape.FIXED, Shape.VARIABLE, Shape.BOOL}


class Codes(NamedTuple):
    """Row i has value ``codes[i]``; a missing one has the code of a null."""

    values: pa.Array
    codes: npt.NDArray[np.integer]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def spread(self, of_values: Mask) -> Mask:
        """Turn what holds for values into what holds for rows."""
        found: Mask = of_values[self.codes]
        return found

    def keep(self, mask: Mask) -> "Codes":
        """Return the rows for which the mask is true."""
        return Codes(self.values, self.codes[mask])

    def decoded(self) -> pa.Array:
        """Return the value of each row."""
        check_expansion(self.values, self.codes)
        return self.values.take(numbers(self.codes.astype(np.int64, copy=False)))


class Runs(NamedTuple):
    """Value i occurs ``lengths[i]`` times; a page of one value is a single run."""

    values: pa.Array
    lengths: Integers

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.lengths.sum())

    def spread(self, of_values: Mask) -> Mask:
        """Turn what holds for values into what holds for rows."""
        return np.repeat(of_values, self.lengths)

    def keep(self, mask: Mask) -> "Runs":
        """Return the rows for which the mask is true."""
        kept = np.zeros(len(mask) + 1, np.int64)
        np.cumsum(mask, out=kept[1:])
        ends = np.cumsum(self.lengths)
        return Runs(self.values, kept[ends] - kept[ends - self.lengths])

    def decoded(self) -> pa.Array:
        """Return the value of each row."""
        if len(self.values) == 1:
            read_limits().check_page(self.rows * self.values.nbytes, self.rows)
            return pa.repeat(self.values[0], self.rows) if self.rows else self.values[:0]
        places = np.repeat(np.arange(len(self.values)), self.lengths)
        check_expansion(self.values, places)
        return self.values.take(numbers(places))


Coded: TypeAlias = Codes | Runs


def coded_rows(entries: Entries, layers: Layers, kind: Kind) -> Coded | None:
    """Return the rows of a page without lists as they are stored; None when each has its value.

    Raises:
        CorruptError: an index points behind the dictionary.
    """
    keep = entries.keep
    if kind.shape not in _SHAPES or not isinstance(keep, slice) or entries.lists is not None:
        return None
    if visible(entries.def_, layers) is not None:
        return None
    validity = leaf_validity(entries.def_, layers)
    validity = None if validity is None else validity[keep]
    match entries.block:
        case Repeated(value, _):
            return _repeated(value, keep, kind, validity)
        case Indices(indices, items):
            return _indices(indices[keep], items, kind, validity)
    return None


def coded_runs(runs: RunBlock, keep: slice, kind: Kind) -> Runs:
    """Return the rows of a page of runs; ``keep`` says which of them."""
    return Runs(leaf_array(runs.values, kind, None), _cut(runs.lengths, keep))


def _repeated(value: Block | None, keep: slice, kind: Kind, validity: Mask | None) -> Coded:
    rows = keep.stop - keep.start
    if value is None:
        return Runs(pa.nulls(1, kind.type), np.array([rows]))
    one = leaf_array(value, kind, None)
    if len(one) != 1:
        raise CorruptError(f"the value of a constant page is not a value of type {kind.type}")
    if validity is None:
        return Runs(one, np.array([rows]))
    return Codes(_with_null(one), np.where(validity, np.int8(0), np.int8(1)))


def _indices(
    indices: npt.NDArray[np.integer], items: Block, kind: Kind, validity: Mask | None
) -> Codes | None:
    values = leaf_array(items, kind, None)
    if len(values) >= len(indices):  # to look at all values would take longer
        return None
    checked = indices if validity is None else indices[validity]
    if len(checked) and int(checked.max()) >= len(values):
        raise CorruptError(f"an index points behind the {len(values)} items of its dictionary")
    if validity is None:
        return Codes(values, indices)
    return Codes(_with_null(values), np.where(validity, indices, len(values)))


def _with_null(values: pa.Array) -> pa.Array:
    return pa.concat_arrays([values, pa.nulls(1, values.type)])


def _cut(lengths: Integers, keep: slice) -> Integers:
    """Return how much of each run lies inside a range of rows."""
    ends = np.cumsum(lengths)
    first, last = np.clip([ends - lengths, ends], keep.start, keep.stop)
    inside: Integers = last - first
    return inside
