"""Read numbers from a one-column Arrow IPC file.

pyarrow trusts the headers it reads: a damaged one can crash the process, and a small buffer may
claim to expand to any size. A deletion file is simple enough to be read without it.

=================  =============================================================================
part               meaning
=================  =============================================================================
``ARROW1``         padded with zeros to 8 or 64 bytes
schema message     ``FFFFFFFF``, length (i32), header; old writers left the marker out
batch messages     the same, then the body: buffers at the offsets the header gives
end                a message of length 0, the footer, ``ARROW1``; all of it repeats what came
=================  =============================================================================

Headers are flatbuffers. A compressed buffer begins with its expanded size (i64), -1 for a buffer
that is stored as it is.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, ShortageError, UnsupportedError

Offsets: TypeAlias = npt.NDArray[np.uint32]

_MAGIC = b"ARROW1\0\0"
_MAX_PADDING = 64
_MARKER = 0xFFFFFFFF
_SCHEMA, _BATCH = 1, 3
_INT = 2
_CODECS = {0: "lz4", 1: "zstd"}
_STORED = -1
_ROUNDING = 64


class _Message(NamedTuple):
    kind: int
    header: "_Table"
    body: memoryview


def decode_column(data: bytes, *, most: int) -> Offsets:
    """Return the values of the only column; more than ``most`` are refused before they are made.

    Raises:
        CorruptError: the bytes are not such a file.
        UnsupportedError: a buffer is compressed in an unknown way.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        raise CorruptError("the file does not begin with the signature of an Arrow file")
    try:
        messages = _messages(data)
        first = next(messages, None)
        if first is None or first.kind != _SCHEMA:
            raise CorruptError("the file does not begin with a schema")
        form = _check_schema(first.header)
        parts: list[Offsets] = []
        left = most
        for message in messages:
            if message.kind != _BATCH:
                raise CorruptError(f"the file has a message of kind {message.kind}")
            parts.append(_batch(message, form, left))
            left -= parts[-1].size
    except struct.error:
        raise CorruptError("a message header points outside the file") from None
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def _messages(data: bytes) -> Iterator[_Message]:
    view = memoryview(data)
    at = len(_MAGIC)
    while at < _MAX_PADDING and data[at : at + 8] == bytes(8):
        at += 8
    while True:
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        if length == _MARKER:
            (length,) = struct.unpack_from("<I", data, at)
            at += 4
        if not length:
            return
        header = _Table.root(bytes(view[at : at + length]))
        body = header.number("<q", 3)
        at += length
        if not 0 <= body <= len(data) - at:
            raise CorruptError(f"a message body of {body} bytes at {at} passes the end of the file")
        yield _Message(header.number("<B", 1), header.table(2), view[at : at + body])
        at += body


def _check_schema(schema: "_Table") -> str:
    fields = schema.tables(1)
    kind = fields[0].number("<B", 2) if len(fields) == 1 else 0
    if kind != _INT or schema.number("<h", 0) != 0:
        raise CorruptError(f"one column of row offsets is expected, found {len(fields)} columns")
    integer = fields[0].table(3)
    if integer.number("<i", 0) != 32:
        raise CorruptError("row offsets of 32 bits are expected")
    return "<i4" if integer.number("<B", 1) else "<u4"


def _batch(message: _Message, form: str, most: int) -> Offsets:
    header = message.header
    rows = header.number("<q", 0)
    if not 0 <= rows <= most:
        raise CorruptError(f"the file holds {rows} rows, at most {most} can be")
    nodes, buffers = header.pairs(1), header.pairs(2)
    if len(nodes) != 1 or nodes[0][0] != rows or len(buffers) != 2:
        raise CorruptError("a batch does not have the parts of one column")
    if nodes[0][1]:
        raise CorruptError("a row offset is null")
    offset, length = buffers[1]
    if offset < 0 or length < 0 or offset + length > len(message.body):
        raise CorruptError("a buffer lies outside its message")
    content = message.body[offset : offset + length]
    if header.has(3) and rows:
        content = _expand(content, header.table(3).number("<b", 0), 4 * rows)
    if len(content) < 4 * rows:
        raise CorruptError(f"a buffer of {len(content)} bytes is too short for {rows} rows")
    values = np.frombuffer(content[: 4 * rows], form)
    if form == "<i4" and rows and int(values.min()) < 0:
        raise CorruptError(f"row {int(values.min())} cannot be")
    return values.astype(np.uint32)


def _expand(content: memoryview, codec: int, needed: int) -> memoryview:
    if codec not in _CODECS:
        raise UnsupportedError(f"buffers compressed by codec {codec} cannot be read")
    (size,) = struct.unpack_from("<q", content)
    packed = content[8:]
    if size == _STORED:
        return packed
    if not needed <= size <= needed + _ROUNDING:
        raise CorruptError(f"a buffer for {needed} bytes claims to expand to {size}")
    try:
        if _CODECS[codec] == "zstd":  # which says when it is less; lz4 leaves the rest undefined
            return memoryview(pa.decompress(packed, size, "zstd"))
        stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(packed)), _CODECS[codec])
        return memoryview(stream.read(size))
    except MemoryError as cause:
        raise ShortageError(f"not enough memory to expand {size} bytes: {cause}") from cause
    except (pa.ArrowException, OSError) as cause:
        raise CorruptError(f"a compressed buffer is damaged: {cause}") from cause


class _Table:
    """One table of a flatbuffer.

    It begins with the distance back to a list of u16: the list's size, the table's, and for each
    field its distance from the table, 0 for one left out. Every access is checked by ``struct``.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - self._read("<i", at)
        if self._fields < 0:
            raise CorruptError("a message header points outside the file")

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def _read(self, form: str, at: int) -> int:
        return int(struct.unpack_from(form, self._data, at)[0])

    def _place(self, field: int) -> int:
        slot = 4 + 2 * field
        if slot >= self._read("<H", self._fields):
            return 0
        distance = self._read("<H", self._fields + slot)
        return self._at + distance if distance else 0

    def _target(self, field: int) -> int:
        place = self._place(field)
        if not place:
            raise CorruptError("a message header lacks a part")
        return place + self._read("<I", place)

    def has(self, field: int) -> bool:
        return self._place(field) != 0

    def number(self, form: str, field: int) -> int:
        place = self._place(field)
        return self._read(form, place) if place else 0

    def table(self, field: int) -> "_Table":
        return _Table(self._data, self._target(field))

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        start = self._target(field)
        count = self._read("<I", start)
        if count * width > len(self._data):
            raise CorruptError("a message header is too short for its parts")
        return start + 4, count

    def tables(self, field: int) -> list["_Table"]:
        start, count = self._vector(field, 4)
        places = range(start, start + 4 * count, 4)
        return [_Table(self._data, place + self._read("<I", place)) for place in places]

    def pairs(self, field: int) -> list[tuple[int, int]]:
        start, count = self._vector(field, 16)
        flat = struct.unpack_from(f"<{2 * count}q", self._data, start)
        return list(zip(flat[::2], flat[1::2], strict=True))
