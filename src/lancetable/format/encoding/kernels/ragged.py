"""Gather many small pieces of one large buffer.

The chunks of a page scatter what belongs together: a piece of each chunk holds values, another
its levels. These functions join such pieces, or pick single elements out of them, without a
Python loop where the pieces are alike.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.kernels.compiled import LIBRARY

ELEMENTS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
POOL_FROM_BYTES = 1 << 16
SHORT_SLICE = 64


class Ragged(NamedTuple):
    """Pieces of one buffer; piece i is ``data[starts[i] : starts[i] + sizes[i]]``."""

    data: Bytes
    starts: Integers
    sizes: Integers

    def piece(self, number: int) -> Bytes:
        """Return one piece."""
        start = int(self.starts[number])
        return self.data[start : start + int(self.sizes[number])]

    def pick(self, numbers: Integers | slice) -> "Ragged":
        """Return some of the pieces."""
        return Ragged(self.data, self.starts[numbers], self.sizes[numbers])

    def resized(self, sizes: Integers) -> "Ragged":
        """Return the same pieces cut to other sizes, none larger than before."""
        if (sizes > self.sizes).any():
            raise CorruptError("a chunk is too short for the values it should hold")
        return Ragged(self.data, self.starts, sizes)


def check_inside(pieces: Ragged) -> None:
    """Make sure that no piece reaches beyond the buffer, as compiled code would follow it there.

    Raises:
        CorruptError: one does.
    """
    data, starts, sizes = pieces
    if not len(starts):
        return
    if int(starts.min()) < 0 or int(sizes.min()) < 0 or int((starts + sizes).max()) > len(data):
        raise CorruptError("a part of a page reaches beyond its bytes")


def single(data: Bytes) -> Ragged:
    """Return a whole buffer as one piece."""
    return Ragged(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))


def empty_bytes(size: int) -> Bytes:
    """Return uninitialised memory; large pieces come from the Arrow pool, which reuses them.

    Memory that numpy frees goes back to the system and has to be faulted in again by the next
    page, which costs more than decoding a flat page.
    """
    if size < POOL_FROM_BYTES:
        return np.empty(size, np.uint8)
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def join(pieces: Ragged) -> Bytes:
    """Return all pieces one after the other."""
    data, starts, sizes = pieces
    count = len(starts)
    if count == 0:
        return np.empty(0, np.uint8)
    if count == 1:
        return pieces.piece(0)
    ends = starts + sizes
    if (ends[:-1] == starts[1:]).all():
        return data[int(starts[0]) : int(ends[-1])]
    check_inside(pieces)
    out = empty_bytes(int(sizes.sum()))
    if LIBRARY is not None:
        LIBRARY.join(data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), out)
        return out
    first = 0
    for start, stop in zip(starts.tolist(), ends.tolist(), strict=True):
        last = first + stop - start
        out[first:last] = data[start:stop]
        first = last
    return out


def gather(data: Bytes, positions: Integers, width: int) -> npt.NDArray[Any]:
    """Return elements of ``width`` bytes at byte positions, as words or as rows of bytes.

    Positions of 1, 2, 4 and 8 byte elements must be multiples of the width.
    """
    if width in ELEMENTS:
        usable = len(data) - len(data) % width
        return data[:usable].view(ELEMENTS[width])[positions // width]
    if width % 8 == 0 and not (positions % 8).any():
        usable = len(data) - len(data) % 8
        words = data[:usable].view(np.uint64)
        found: npt.NDArray[Any] = words[(positions // 8)[:, None] + np.arange(width // 8)]
        return found.view(np.uint8)
    rows: npt.NDArray[Any] = data[positions[:, None] + np.arange(width)]
    return rows


def gather_slices(data: Bytes, starts: Integers, stops: Integers) -> tuple[Integers, Bytes]:
    """Return the joined bytes of arbitrary slices and the offset of each slice in them."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    if len(starts) == 0:
        return offsets, np.empty(0, np.uint8)
    if (stops[:-1] == starts[1:]).all():
        return offsets, data[int(starts[0]) : int(stops[-1])]
    total = int(offsets[-1])
    sizes = stops - starts
    # Slices of damaged pages, which may end before they start, are cut as NumPy cuts them.
    is_inside = int(sizes.min()) >= 0 and int(starts.min()) >= 0 and int(stops.max()) <= len(data)
    if LIBRARY is not None and is_inside:
        out = empty_bytes(total)
        first, each = (np.ascontiguousarray(one, np.int64) for one in (starts, sizes))
        LIBRARY.join(np.ascontiguousarray(data), first, each, out)
        return offsets, out
    if total < SHORT_SLICE * len(starts):
        # One gather of single bytes beats a Python loop over short slices.
        places = np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(total)
        return offsets, data[places]
    view = data.data
    pieces = [view[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
    return offsets, np.frombuffer(b"".join(pieces), np.uint8)
