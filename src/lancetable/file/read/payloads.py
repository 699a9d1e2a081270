"""Payloads of blob columns: from descriptions to the bytes they point at.

A description of the first generation is a position and a size in the data file of the row. One of
the second generation also says where the bytes are:

====  =========  ==================================================================
kind  name       place of the bytes
====  =========  ==================================================================
0     inline     the data file itself
1     packed     ``{data file without ending}/{blob id in reversed binary}.blob``
2     dedicated  the same, one payload per file
3     external   ``blob_uri``: absolute (blob id 0) or below the base with that id
====  =========  ==================================================================
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.limits import read_limits
from lancetable.format.schema.model import Field
from lancetable.store import ByteRange, ReadableFile, Store

INLINE, PACKED, DEDICATED, EXTERNAL = range(4)

FindExternal: TypeAlias = Callable[[int, str], tuple[Store, str]]
"""Returns the store and the path of an external payload, given its base id and address."""


class Payload(NamedTuple):
    """The place of one payload."""

    file: ReadableFile
    position: int
    size: int


class PayloadPlaces(NamedTuple):
    """The places where payloads of a data file may be."""

    store: Store
    path: str
    """The path of the data file in the store; side files are beside it."""
    data_file: Callable[[], ReadableFile]
    external: FindExternal


class PayloadFinder:
    """The payloads of one blob column of one data file; files are opened once."""

    __slots__ = ("_files", "_is_v2", "_places")

    def __init__(self, field: Field, places: PayloadPlaces) -> None:
        self._is_v2 = field.is_blob_v2
        self._places = places
        self._files: dict[str, ReadableFile] = {}

    def find(self, descriptions: pa.Array) -> list[Payload | None]:
        """Return where the payload of each row is; None for a missing one.

        Raises:
            CorruptError: a description points outside its file.
            UnsupportedError: a description is of no known kind.
            InputError: a description points outside of the table, and that was not allowed.
        """
        read = self._second if self._is_v2 else self._first
        return [None if row is None else read(row) for row in descriptions.to_pylist()]

    def _first(self, row: dict[str, Any]) -> Payload | None:
        position, size = row["position"], row["size"]
        # A missing value of the first generation has no bytes but a position.
        if position is None or size is None or (size == 0 and position != 0):
            return None
        return self._inline(position, size)

    def _second(self, row: dict[str, Any]) -> Payload | None:
        kind, uri = row["kind"], row["blob_uri"] or ""
        position, size, blob_id = row["position"] or 0, row["size"] or 0, row["blob_id"] or 0
        if kind is None:
            return None
        if kind == INLINE:
            return self._inline(position, size)
        if kind in {PACKED, DEDICATED}:
            path = sidecar_path(self._places.path, blob_id)
            return _within(self._file(self._places.store, path), path, position, size)
        if kind == EXTERNAL:
            file = self._file(*self._places.external(blob_id, uri))
            return _within(file, uri, position, size or file.size - position)
        raise UnsupportedError(f"{self._places.path}: blobs of kind {kind} cannot be read")

    def _inline(self, position: int, size: int) -> Payload:
        return _within(self._places.data_file(), self._places.path, position, size)

    def _file(self, store: Store, path: str) -> ReadableFile:
        key = f"{store.root}/{path}"
        file = self._files.get(key)
        if file is None:
            file = self._files[key] = store.open(path)
        return file


def _within(file: ReadableFile, path: str, position: int, size: int) -> Payload:
    if position < 0 or size < 0 or position + size > file.size:
        raise CorruptError(
            f"a blob is recorded as bytes {position} to {position + size}"
            f" of a file of {file.size} bytes",
            path=path,
        )
    return Payload(file, position, size)


def sidecar_path(data_path: str, blob_id: int) -> str:
    """Return the path of the side file with this id."""
    digits = f"{blob_id:032b}"[::-1]
    return f"{data_path.removesuffix('.lance')}/{digits}.blob"


def with_bytes(field: Field, array: pa.Array, finder: Callable[[Field], PayloadFinder]) -> pa.Array:
    """Replace the descriptions inside a column by the bytes they point at.

    Raises:
        UnsupportedError: there are blobs in a place where they cannot be read.
    """
    if field.is_blob:
        return _bytes(field, array, finder)
    if not any(part.is_blob for part in field.walk()):
        return array
    mask = array.is_null() if array.null_count else None
    if field.logical_type == "struct":
        children = [
            with_bytes(child, array.field(number), finder)
            for number, child in enumerate(field.children)
        ]
        names = [child.name for child in field.children]
        return pa.StructArray.from_arrays(children, names=names, mask=mask)
    if field.logical_type.startswith(("list", "large_list")):
        items = with_bytes(field.children[0], array.values, finder)
        make = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
        return make.from_arrays(array.offsets, items, mask=mask)
    raise UnsupportedError(f"blobs inside a column of type {field.logical_type!r} cannot be read")


def _bytes(
    field: Field, descriptions: pa.Array, finder: Callable[[Field], PayloadFinder]
) -> pa.Array:
    if not len(descriptions) or descriptions.null_count == len(descriptions):
        return pa.nulls(len(descriptions), pa.large_binary())
    places = finder(field).find(descriptions)
    offsets = np.zeros(len(places) + 1, np.int64)
    np.cumsum([0 if place is None else place.size for place in places], out=offsets[1:])
    read_limits().check_batch(int(offsets[-1]), len(places))
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
