"""The container of a data file: footer, offset tables and column metadata.

| from the end | type | content |
|---|---|---|
| -40 | u64 | position of the first column metadata |
| -32 | u64 | position of the column metadata offset table (u64 position, u64 size each) |
| -24 | u64 | position of the global buffer offset table (u64 position, u64 size each) |
| -16 | u32 | number of global buffers |
| -12 | u32 | number of columns |
| -8 | u16, u16 | version: (2, 1), (2, 2); (0, 3) or (2, 0) stands for 2.0 |
| -4 | 4 bytes | ``LANC`` |
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.file.model import READABLE, V2_0, FileVersion, Footer, WrittenColumn, WrittenPage
from lancetable.format.encoding import codec as encodings
from lancetable.format.encoding.base import Column, Page, PageBuffer
from lancetable.format.encoding.v20 import codec as encodings20
from lancetable.format.limits import read_limits
from lancetable.format.proto import encodings20_pb2, file2_pb2, file_pb2
from lancetable.format.schema.codec import NO_ID, encode_fields, encode_metadata
from lancetable.format.schema.model import BLOB_KEY, PACKED_KEYS, Field, Schema

MAGIC = b"LANC"
FOOTER_BYTES = 40
MOST_ROWS = 1 << 32
SMALL_COLUMN = 1024
"""Metadata of up to so many bytes is remembered."""
_FOOTER = struct.Struct("<QQQIIHH4s")
_PLACE = struct.Struct("<QQ")
_LAYOUT = "PageLayout"
_ARRAY = "ArrayEncoding"


def decode_footer(tail: memoryview, size: int) -> Footer:
    """Decode the footer of a file of ``size`` bytes from its last bytes.

    Raises:
        CorruptError: the file is no data file, or is cut off.
        UnsupportedError: it has a version this library does not read.
    """
    if size < FOOTER_BYTES or len(tail) < FOOTER_BYTES:
        raise CorruptError(f"a data file has at least {FOOTER_BYTES} bytes, this one has {size}")
    *places, buffers, columns, major, minor, magic = _FOOTER.unpack(tail[-FOOTER_BYTES:])
    if magic != MAGIC:
        raise CorruptError(f"a data file ends with {MAGIC!r}, this one with {bytes(magic)!r}")
    version = readable_version(major, minor)
    column_start, column_table, buffer_table = places
    end = size - FOOTER_BYTES
    if not (
        column_start <= column_table
        and column_table + columns * 16 <= buffer_table
        and buffer_table + buffers * 16 <= end
        and buffers >= 1
    ):
        raise CorruptError("the footer points outside the file")
    return Footer(column_start, column_table, buffer_table, buffers, columns, version)


@lru_cache(maxsize=64)
def readable_version(major: int, minor: int) -> FileVersion:
    """Return the version that two numbers of a footer or a manifest stand for."""
    version = V2_0 if (major, minor) == (0, 3) else FileVersion(major, minor)
    if version not in READABLE:
        raise UnsupportedError(
            f"data file version {version} is not supported; versions 0.1, 2.0, 2.1 and 2.2 are"
        )
    return version


def decode_place(entry: memoryview, limit: int) -> tuple[int, int]:
    """Decode an entry of an offset table: where a section starts and ends, below ``limit``."""
    position, size = _PLACE.unpack(entry)
    if position + size > limit:
        raise CorruptError(f"a section of {size} bytes at {position} is outside the file")
    read_limits().check_open(size)
    return position, position + size


@lru_cache(maxsize=256)
def decode_rows(descriptor: bytes) -> int:
    """Return the number of rows from a file descriptor, without its schema.

    Small files of one table have the same descriptor, hence the cache.
    """
    try:
        rows = int(file_pb2.FileDescriptor.FromString(descriptor).length)
    except DecodeError as cause:
        raise CorruptError("the file descriptor cannot be parsed") from cause
    if rows > MOST_ROWS:
        raise CorruptError(f"a data file claims {rows} rows, row addresses reach {MOST_ROWS}")
    return rows


def decode_column(
    data: memoryview, version: FileVersion, limit: int, fetch: Callable[[int, int], bytes]
) -> Column:
    """Decode the metadata of one column.

    Args:
        data: the message.
        version: the version of the file.
        limit: no buffer may reach beyond this position.
        fetch: returns the bytes between two positions of the file, for pages that are described
            elsewhere in it.

    Raises:
        CorruptError: the message is damaged.
        UnsupportedError: a page uses an encoding of a later version.
    """
    if len(data) <= SMALL_COLUMN:
        try:
            return _small_column(bytes(data), version, limit)
        except _ElsewhereError:
            pass
    return _decode_column(data, version, limit, fetch)


class _ElsewhereError(Exception):
    """The bytes at hand do not tell everything."""


def _elsewhere(_start: int, _stop: int) -> bytes:
    raise _ElsewhereError


@lru_cache(maxsize=4096)
def _small_column(data: bytes, version: FileVersion, limit: int) -> Column:
    """Decode the metadata of a column that tells everything itself.

    Small files of one table often differ in their values alone, hence the cache.
    """
    return _decode_column(data, version, limit, _elsewhere)


def _decode_column(
    data: bytes | memoryview,
    version: FileVersion,
    limit: int,
    fetch: Callable[[int, int], bytes],
) -> Column:
    message = file2_pb2.ColumnMetadata()
    try:
        message.ParseFromString(data)
    except DecodeError as cause:
        raise CorruptError("the metadata of a column cannot be parsed") from cause
    describe = _array_encoding if version == V2_0 else _page_layout
    pages: list[Page] = []
    first = 0
    for part in message.pages:
        rows = part.length
        pages.append(
            Page(
                rows,
                first,
                _buffers(part, limit),
                describe(_description(part.encoding, limit, fetch)),
            )
        )
        first += rows
    if first > MOST_ROWS << 16:
        raise CorruptError(f"a column claims {first} rows")
    is_blob = version == V2_0 and _is_blob(message.encoding)
    return Column(tuple(pages), first, is_blob)


def decode_stored_pages(
    data: memoryview, version: FileVersion, limit: int, fetch: Callable[[int, int], bytes]
) -> list[WrittenPage] | None:
    """Return the pages of one column as they are stored, their descriptions not looked into.

    ``None`` when the column keeps bytes outside of its pages.

    Raises:
        CorruptError: the message is damaged.
    """
    message = file2_pb2.ColumnMetadata()
    try:
        message.ParseFromString(data)
    except DecodeError as cause:
        raise CorruptError("the metadata of a column cannot be parsed") from cause
    if len(message.buffer_offsets):
        return None
    kind = _ARRAY if version == V2_0 else _LAYOUT
    pages: list[WrittenPage] = []
    first = 0
    for part in message.pages:
        description = _unwrapped(_description(part.encoding, limit, fetch), kind)
        buffers = tuple((one.position, one.size) for one in _buffers(part, limit))
        pages.append(WrittenPage(part.length, first, buffers, description))
        first += part.length
    return pages


def _buffers(part: Any, limit: int) -> tuple[PageBuffer, ...]:
    offsets, sizes = part.buffer_offsets, part.buffer_sizes
    if len(offsets) != len(sizes):
        raise CorruptError(f"a page has {len(offsets)} buffer offsets and {len(sizes)} sizes")
    buffers = tuple(map(PageBuffer, offsets, sizes))
    for position, size in buffers:
        if position + size > limit:
            raise CorruptError(f"a buffer of {size} bytes at {position} is outside the file")
    return buffers


def _description(encoding: Any, limit: int, fetch: Callable[[int, int], bytes]) -> bytes:
    kind = encoding.WhichOneof("location")
    if kind == "direct":
        return bytes(encoding.direct.encoding)
    if kind == "indirect":
        start = encoding.indirect.buffer_location
        stop = start + encoding.indirect.buffer_length
        if stop <= limit:
            read_limits().check_open(stop - start)
            return fetch(start, stop)
    raise CorruptError("a page does not say how it is encoded")


@lru_cache(maxsize=4096)
def _page_layout(data: bytes) -> object:
    return encodings.decode_layout(_unwrapped(data, _LAYOUT))


@lru_cache(maxsize=4096)
def _array_encoding(data: bytes) -> object:
    return encodings20.decode(_unwrapped(data, _ARRAY))


def _unwrapped(data: bytes, expected: str) -> bytes:
    """Return the message inside an Any, whose type must be the expected one."""
    message = file2_pb2.Any()
    try:
        message.ParseFromString(data)
    except DecodeError as cause:
        raise CorruptError("the description of a page cannot be parsed") from cause
    name = message.type_url.rpartition("/")[2]
    if name.rpartition(".")[2] == expected:
        return bytes(message.value)
    if name == "lance.encodings23.PlanarLayout":
        raise UnsupportedError("the page layout 'planar' of file version 2.3 is not supported")
    raise CorruptError(f"a page is described by {name!r}, expected {expected!r}")


def _is_blob(encoding: Any) -> bool:
    if encoding.WhichOneof("location") != "direct":
        return False
    message = encodings20_pb2.ColumnEncoding()
    try:
        message.ParseFromString(_unwrapped(encoding.direct.encoding, "ColumnEncoding"))
    except DecodeError as cause:
        raise CorruptError("the encoding of a column cannot be parsed") from cause
    return bool(message.WhichOneof("column_encoding") == "blob")


def encode_tail(
    schema: Schema,
    columns: Sequence[WrittenColumn],
    rows: int,
    version: FileVersion,
    position: int,
    buffers: Sequence[tuple[int, int]] = (),
) -> bytes:
    """Return everything behind the pages: schema, column metadata, tables, footer.

    Args:
        schema: the schema of the file.
        columns: every column with its pages.
        rows: number of rows.
        version: the version of the file.
        position: where the tail starts; a multiple of 64.
        buffers: position and size of further global buffers.
    """
    # The parts of a message one behind the other are the message.
    descriptor = _schema_part(schema) + file_pb2.FileDescriptor(length=rows).SerializeToString()
    parts = [descriptor]
    column_start = place = position + len(descriptor)
    table: list[int] = []
    for column in columns:
        metadata = _encode_column(column, version)
        table += (place, len(metadata))
        parts.append(metadata)
        place += len(metadata)
    buffer_table = place + 8 * len(table)
    numbers = [*table, position, len(descriptor), *chain.from_iterable(buffers)]
    parts.append(struct.pack(f"<{len(numbers)}Q", *numbers))
    major, minor = (0, 3) if version == V2_0 else version
    parts.append(
        _FOOTER.pack(
            column_start,
            place,
            buffer_table,
            1 + len(buffers),
            len(columns),
            major,
            minor,
            MAGIC,
        )
    )
    return b"".join(parts)


@lru_cache(maxsize=128)
def _schema_part(schema: Schema) -> bytes:
    described = file_pb2.Schema(
        fields=_encode_fields(schema), metadata=encode_metadata(schema.metadata)
    )
    return bytes(file_pb2.FileDescriptor(schema=described).SerializeToString())


def _encode_fields(schema: Schema) -> list[Any]:
    """Return the fields of a file; the parts of a blob have no place in the tree."""
    fields = tuple(_as_filed(field) for field in schema.fields)
    messages = encode_fields(Schema(fields))
    for message in messages:
        if message.id == NO_ID:
            message.parent_id = NO_ID
    return messages


def _as_filed(field: Field) -> Field:
    if field.is_blob_v2:
        return Field(field.name, field.id, "struct", field.nullable, _BLOB_PARTS, _BLOB_METADATA)
    if not field.children:
        return field
    return field._replace(children=tuple(_as_filed(child) for child in field.children))


def _encode_column(column: WrittenColumn, version: FileVersion) -> bytes:
    pages, is_blob = column
    if len(pages) == 1:
        return _encode_page_alone(pages[0], is_blob, version)
    return _encode_pages(pages, version, is_blob=is_blob)


@lru_cache(maxsize=512)
def _encode_page_alone(page: WrittenPage, is_blob: bool, version: FileVersion) -> bytes:  # noqa: FBT001
    """Return the metadata of a column of one page; small files of a table often have the same."""
    return _encode_pages([page], version, is_blob=is_blob)


def _encode_pages(pages: Sequence[WrittenPage], version: FileVersion, *, is_blob: bool) -> bytes:
    is_old = version == V2_0
    type_url = _ARRAY_URL if is_old else _LAYOUT_URL
    messages = [
        file2_pb2.ColumnMetadata.Page(
            length=page.rows,
            priority=0 if is_old else page.first_row,
            buffer_offsets=[position for position, _ in page.buffers],
            buffer_sizes=[size for _, size in page.buffers],
            encoding=_direct(_wrapped(type_url, page.description)),
        )
        for page in pages
    ]
    own = _direct(_BLOB_COLUMN if is_blob and is_old else _PLAIN_COLUMN)
    return bytes(file2_pb2.ColumnMetadata(encoding=own, pages=messages).SerializeToString())


@lru_cache(maxsize=1024)
def _direct(encoding: bytes) -> Any:
    return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=encoding))


def _wrapped(type_url: str, value: bytes) -> bytes:
    return bytes(file2_pb2.Any(type_url=type_url, value=value).SerializeToString())


_LAYOUT_URL = "/lance.encodings21.PageLayout"
_ARRAY_URL = "/lance.encodings.ArrayEncoding"
_COLUMN_URL = "/lance.encodings.ColumnEncoding"
_PLAIN = encodings20_pb2.ColumnEncoding(values={})
_BLOB = encodings20_pb2.ColumnEncoding(blob=encodings20_pb2.Blob(inner=_PLAIN))
_PLAIN_COLUMN = _wrapped(_COLUMN_URL, _PLAIN.SerializeToString())
_BLOB_COLUMN = _wrapped(_COLUMN_URL, _BLOB.SerializeToString())
_BLOB_METADATA = {PACKED_KEYS[0]: "true", BLOB_KEY: "true"}
_BLOB_PARTS = tuple(
    Field(name, NO_ID, text, nullable=False)
    for name, text in (
        ("kind", "uint8"),
        ("position", "uint64"),
        ("size", "uint64"),
        ("blob_id", "uint32"),
        ("blob_uri", "string"),
    )
)
