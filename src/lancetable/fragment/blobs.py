"""Blob columns: from descriptors to the payloads they point at.

A first-generation descriptor is a position and a size in the data file of the row. One of the
second generation also says where the bytes are:

====  =========  ==================================================================
kind  name       place of the bytes
====  =========  ==================================================================
0     inline     the data file itself
1     packed     ``{data file without ending}/{blob id in reversed binary}.blob``
2     dedicated  the same, one payload per file
3     external   ``blob_uri``: absolute (blob id 0) or below the base with that id
====  =========  ==================================================================
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, SchemaError, UnsupportedError
from lancetable.file.reader import FileReader
from lancetable.format.schema.model import Field
from lancetable.fragment.blobfile import BlobFile
from lancetable.fragment.opened import OpenFragment
from lancetable.store import ByteRange, ReadableFile, Store

INLINE, PACKED, DEDICATED, EXTERNAL = range(4)


class Payload(NamedTuple):
    """Where one payload is."""

    file: ReadableFile
    position: int
    size: int


class BlobSource:
    """The payloads of one blob column of one fragment; files are opened once."""

    __slots__ = ("_allow_external", "_files", "_is_v2", "_number", "_opened", "_path", "_store")

    def __init__(self, opened: OpenFragment, field: Field, *, allow_external: bool) -> None:
        self._opened = opened
        self._is_v2 = field.is_blob_v2
        self._allow_external = allow_external
        self._number = _owner(opened, field)
        owner = opened.files[self._number]
        self._store, self._path = opened.data_files.source.data_file_place(owner)
        self._files: dict[str, ReadableFile] = {}

    def payloads(self, descriptors: pa.Array) -> list[Payload | None]:
        """Return where the payload of each row is; None for a missing one.

        Raises:
            CorruptError: a descriptor points outside its file or is of no known kind.
            InputError: a descriptor points outside of the table, and that was not allowed.
        """
        read = self._second if self._is_v2 else self._first
        return [None if row is None else read(row) for row in descriptors.to_pylist()]

    def _first(self, row: dict[str, Any]) -> Payload | None:
        position, size = row["position"], row["size"]
        # A missing value of the first generation has no bytes but a position.
        if position is None or size is None or (size == 0 and position != 0):
            return None
        return self._within(self._data_file(), self._path, position, size)

    def _second(self, row: dict[str, Any]) -> Payload | None:
        kind, uri = row["kind"], row["blob_uri"] or ""
        position, size, blob_id = row["position"] or 0, row["size"] or 0, row["blob_id"] or 0
        if kind is None:
            return None
        if kind == INLINE:
            return self._within(self._data_file(), self._path, position, size)
        if kind in {PACKED, DEDICATED}:
            path = sidecar_path(self._path, blob_id)
            return self._within(self._file(self._store, path), path, position, size)
        if kind == EXTERNAL:
            file = self._external(blob_id, uri)
            return self._within(file, uri, position, size or file.size - position)
        raise UnsupportedError(f"{self._path}: blobs of kind {kind} cannot be read")

    def _within(self, file: ReadableFile, path: str, position: int, size: int) -> Payload:
        if position < 0 or size < 0 or position + size > file.size:
            raise CorruptError(
                f"a blob is said to be bytes {position} to {position + size}"
                f" of a file of {file.size} bytes",
                path=path,
            )
        return Payload(file, position, size)

    def _file(self, store: Store, path: str) -> ReadableFile:
        key = f"{store.root}/{path}"
        file = self._files.get(key)
        if file is None:
            file = self._files[key] = store.open(path)
        return file

    def _data_file(self) -> ReadableFile:
        """Return the data file of the rows; one that is no Lance file gives no bytes."""
        reader = self._opened.file(self._number)
        if not isinstance(reader, FileReader):
            raise UnsupportedError(f"{self._path}: files of version 0.1 have no blobs")
        return reader.file

    def _external(self, base_id: int, uri: str) -> ReadableFile:
        source = self._opened.data_files.source
        return self._file(*source.blob_place(base_id, uri, is_trusted=self._allow_external))


def _owner(opened: OpenFragment, field: Field) -> int:
    """Return the number of the data file that holds a column."""
    ids = {part.id for part in field.walk()}
    for number, data_file in enumerate(opened.files):
        if not ids.isdisjoint(data_file.fields):
            return number
    raise SchemaError(f"fragment {opened.fragment.id} stores no column {field.name!r}")


def sidecar_path(data_path: str, blob_id: int) -> str:
    """Return the path of the side file with this id."""
    digits = f"{blob_id:032b}"[::-1]
    return f"{data_path.removesuffix('.lance')}/{digits}.blob"


def blob_files(
    opened: OpenFragment, field: Field, descriptors: pa.Array, *, allow_external: bool
) -> list[BlobFile | None]:
    """Return a file for each descriptor, None for a missing value; nothing is read yet."""
    if not len(descriptors) or descriptors.null_count == len(descriptors):
        return [None] * len(descriptors)
    source = BlobSource(opened, field, allow_external=allow_external)
    return [
        None if place is None else BlobFile(place.file, place.position, place.size)
        for place in source.payloads(descriptors)
    ]


def read_payloads(opened: OpenFragment, field: Field, chunks: Sequence[pa.Array]) -> list[pa.Array]:
    """Replace the descriptors inside a column by the bytes they point at."""
    return [_replaced(opened, field, chunk) for chunk in chunks]


def _replaced(opened: OpenFragment, field: Field, array: pa.Array) -> pa.Array:
    if field.is_blob:
        return _bytes(opened, field, array)
    if not any(part.is_blob for part in field.walk()):
        return array
    if field.logical_type == "struct":
        children = [
            _replaced(opened, child, array.field(number))
            for number, child in enumerate(field.children)
        ]
        mask = array.is_null() if array.null_count else None
        names = [child.name for child in field.children]
        return pa.StructArray.from_arrays(children, names=names, mask=mask)
    if field.logical_type.startswith(("list", "large_list")):
        items = _replaced(opened, field.children[0], array.values)
        make = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
        mask = array.is_null() if array.null_count else None
        return make.from_arrays(array.offsets, items, mask=mask)
    raise UnsupportedError(f"blobs inside a column of type {field.logical_type!r} cannot be read")


def _bytes(opened: OpenFragment, field: Field, descriptors: pa.Array) -> pa.Array:
    if not len(descriptors) or descriptors.null_count == len(descriptors):
        return pa.nulls(len(descriptors), pa.large_binary())
    source = BlobSource(opened, field, allow_external=False)
    places = source.payloads(descriptors)
    offsets = np.zeros(len(places) + 1, np.int64)
    np.cumsum([0 if place is None else place.size for place in places], out=offsets[1:])
    parts = _fetched([place for place in places if place is not None])
    valid = pa.array([place is not None for place in places])
    validity = valid.buffers()[1] if any(place is None for place in places) else None
    data = pa.py_buffer(b"".join(parts))
    return pa.Array.from_buffers(
        pa.large_binary(), len(places), [validity, pa.py_buffer(offsets), data]
    )


def _fetched(places: Sequence[Payload]) -> list[memoryview]:
    """Return the bytes of payloads, those of one file fetched together."""
    by_file: dict[int, list[int]] = {}
    for number, place in enumerate(places):
        by_file.setdefault(id(place.file), []).append(number)
    found: dict[int, memoryview] = {}
    for numbers in by_file.values():
        ranges = [_range(places[number]) for number in numbers]
        found.update(zip(numbers, places[numbers[0]].file.read_ranges(ranges), strict=True))
    return [found[number] for number in range(len(places))]


def _range(place: Payload) -> ByteRange:
    return ByteRange(place.position, place.position + place.size)


def blob_field(fields: Iterable[Field]) -> Field:
    """Return the last field of a path after checking that it is a blob column.

    Raises:
        SchemaError: it is not.
    """
    last = list(fields)[-1]
    if not last.is_blob:
        raise SchemaError(f"column {last.name!r} is no blob column; read it with scan or take")
    return last
