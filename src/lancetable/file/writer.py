"""Batches to one data file of version 2.1 or 2.2.

Every column collects arrays until they make a page. Pages of different columns follow one another
as they are finished, each of their buffers on a 64-byte boundary; the schema, the metadata of the
columns and the footer come last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.errors import InputError, SchemaError
from lancetable.file.codec import encode_tail
from lancetable.file.documents import text_as_json
from lancetable.file.leaves import leaves_of
from lancetable.file.model import V2_1, FileVersion, WrittenPage
from lancetable.format.encoding.build import choose
from lancetable.format.encoding.build.knobs import Knobs, knobs_of
from lancetable.format.encoding.build.page import PageDraft
from lancetable.format.encoding.build.shred import shred
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type, has_same_layout, relabel
from lancetable.store import Bytes, WritableFile

ALIGNMENT = 64
_PADDING = bytes(ALIGNMENT)


@dataclass(frozen=True, slots=True)
class FileWriteOptions:
    """How much of a column makes a page."""

    page_bytes: int = 8 * 1024 * 1024


class WrittenFile(NamedTuple):
    """A finished data file, as a manifest records it."""

    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    version: FileVersion
    rows: int
    size: int


class FileWriter:
    """One data file in the making."""

    def __init__(
        self,
        file: WritableFile,
        schema: Schema,
        version: FileVersion = V2_1,
        options: FileWriteOptions | None = None,
    ) -> None:
        self._file = file
        self._schema = schema
        self._version = version
        self._options = options or FileWriteOptions()
        self._grammar = choose.V2_1 if version == V2_1 else choose.V2_2
        self._columns = [_ColumnDraft(field) for field in schema.fields]
        self.rows = 0
        self.bytes_written = 0

    @property
    def bytes_pending(self) -> int:
        """Bytes of arrays that wait for their page."""
        return sum(column.pending_bytes for column in self._columns)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; the columns of the batch stand in the order of the schema.

        Raises:
            SchemaError: the batch has other columns.
            InputError: a column that must not be null holds nulls.
        """
        if batch.num_columns != len(self._columns):
            raise SchemaError(
                f"a batch of {batch.num_columns} columns cannot be written to {len(self._columns)}"
            )
        for column, array in zip(self._columns, batch.columns, strict=True):
            column.add(_storage(array, column.field))
            if column.pending_bytes >= self._options.page_bytes:
                self._flush(column)
        self.rows += batch.num_rows

    def finish(self) -> WrittenFile:
        """Write what is left and close the file."""
        for column in self._columns:
            self._flush(column)
        pages = [leaf.pages for column in self._columns for leaf in column.leaves]
        tail = encode_tail(self._schema, pages, self.rows, self._version, self.bytes_written)
        self._put([tail])
        self._file.close()
        ids = tuple(leaf.field.id for column in self._columns for leaf in column.leaves)
        return WrittenFile(
            ids, tuple(range(len(ids))), self._version, self.rows, self.bytes_written
        )

    def abort(self) -> None:
        """Give up and remove what was written."""
        self._file.abort()

    def _flush(self, column: "_ColumnDraft") -> None:
        for array in column.take(self._options.page_bytes):
            first = column.written_rows
            for leaf, found in zip(column.leaves, shred(column.field, array), strict=True):
                shredded = found
                if leaf.field.is_json:
                    shredded = found._replace(values=text_as_json(found.values))
                draft = choose.build_page(shredded, len(array), leaf.knobs, self._grammar)
                leaf.pages.append(self._write_page(draft, first))
            column.written_rows += len(array)

    def _write_page(self, draft: PageDraft, first_row: int) -> WrittenPage:
        parts: list[Bytes] = []
        places: list[tuple[int, int]] = []
        position = self.bytes_written
        for buffer in draft.buffers:
            places.append((position, len(buffer)))
            parts.append(np.ascontiguousarray(buffer).data)
            gap = -len(buffer) % ALIGNMENT
            if gap:
                parts.append(_PADDING[:gap])
            position += len(buffer) + gap
        self._put(parts)
        return WrittenPage(draft.rows, first_row, tuple(places), draft.description)

    def _put(self, parts: Sequence[Bytes]) -> None:
        self._file.write(parts)
        self.bytes_written += sum(map(len, parts))


class _LeafDraft:
    """A leaf column and its finished pages."""

    __slots__ = ("field", "knobs", "pages")

    def __init__(self, field: Field, knobs: Knobs) -> None:
        self.field = field
        self.knobs = knobs
        self.pages: list[WrittenPage] = []


class _ColumnDraft:
    """A top-level column: arrays that wait for their page, and its leaves."""

    __slots__ = ("_arrays", "field", "leaves", "pending_bytes", "written_rows")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.leaves = [
            _LeafDraft(leaf.field, knobs_of(leaf.field, field)) for leaf in leaves_of(field)
        ]
        self._arrays: list[pa.Array] = []
        self.pending_bytes = 0
        self.written_rows = 0

    def add(self, array: pa.Array) -> None:
        if array.null_count and not self.field.nullable:
            raise InputError(
                f"column {self.field.name!r} must not be null, the data holds"
                f" {array.null_count} nulls"
            )
        if len(array):
            self._arrays.append(array)
            self.pending_bytes += max(array.nbytes, 1)

    def take(self, page_bytes: int) -> list[pa.Array]:
        """Return what waits, in pieces of about a page."""
        if not self._arrays:
            return []
        joined = self._arrays[0] if len(self._arrays) == 1 else pa.concat_arrays(self._arrays)
        pages = max(1, round(self.pending_bytes / page_bytes))
        self._arrays = []
        self.pending_bytes = 0
        each = -(-len(joined) // pages)
        return [joined.slice(first, each) for first in range(0, len(joined), each)]


def _storage(array: pa.Array, field: Field) -> pa.Array:
    """Return an array in the storage type of its field."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, array.type)
    type_ = arrow_type(field)
    if array.type == type_:
        return array
    if not has_same_layout(array.type, type_):
        raise SchemaError(f"column {field.name!r} has type {type_}, the data has {array.type}")
    return relabel(array, type_)
