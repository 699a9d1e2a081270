"""Batches to one data file of version 2.0, 2.1 or 2.2.

Every column collects arrays until they make a page. Pages of different columns follow one another
as they are finished, each of their buffers on a 64-byte boundary; the schema, the metadata of the
columns and the footer come last. Payloads of blob columns are stored as soon as they come.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.errors import InputError, SchemaError
from lancetable.file.codec import encode_tail
from lancetable.file.model import V2_1, FileVersion, WrittenColumn, WrittenPage
from lancetable.file.write.blobs import BlobStorage, CreateSidecar, has_blobs, written_type
from lancetable.file.write.pages import PageBuilder, page_builder
from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type, has_same_layout, relabel
from lancetable.store import Bytes, WritableFile

ALIGNMENT = 64
_PADDING = bytes(ALIGNMENT)
_PENDING = attrgetter("pending_bytes")
_OWNERS = attrgetter("owners")
_ID = attrgetter("field.id")


@dataclass(frozen=True, slots=True)
class FileWriteOptions:
    """Sizes of pages, and of the data of all columns buffered before it is written."""

    page_bytes: int = 8 * 1024 * 1024
    pending_bytes: int = 512 * 1024 * 1024


class WrittenFile(NamedTuple):
    """A finished data file, as a manifest records it."""

    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    version: FileVersion
    rows: int
    size: int


class FileWriter:
    """One data file in the making.

    Args:
        file: where it is written.
        schema: its fields with the ids of the table.
        version: the version of the format.
        options: how much is held back.
        sidecars: creates the file beside this one that has the given blob id; without it large
            blobs are refused.

    Raises:
        SchemaError: files of the version cannot hold a column.
        UnsupportedError: files of the version are not written.
    """

    def __init__(
        self,
        file: WritableFile,
        schema: Schema,
        version: FileVersion = V2_1,
        options: FileWriteOptions | None = None,
        *,
        sidecars: CreateSidecar | None = None,
    ) -> None:
        self._file = file
        self._schema = schema
        self._version = version
        self._options = options or FileWriteOptions()
        builder = page_builder(version)
        self._columns = [_ColumnDraft(field, builder(field)) for field in schema.fields]
        self._blobs = BlobStorage(self._put_payloads, sidecars)
        self._buffers: list[tuple[int, int]] = []
        self.rows = 0
        self.bytes_written = 0

    @property
    def bytes_pending(self) -> int:
        """Bytes of arrays that wait for their page."""
        return sum(map(_PENDING, self._columns))

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; the columns of the batch stand in the order of the schema.

        Raises:
            SchemaError: the batch has other columns.
            InputError: a column holds what cannot be stored, such as nulls where there must be
                none.
        """
        if batch.num_columns != len(self._columns):
            raise SchemaError(
                f"a batch of {batch.num_columns} columns cannot be written to {len(self._columns)}"
            )
        for column, array in zip(self._columns, batch.columns, strict=True):
            for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
                self._add(column, chunk)
        self.rows += batch.num_rows
        if self.bytes_pending > self._options.pending_bytes:
            self._relieve()

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes of the caller and return their number; the first buffer is the schema's."""
        (position,) = self._put_aligned([data])
        self._buffers.append((position, len(data)))
        return len(self._buffers)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add an entry to the metadata of the schema, or replace one."""
        self._schema = self._schema._replace(metadata={**self._schema.metadata, key: value})

    def finish(self) -> WrittenFile:
        """Write what is left and close the file."""
        for column in self._columns:
            self._flush(column)
        owners = list(chain.from_iterable(map(_OWNERS, self._columns)))
        written = [WrittenColumn(owner.pages, owner.field.is_blob) for owner in owners]
        tail = encode_tail(
            self._schema, written, self.rows, self._version, self.bytes_written, self._buffers
        )
        self._file.write([tail])
        self.bytes_written += len(tail)
        self._blobs.finish()
        self._file.close()
        ids = tuple(map(_ID, owners))
        return WrittenFile(
            ids, tuple(range(len(ids))), self._version, self.rows, self.bytes_written
        )

    def abort(self) -> None:
        """Give up and remove what was written, side files included."""
        self._blobs.abort()
        self._file.abort()

    def _add(self, column: "_ColumnDraft", array: pa.Array) -> None:
        stored = array if array.type == column.type else _storage(array, column.field)
        if stored.null_count and not column.field.nullable:
            raise InputError(
                f"column {column.field.name!r} must not be null, the data holds"
                f" {stored.null_count} nulls"
            )
        if column.type is None and len(stored):
            stored = self._blobs.place(column.field, stored)
        column.add(stored)
        if column.pending_bytes >= self._options.page_bytes:
            self._flush(column)

    def _relieve(self) -> None:
        """Flush the columns that hold at least their share."""
        share = self.bytes_pending / len(self._columns)
        for column in self._columns:
            if column.pending_bytes >= share:
                self._flush(column)

    def _flush(self, column: "_ColumnDraft") -> None:
        for array in column.take(self._options.page_bytes):
            for number, draft in column.builder.build(array):
                owner = column.owners[number]
                owner.add(self._write_page(draft, owner.rows))

    def _write_page(self, draft: PageDraft, first_row: int) -> WrittenPage:
        contents = [np.ascontiguousarray(buffer).data for buffer in draft.buffers]
        positions = self._put_aligned(contents)
        places = tuple(zip(positions, map(len, contents), strict=True))
        return WrittenPage(draft.rows, first_row, places, draft.description)

    def _put_payloads(self, payloads: Sequence[Bytes]) -> list[int]:
        return self._put_aligned(payloads) if payloads else []

    def _put_aligned(self, contents: Sequence[Bytes]) -> list[int]:
        """Write buffers, each on a boundary; return where they start."""
        parts, positions = aligned_parts(contents, self.bytes_written)
        self._file.write(parts)
        self.bytes_written += sum(map(len, parts))
        return positions


def aligned_parts(contents: Sequence[Bytes], position: int) -> tuple[list[Bytes], list[int]]:
    """Return buffers with the padding behind each of them, and where each starts."""
    parts: list[Bytes] = []
    positions: list[int] = []
    for content in contents:
        positions.append(position)
        parts.append(content)
        gap = -len(content) % ALIGNMENT
        if gap:
            parts.append(_PADDING[:gap])
        position += len(content) + gap
    return parts, positions


class _OwnerDraft:
    """A column of the file and its finished pages."""

    __slots__ = ("field", "pages", "rows")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.pages: list[WrittenPage] = []
        self.rows = 0

    def add(self, page: WrittenPage) -> None:
        """Add a page; one without buffers makes the page before it longer if both say the same.

        Structs of 2.0 files must have a single page, which pylance insists on.
        """
        self.rows += page.rows
        last = self.pages[-1] if self.pages else None
        if last is not None and not page.buffers and last[2:] == page[2:]:
            self.pages[-1] = last._replace(rows=last.rows + page.rows)
        else:
            self.pages.append(page)


class _ColumnDraft:
    """A top-level column: arrays that wait for their page, and the columns it is stored in."""

    __slots__ = (
        "_arrays",
        "_bits",
        "_dictionary",
        "builder",
        "field",
        "owners",
        "pending_bytes",
        "type",
    )

    def __init__(self, field: Field, builder: PageBuilder) -> None:
        self.field = field
        self.builder = builder
        self.owners = list(map(_OwnerDraft, builder.owners))
        self.type, self._bits = _row_type(field)
        self._arrays: list[pa.Array] = []
        self._dictionary: pa.Array | None = None
        self.pending_bytes = 0

    def add(self, array: pa.Array) -> None:
        """Let an array wait for its page."""
        if not len(array):
            return
        self._arrays.append(array)
        if self._bits is None:
            weight = self._weight(array)
        else:
            # The same as Arrow says, which takes its time for it.
            weight = len(array) * (self._bits + bool(array.null_count)) // 8
        self.pending_bytes += max(weight, 1)

    def _weight(self, array: pa.Array) -> int:
        """Return the bytes an array adds; a dictionary shared with the last one adds nothing."""
        if not pa.types.is_dictionary(array.type):
            return int(array.nbytes)
        dictionary = array.dictionary
        is_shared = self._dictionary is not None and dictionary.equals(self._dictionary)
        self._dictionary = dictionary
        return int(array.indices.nbytes + (0 if is_shared else dictionary.nbytes))

    def take(self, page_bytes: int) -> list[pa.Array]:
        """Return what waits, in pieces of about a page."""
        arrays, self._arrays = self._arrays, []
        self._dictionary = None
        pending, self.pending_bytes = self.pending_bytes, 0
        joined = arrays if len(arrays) == 1 else _joined(arrays)
        if len(joined) != 1:
            return joined
        pages = max(1, round(pending / page_bytes))
        if pages == 1:
            return joined
        each = -(-len(joined[0]) // pages)
        return [joined[0].slice(first, each) for first in range(0, len(joined[0]), each)]


@lru_cache(maxsize=4096)
def _row_type(field: Field) -> tuple[pa.DataType | None, int | None]:
    """Return the type of the rows, None when there are blobs, and the bits of a primitive value."""
    if has_blobs(field):
        return None, None
    type_ = arrow_type(field)
    return type_, type_.bit_width if pa.types.is_primitive(type_) else None


def _joined(arrays: list[pa.Array]) -> list[pa.Array]:
    """Join arrays, or leave them apart when one array cannot hold them all."""
    if not arrays:
        return arrays
    try:
        return [pa.concat_arrays(arrays)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Too many bytes for 32-bit offsets, or too many items for the indices of a dictionary.
        return arrays


def _storage(array: pa.Array, field: Field) -> pa.Array:
    """Return an array in the storage type of its field."""
    type_ = written_type(field, array.type)
    if array.type == type_:
        return array
    if not has_same_layout(array.type, type_):
        raise SchemaError(f"column {field.name!r} has type {type_}, the data has {array.type}")
    return relabel(array, type_)
