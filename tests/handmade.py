"""Data files put together by hand, byte by byte, around pages that a test spells out."""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from lancetable.file import DataFileHandle, FileReader
from lancetable.format.proto import encodings21_pb2, file2_pb2, file_pb2
from lancetable.store import MemoryFile

VERSIONS = {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}
Layout: TypeAlias = encodings21_pb2.PageLayout
Compression: TypeAlias = encodings21_pb2.CompressiveEncoding
Description: TypeAlias = Any
"""A page layout, or the array encoding of a 2.0 page."""


class Column(NamedTuple):
    """One field of the schema; ``parent`` is the number of the field that holds it."""

    name: str
    logical_type: str
    parent: int = -1
    nullable: bool = True
    metadata: Mapping[str, bytes] = MappingProxyType({})


class Page(NamedTuple):
    """A page: how many rows, how encoded, and its buffers."""

    rows: int
    description: Description
    buffers: Sequence[bytes] = ()


def data_file(
    version: str, fields: Sequence[Column], columns: Sequence[Sequence[Page]], rows: int
) -> bytes:
    """Return a whole file."""
    body = bytearray()
    metadata = [_column(body, pages) for pages in columns]
    descriptor = file_pb2.FileDescriptor(length=rows)
    for number, field in enumerate(fields):
        descriptor.schema.fields.add(
            name=field.name,
            id=number,
            parent_id=field.parent,
            logical_type=field.logical_type,
            nullable=field.nullable,
            metadata=dict(field.metadata),
        )
    message = descriptor.SerializeToString()
    start = _aligned(body)
    body += message
    places = []
    first = len(body)
    for column in metadata:
        places.append((len(body), len(column)))
        body += column
    table = len(body)
    for place in places:
        body += struct.pack("<QQ", *place)
    buffers = len(body)
    body += struct.pack("<QQ", start, len(message))
    numbers = (first, table, buffers, 1, len(columns), *VERSIONS[version])
    return bytes(body) + struct.pack("<QQQIIHH", *numbers) + b"LANC"


def _aligned(body: bytearray) -> int:
    body += b"H" * (-len(body) % 64)
    return len(body)


def _column(body: bytearray, pages: Sequence[Page]) -> bytes:
    column = file2_pb2.ColumnMetadata()
    for page in pages:
        made = column.pages.add(length=page.rows)
        for buffer in page.buffers:
            made.buffer_offsets.append(_aligned(body))
            made.buffer_sizes.append(len(buffer))
            body += buffer
        kind = page.description.DESCRIPTOR.name
        name = f"lance.encodings21.{kind}" if kind == "PageLayout" else f"lance.encodings.{kind}"
        wrapped = file2_pb2.Any(type_url=f"/{name}", value=page.description.SerializeToString())
        made.encoding.direct.encoding = wrapped.SerializeToString()
    message: bytes = column.SerializeToString()
    return message


def handle(data: bytes) -> DataFileHandle:
    """Open a file in memory."""
    return DataFileHandle(FileReader.open(MemoryFile(data), "handmade.lance"))


def flat(bits: int) -> Compression:
    """Describe values of so many bits each."""
    return Compression(flat={"bits_per_value": bits})


def variable(bits: int = 32) -> Compression:
    """Describe values of any length between offsets of so many bits."""
    return Compression(variable={"offsets": flat(bits)})
