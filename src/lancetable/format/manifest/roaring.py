"""Read and write 32-bit roaring bitmaps (portable serialisation).

===========================  ====================================================================
part                         meaning
===========================  ====================================================================
cookie (u32)                 12346: no run containers, then the number of containers (u32);
                             low half 12347: the high half is that number less one, then one bit
                             per container says whether it is a run container
per container (u16, u16)     high half of the values, number of values less one
per container (u32)          its position; left out by 12347 below four containers
containers                   runs (u16 count, then start and length less one), or up to 4096
                             sorted values (u16), or 65536 bits
===========================  ====================================================================
"""

from array import array
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.limits import ReadLimits

Values: TypeAlias = npt.NDArray[np.uint32]

_PLAIN = 12346
_WITH_RUNS = 12347
_MAX_ARRAY = 4096
_BITMAP_BYTES = 8192
_OFFSETS_FROM = 4
_VALUE_BYTES = 8


def decode_bitmap(data: bytes, *, most: int, limits: ReadLimits | None = None) -> Values:
    """Return the values in ascending order; more than ``most`` are refused before they are made.

    ``limits`` are for sets whose size nothing else bounds.

    Raises:
        CorruptError: the bytes are not such a bitmap.
        LimitError: as numbers of 64 bits the values take more than the limit on a page.
    """
    return _values(_Cursor(data), most, limits)


def decode_treemap(
    data: bytes, *, most: int, limits: ReadLimits | None = None
) -> npt.NDArray[np.uint64]:
    """Return the 64-bit values of bitmaps by their upper halves, in ascending order.

    The number of bitmaps (u64) comes first, then each upper half (u32) and its bitmap.

    Raises:
        CorruptError: the bytes are not such bitmaps.
        LimitError: the values of all bitmaps take more than the limit on a page.
    """
    total = 0
    cursor = _Cursor(data)
    parts: list[npt.NDArray[np.uint64]] = []
    last = -1
    for _ in range(int(cursor.numbers("<u8", 1)[0])):
        upper = int(cursor.numbers("<u4", 1)[0])
        if upper <= last:
            raise CorruptError("the bitmaps are not in ascending order of their upper halves")
        last = upper
        values = _values(cursor, most, limits)
        most -= values.size
        total += values.size
        if limits is not None:
            limits.check_page(_VALUE_BYTES * total, total)
        parts.append(values.astype(np.uint64) | np.uint64(upper << 32))
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def encode_treemap(parts: Iterable[tuple[int, npt.NDArray[np.uint32]]]) -> bytes:
    """Return the map of values given by their upper halves, which ascend."""
    from pyroaring import BitMap  # noqa: PLC0415 - reading a table does without it

    encoded = []
    for upper, values in parts:
        bitmap = BitMap(_buffer(values))
        bitmap.run_optimize()
        encoded.append(upper.to_bytes(4, "little") + bytes(bitmap.serialize()))
    return len(encoded).to_bytes(8, "little") + b"".join(encoded)


def _values(cursor: "_Cursor", most: int, limits: ReadLimits | None) -> Values:
    runs, count = _header(cursor)
    heads = cursor.numbers("<u2", 2 * count).reshape(count, 2).astype(np.int64)
    sizes = heads[:, 1] + 1
    total = int(sizes.sum())
    if total > most:
        raise CorruptError(f"the bitmap holds {total} values, at most {most} can be")
    if limits is not None:
        limits.check_page(_VALUE_BYTES * total, total)
    if count > 1 and (np.diff(heads[:, 0]) <= 0).any():
        raise CorruptError("the containers of the bitmap are not in ascending order")
    if not runs.size or count >= _OFFSETS_FROM:
        cursor.skip(4 * count)
    has_runs = np.unpackbits(runs, bitorder="little")[:count] if runs.size else np.zeros(count)
    parts = [
        _container(cursor, int(size), is_run=bool(is_run)) | np.uint32(int(key) << 16)
        for key, size, is_run in zip(heads[:, 0], sizes, has_runs, strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def encode_bitmap(values: Iterable[int] | npt.NDArray[np.uint32]) -> bytes:
    """Return the bitmap of some values, in any order."""
    from pyroaring import BitMap  # noqa: PLC0415 - reading a table does without it

    return bytes(BitMap(_buffer(values)).serialize())


def _buffer(values: Iterable[int] | npt.NDArray[np.uint32]) -> "array[int]":
    """Return values as what a bitmap takes as a whole; it would ask for others one by one."""
    if isinstance(values, np.ndarray):
        return array("I", values.astype(np.uint32, copy=False).tobytes())
    return array("I", values)


class _Cursor:
    """Reads one part after the other and never past the end."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def skip(self, size: int) -> memoryview:
        """Return the next bytes."""
        end = self._at + size
        if end > len(self._data):
            raise CorruptError(f"the bitmap ends at {len(self._data)}, inside a part up to {end}")
        part = self._data[self._at : end]
        self._at = end
        return part

    def numbers(self, form: str, count: int) -> npt.NDArray[np.unsignedinteger]:
        """Return the next numbers."""
        kind = np.dtype(form)
        return np.frombuffer(self.skip(kind.itemsize * count), kind)


def _header(cursor: _Cursor) -> tuple[npt.NDArray[np.uint8], int]:
    cookie = int(cursor.numbers("<u4", 1)[0])
    none = np.empty(0, np.uint8)
    if cookie == _PLAIN:
        count = int(cursor.numbers("<u4", 1)[0])
        if count > 1 << 16:
            raise CorruptError(f"a bitmap has at most 65536 containers, found {count}")
        return none, count
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        return np.frombuffer(cursor.skip((count + 7) // 8), np.uint8), count
    raise CorruptError(f"a roaring bitmap begins with 12346 or 12347, found {cookie}")


def _container(cursor: _Cursor, size: int, *, is_run: bool) -> Values:
    if is_run:
        return _runs(cursor, size)
    if size > _MAX_ARRAY:
        bits = np.unpackbits(np.frombuffer(cursor.skip(_BITMAP_BYTES), np.uint8), bitorder="little")
        values = np.flatnonzero(bits).astype(np.uint32)
        if values.size != size:
            raise CorruptError(f"a bitmap container says {size} values and holds {values.size}")
        return values
    values = cursor.numbers("<u2", size).astype(np.uint32)
    if (values[1:] <= values[:-1]).any():
        raise CorruptError("the values of a bitmap container are not in ascending order")
    return values


def _runs(cursor: _Cursor, size: int) -> Values:
    count = int(cursor.numbers("<u2", 1)[0])
    pairs = cursor.numbers("<u2", 2 * count).reshape(count, 2).astype(np.int64)
    starts, lengths = pairs[:, 0], pairs[:, 1] + 1
    ends = starts + lengths
    if (
        int(lengths.sum()) != size
        or (starts[1:] < ends[:-1]).any()
        or (count and int(ends[-1]) > 1 << 16)
    ):
        raise CorruptError(f"the runs of a bitmap container do not make up its {size} values")
    firsts = np.cumsum(lengths) - lengths
    values: Values = (np.arange(size) + np.repeat(starts - firsts, lengths)).astype(np.uint32)
    return values
