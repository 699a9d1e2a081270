"""Compact sets of rows of one fragment: a range, bits, or numbers.

=========  ==============================  =====================
form       when                            bytes
=========  ==============================  =====================
range      no row in between is missing    none
bits       many rows                       an eighth per row in between
numbers    few rows                        four per row
=========  ==============================  =====================

A change may concern every row of a table, so the set must not take more memory than
the rows.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from lancetable.format.arrays import Offsets

_BITS = 8
_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """Offsets of one fragment, each once."""

    start: int
    stop: int
    count: int
    bits: npt.NDArray[np.uint8] | None = None
    numbers: npt.NDArray[np.uint32] | None = None

    @classmethod
    def of(cls, offsets: npt.NDArray[np.integer]) -> Self:
        """Remember offsets, which ascend."""
        count = len(offsets)
        if not count:
            return cls(0, 0, 0)
        start, stop = int(offsets[0]), int(offsets[-1]) + 1
        if stop - start == count:
            return cls(start, stop, count)
        if stop - start < count * _NUMBER_BYTES * _BITS:
            flags = np.zeros(stop - start, np.bool_)
            flags[offsets - start] = True
            return cls(start, stop, count, bits=np.packbits(flags))
        return cls(start, stop, count, numbers=offsets.astype(np.uint32))

    def __len__(self) -> int:
        return self.count

    def offsets(self) -> Offsets:
        """Return the offsets, ascending."""
        if self.bits is not None:
            flags = np.unpackbits(self.bits, count=self.stop - self.start)
            return np.flatnonzero(flags) + self.start
        if self.numbers is not None:
            return self.numbers.astype(np.int64)
        return np.arange(self.start, self.stop)

    def __array__(
        self,
        dtype: npt.DTypeLike | None = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy's protocol
    ) -> npt.NDArray[np.generic]:
        """Return the offsets; called by NumPy."""
        made = self.offsets()
        return made if dtype is None else made.astype(dtype, copy=bool(copy))

    def union(self, offsets: Offsets) -> "RowSet":
        """Return the rows together with others, which ascend."""
        return RowSet.of(np.union1d(self.offsets(), offsets)) if self.count else RowSet.of(offsets)
