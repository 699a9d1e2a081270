"""Sets of rows as index files store them: one roaring bitmap for each upper half of the rows.

==============  ==========================================================================
u32             number of entries
per entry       u32 upper half of the rows, u32 size, then a roaring bitmap of that size
                with the lower halves; size 0 stands for every row of the fragment
==============  ==========================================================================
"""

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.limits import read_limits
from lancetable.format.manifest.roaring import decode_bitmap
from lancetable.format.rows import OFFSET_BITS
from lancetable.index.base import Numbers


def decode_row_map(data: bytes) -> Numbers | None:
    """Return the rows of a map; None when it holds a fragment of unknown size as a whole.

    Raises:
        CorruptError: the bytes are not such a map.
        LimitError: the rows take more than the limit on a page; a few bytes may stand for many.
    """
    limits, total = read_limits(), 0
    at, count = 4, int.from_bytes(data[:4], "little")
    parts = [np.empty(0, np.uint64)]
    for _ in range(count):
        upper, size = (int.from_bytes(data[at + 4 * n : at + 4 * n + 4], "little") for n in (0, 1))
        at += 8
        if at + size > len(data):
            raise CorruptError("the rows of a key end inside a bitmap")
        if not size:
            return None
        low = decode_bitmap(data[at : at + size], most=1 << OFFSET_BITS, limits=limits)
        total += low.size
        limits.check_page(parts[0].itemsize * total, total)
        parts.append(low.astype(np.uint64) | np.uint64(upper << OFFSET_BITS))
        at += size
    return np.concatenate(parts)
