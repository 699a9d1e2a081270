"""Write sets of rows as roaring bitmaps, one for each upper half of the rows.

A set begins with the number of its bitmaps. Each follows its upper half (u32), and in the form with
sizes its size (u32), too; the number then is u32, else u64.
"""

from array import array
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

if TYPE_CHECKING:
    from pyroaring import BitMap

Rows = npt.NDArray[np.uint64]

_GROUP_BYTES, _ROW_BYTES = 16, 32
_HALF = 32


class RowBitmaps:
    """A set that grows; large parts of it take little memory."""

    def __init__(self) -> None:
        self._by_upper: dict[int, BitMap] = {}

    def add(self, rows: Rows) -> None:
        """Add rows in any order."""
        from pyroaring import BitMap  # noqa: PLC0415 - reading a table does without it

        uppers = rows >> np.uint64(_HALF)
        for upper in np.unique(uppers).tolist():
            low = (rows[uppers == upper] & np.uint64(2**_HALF - 1)).astype(np.uint32)
            found = self._by_upper.setdefault(upper, BitMap())
            found |= BitMap(array("I", low.tobytes()))

    def encoded(self, *, has_sizes: bool) -> bytes:
        """Return the set in one of the two forms."""
        parts = [len(self._by_upper).to_bytes(4 if has_sizes else 8, "little")]
        for upper in sorted(self._by_upper):
            self._by_upper[upper].run_optimize()
            data = bytes(self._by_upper[upper].serialize())
            parts.append(upper.to_bytes(4, "little"))
            if has_sizes:
                parts.append(len(data).to_bytes(4, "little"))
            parts.append(data)
        return b"".join(parts)


def encode_sets(rows: Rows, edges: Integers, *, has_sizes: bool) -> tuple[Bytes, Integers]:
    """Return the sets of groups of ascending rows, one after the other, and where each ends.

    ``edges`` says where each group begins, and where the last one ends.
    """
    count = len(edges) - 1
    if DLL is None:
        sets = []
        for first, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            one = RowBitmaps()
            one.add(rows[first:stop])
            sets.append(one.encoded(has_sizes=has_sizes))
        return np.frombuffer(b"".join(sets), np.uint8), np.cumsum([*map(len, sets)], dtype=np.int64)
    whole, places = np.ascontiguousarray(rows), np.ascontiguousarray(edges, np.int64)
    out = np.empty(_GROUP_BYTES * count + _ROW_BYTES * len(whole), np.uint8)
    ends = np.empty(count, np.int64)
    DLL.lt_row_sets(address(whole), address(places), count, has_sizes, address(out), address(ends))
    # A copy, as the room for the worst case is many times what is written.
    return out[: int(ends[-1]) if count else 0].copy(), ends
