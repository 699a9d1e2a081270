"""Blob columns of a fragment: as bytes, or as files that are read when asked."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lancetable.errors import SchemaError
from lancetable.file.payloads import PayloadFinder, PayloadPlaces, with_bytes
from lancetable.format.schema.model import Field
from lancetable.fragment.blobfile import BlobFile
from lancetable.fragment.opened import OpenFragment
from lancetable.store import ReadableFile, Store


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
        raise SchemaError(f"column {last.name!r} is no blob column; read it with scan or take")
    return last
