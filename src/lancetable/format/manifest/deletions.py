"""Which rows does a deletion file delete.

An ``.arrow`` file is an Arrow IPC file with one column of row offsets in any order; a ``.bin``
file is a roaring bitmap. Both hold all deleted rows of their fragment.
"""

import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.manifest.model import DeletionKind
from lancetable.format.manifest.roaring import decode_bitmap

Offsets: TypeAlias = npt.NDArray[np.uint32]

_MAGIC = b"ARROW1\0\0"
_MAX_PADDING = 64
_SMALL = 1 << 20
_EXPANSION = 256


def decode_deletions(
    data: bytes, kind: DeletionKind, *, deleted_rows: int = 0, physical_rows: int = 0
) -> Offsets:
    """Return the deleted offsets in ascending order; a number of rows of 0 is unknown.

    Raises:
        CorruptError: the bytes are damaged, or do not fit the numbers of the manifest.
    """
    most = deleted_rows or physical_rows or max(_SMALL, _EXPANSION * len(data))
    if kind is DeletionKind.BITMAP:
        offsets = decode_bitmap(data, most=most)
    else:
        offsets = np.sort(_decode_arrow(data, most))
        if (offsets[1:] == offsets[:-1]).any():
            raise CorruptError("a row is deleted twice")
    if deleted_rows and offsets.size != deleted_rows:
        raise CorruptError(
            f"the manifest says {deleted_rows} deleted rows, the file has {offsets.size}"
        )
    if physical_rows and offsets.size and int(offsets[-1]) >= physical_rows:
        raise CorruptError(
            f"row {int(offsets[-1])} is deleted, but the fragment has {physical_rows} rows"
        )
    return offsets


def _decode_arrow(data: bytes, most: int) -> Offsets:
    if data[:8] != _MAGIC:
        raise CorruptError("a deletion file begins with the Arrow file signature")
    start = len(_MAGIC)
    while start < _MAX_PADDING and data[start : start + 8] == bytes(8):
        start += 8
    try:
        return _decode_stream(pa.BufferReader(pa.py_buffer(data)[start:]), most)
    except (pa.ArrowException, ValueError, EOFError, OSError, struct.error, MemoryError) as cause:
        raise CorruptError(f"the deletion file is no readable Arrow file: {cause}") from cause


def _decode_stream(source: pa.BufferReader, most: int) -> Offsets:
    """Read message by message, so that each is checked before it is decompressed."""
    schema = pa.ipc.read_schema(pa.ipc.read_message(source))
    if len(schema) != 1 or schema.field(0).type not in (pa.uint32(), pa.int32()):
        raise CorruptError(f"a deletion file has one column of row offsets, found {schema}")
    parts: list[Offsets] = []
    left = most
    while True:
        try:
            message = pa.ipc.read_message(source)
        except EOFError:
            break
        if message.type != "record batch":
            raise CorruptError(f"a deletion file has no {message.type} message")
        left -= _check_sizes(message, left)
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
        column = batch.column(0)
        if column.null_count:
            raise CorruptError("a deleted row is null")
        parts.append(_unsigned(column.to_numpy()))
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def _unsigned(values: npt.NDArray[np.integer]) -> Offsets:
    if values.dtype != np.uint32 and values.size and int(values.min()) < 0:
        raise CorruptError(f"row {int(values.min())} cannot be deleted")
    return values.astype(np.uint32, copy=False)


def _check_sizes(message: pa.ipc.Message, most: int) -> int:
    """Return the rows of a batch after making sure that its buffers expand to no more than that.

    A compressed buffer begins with its expanded size (i64, -1 for stored as it is).
    """
    batch = _Table.root(message.metadata.to_pybytes()).table(2)
    rows = batch.number("<q", 0)
    if not 0 <= rows <= most:
        raise CorruptError(f"a deletion file holds {rows} rows, at most {most} can be")
    if batch.has(3):
        body = memoryview(message.body)
        for offset, length in batch.pairs(2):
            if length < 0 or offset < 0 or offset + length > len(body):
                raise CorruptError("a buffer of the deletion file lies outside the file")
            if length >= 8 and struct.unpack_from("<q", body, offset)[0] > 4 * rows + 64:
                raise CorruptError(f"a buffer of the deletion file expands beyond {rows} rows")
    return int(rows)


class _Table:
    """One table of a flatbuffer, the encoding of Arrow's message headers.

    A table starts with the distance back to a list of u16 field distances, itself beginning with
    its own size and the table's.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - struct.unpack_from("<i", data, at)[0]
        if not 0 <= self._fields < len(data):
            raise CorruptError("a message header of the deletion file is damaged")

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _place(self, number: int) -> int:
        slot = 4 + 2 * number
        (size,) = struct.unpack_from("<H", self._data, self._fields)
        if slot >= size:
            return 0
        (distance,) = struct.unpack_from("<H", self._data, self._fields + slot)
        return self._at + int(distance) if distance else 0

    def has(self, number: int) -> bool:
        return self._place(number) != 0

    def number(self, form: str, number: int) -> int:
        place = self._place(number)
        return int(struct.unpack_from(form, self._data, place)[0]) if place else 0

    def table(self, number: int) -> "_Table":
        place = self._place(number)
        return _Table(self._data, place + struct.unpack_from("<I", self._data, place)[0])

    def pairs(self, number: int) -> list[tuple[int, int]]:
        place = self._place(number)
        if not place:
            return []
        start = place + struct.unpack_from("<I", self._data, place)[0]
        (count,) = struct.unpack_from("<I", self._data, start)
        if count > len(self._data) // 16:
            raise CorruptError("a message header of the deletion file is damaged")
        flat = struct.unpack_from(f"<{2 * count}q", self._data, start + 4)
        return list(zip(flat[::2], flat[1::2], strict=True))
