"""Starts and ends of the values of a variable-width page or the lists of a list page.

A page stores only ends. Adding the null adjustment, which is larger than every end, marks a null;
a value starts where the one before it ends, the first one at 0. With adjustment 4::

    value     "a"   null   ""   "dd"
    stored     1      5     1     3
    end        1      1     1     3
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Integers, Page, Reading, Rows
from lancetable.format.encoding.v20.fixed import read_integers
from lancetable.format.encoding.v20.model import ArrayEncoding


class Extents(NamedTuple):
    """Value i is ``[starts[i], stops[i])``, in ascending order; ``valid`` is None without nulls.

    The stops of a range of rows are the starts of the next ones.
    """

    starts: Integers
    stops: Integers
    valid: npt.NDArray[np.bool_] | None

    @property
    def first(self) -> int:
        """Start of the first value."""
        return int(self.starts[0]) if len(self.starts) else 0

    @property
    def last(self) -> int:
        """End of the last value."""
        return int(self.stops[-1]) if len(self.stops) else 0

    def offsets(self) -> Integers:
        """Return the offsets of the values once they are joined."""
        out = np.zeros(len(self.starts) + 1, np.int64)
        if self.last - self.first == 0:
            return out
        np.cumsum(self.stops - self.starts, out=out[1:])
        return out

    def numbers(self) -> Rows:
        """Return everything inside the extents, as a range when there are no gaps."""
        sizes = self.stops - self.starts
        total = int(sizes.sum())
        if self.last - self.first == total:
            return range(self.first, self.last)
        before = np.cumsum(sizes) - sizes
        numbers: Integers = np.arange(total, dtype=np.int64)
        numbers += np.repeat(self.starts - before, sizes)
        return numbers


class Ends(NamedTuple):
    """The ends that a page stores; ``limit`` is the largest one it can have."""

    stored: ArrayEncoding
    null_adjustment: int
    limit: int


def read_extents(ends: Ends, page: Page, rows: Rows) -> Reading[Extents]:
    """Return where the wanted values start and end.

    Raises:
        CorruptError: the ends decrease or exceed the limit.
    """
    if isinstance(rows, range):
        wanted: Rows = range(max(rows.start - 1, 0), rows.stop)
    else:
        wanted = np.maximum(np.repeat(rows, 2) - np.tile([1, 0], len(rows)), 0)
    stored = yield from read_integers(ends.stored, page, wanted)
    positions, valid = _positions(stored, ends)
    extents = (
        _of_range(positions, valid, rows)
        if isinstance(rows, range)
        else _of_many(positions, valid, rows)
    )
    if (extents.stops < extents.starts).any() or (extents.starts[1:] < extents.stops[:-1]).any():
        raise CorruptError("the ends of values or lists are not in ascending order")
    return extents


def _positions(
    stored: npt.NDArray[np.uint64], ends: Ends
) -> tuple[Integers, npt.NDArray[np.bool_] | None]:
    if ends.null_adjustment > np.iinfo(np.int64).max:
        raise CorruptError(f"the null adjustment {ends.null_adjustment} is no position")
    adjustment = np.uint64(ends.null_adjustment)
    valid: npt.NDArray[np.bool_] = stored < adjustment
    has_nulls = not valid.all()
    if has_nulls:
        stored = np.where(valid, stored, stored - adjustment)
    if len(stored) and int(stored.max()) > ends.limit:
        raise CorruptError(f"a value or list ends at {int(stored.max())}, the last at {ends.limit}")
    return stored.view(np.int64), valid if has_nulls else None


def _of_range(positions: Integers, valid: npt.NDArray[np.bool_] | None, rows: range) -> Extents:
    if rows.start:
        return Extents(positions[:-1], positions[1:], None if valid is None else valid[1:])
    starts = np.zeros(len(positions), np.int64)
    starts[1:] = positions[:-1]
    return Extents(starts, positions, valid)


def _of_many(positions: Integers, valid: npt.NDArray[np.bool_] | None, rows: Integers) -> Extents:
    starts = positions[0::2]
    if rows[0] == 0:
        starts = starts.copy()
        starts[0] = 0
    return Extents(starts, positions[1::2], None if valid is None else valid[1::2])
