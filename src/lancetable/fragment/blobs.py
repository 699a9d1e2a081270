"""Blob columns of a fragment: as bytes, or as files that are read when asked."""

import io
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lancetable.errors import InputError, SchemaError
from lancetable.file.read.payloads import PayloadFinder, PayloadPlaces, with_bytes
from lancetable.format.schema.model import Field
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.store import ByteRange, ReadableFile, Store

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class BlobFile(io.RawIOBase):
    """A read-only, seekable file over a range of a larger one."""

    def __init__(self, file: ReadableFile, position: int, size: int) -> None:
        super().__init__()
        self._file = file
        self._start = position
        self._size = size
        self._position = 0

    def __repr__(self) -> str:
        return f"<BlobFile of {self._size} bytes{', closed' if self.closed else ''}>"

    def size(self) -> int:
        """Return the number of bytes."""
        return self._size

    def readable(self) -> bool:
        """Say that the file can be read."""
        return True

    def seekable(self) -> bool:
        """Say that the position can be moved."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        self._checkClosed()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to a position counted from the start, the current position or the end."""
        self._checkClosed()
        origins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}
        if whence not in origins or origins[whence] + offset < 0:
            raise InputError(f"a blob has no position {offset} from {whence}")
        self._position = origins[whence] + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, or all that are left."""
        self._checkClosed()
        return bytes(self._next(self._size if size is None or size < 0 else size))

    def readall(self) -> bytes:
        """Return all bytes that are left."""
        return self.read()

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill a buffer and return the number of bytes."""
        self._checkClosed()
        target = memoryview(buffer).cast("B")
        part = self._next(len(target))
        target[: len(part)] = part
        return len(part)

    def _next(self, size: int) -> memoryview:
        start = min(self._position, self._size)
        stop = min(start + size, self._size)
        self._position = max(self._position, stop)
        if start == stop:
            return memoryview(b"")
        return self._file.read_ranges([ByteRange(self._start + start, self._start + stop)])[0]


def _finder(opened: OpenFragment, field: Field, *, allow_external: bool) -> PayloadFinder:
    """Return what finds the payloads of one blob column of a fragment."""
    number = _owner(opened, field)
    source = opened.data_files.source
    store, path = source.data_file_place(opened.files[number])

    def data_file() -> ReadableFile:
        """Return the data file of the rows; one that is no Lance file gives no bytes."""
        return opened.file(number).file

    def external(base_id: int, uri: str) -> tuple[Store, str]:
        return source.blob_place(base_id, uri, is_trusted=allow_external)

    return PayloadFinder(field, PayloadPlaces(store, path, data_file, external))


def _owner(opened: OpenFragment, field: Field) -> int:
    """Return the number of the data file that holds a column."""
    ids = {part.id for part in field.walk()}
    for number, data_file in enumerate(opened.files):
        if not ids.isdisjoint(data_file.fields):
            return number
    raise SchemaError(f"fragment {opened.fragment.id} stores no column {field.name!r}")


def blob_files(
    opened: OpenFragment, field: Field, descriptors: pa.Array, *, allow_external: bool
) -> list[BlobFile | None]:
    """Return a file for each descriptor, None for a missing value; nothing is read yet."""
    if not len(descriptors) or descriptors.null_count == len(descriptors):
        return [None] * len(descriptors)
    finder = _finder(opened, field, allow_external=allow_external)
    return [
        None if place is None else BlobFile(place.file, place.position, place.size)
        for place in finder.find(descriptors)
    ]


def read_payloads(opened: OpenFragment, field: Field, chunks: Sequence[pa.Array]) -> list[pa.Array]:
    """Replace the descriptors inside a column by the bytes they point at."""

    def finder(part: Field) -> PayloadFinder:
        return _finder(opened, part, allow_external=False)

    return [with_bytes(field, chunk, finder) for chunk in chunks]


def blob_field(fields: Iterable[Field]) -> Field:
    """Return the last field of a path after checking that it is a blob column.

    Raises:
        SchemaError: it is not.
    """
    last = list(fields)[-1]
    if not last.is_blob:
        raise SchemaError(f"column {last.name!r} is not a blob column; read it with scan or take")
    return last
