"""Rows and columns of one 0.1 data file as Arrow arrays."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, InputError
from lancetable.file.drive import drive
from lancetable.file.error_context import Placed
from lancetable.file.legacy.codec import (
    FOOTER_BYTES,
    PAGE_BYTES,
    Metadata,
    decode_footer,
    decode_metadata,
)
from lancetable.file.legacy.pages import Batch, read_batch
from lancetable.format.encoding.base import Reading, Rows
from lancetable.format.limits import read_limits
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type
from lancetable.store import ByteRange, ReadableFile, check_size

_TAIL_BYTES = 64 * 1024


class LegacyFile:
    """One open data file of version 0.1; the manifest knows which fields it has."""

    __slots__ = ("_batches", "_starts", "file", "path", "rows", "schema")

    def __init__(
        self,
        file: ReadableFile,
        path: str,
        schema: Schema,
        starts: npt.NDArray[np.int64],
        batches: Sequence[Batch],
    ) -> None:
        self.file = file
        self._starts = starts
        self._batches = batches
        self.path = path
        self.schema = schema
        self.rows = int(starts[-1])

    @classmethod
    def open(
        cls,
        file: ReadableFile,
        path: str,
        field_ids: Sequence[int],
        schema: Schema,
        dictionaries: Mapping[int, pa.Array],
    ) -> "LegacyFile":
        """Read the metadata and the page table of a data file.

        Args:
            file: the opened file.
            path: its name, for messages.
            field_ids: the ids of the fields in the file; negative ones are gone.
            schema: the schema of the table.
            dictionaries: the values of dictionary fields by field id.

        Raises:
            CorruptError: the file is no data file, or is damaged.
            UnsupportedError: it has another version.
        """
        with Placed(path, "footer"):
            metadata = _read_metadata(file)
        with Placed(path, "page table"):
            first, table = _read_page_table(file, metadata, field_ids)
        batches = [
            Batch(first, table[:, number], file.size, dictionaries)
            for number in range(table.shape[1])
        ]
        return cls(file, path, schema, metadata.batch_starts, batches)

    def read(self, fields: Sequence[Field], rows: Rows) -> list[list[pa.Array]]:
        """Read rows of some fields.

        Args:
            fields: fields of the table that the file has, or parts of them.
            rows: a range with step 1, or strictly increasing row numbers.

        Returns:
            For each field its chunks, together as long as ``rows``.
        """
        if not len(rows):
            return [[pa.nulls(0, arrow_type(field))] for field in fields]
        if rows[0] < 0 or rows[-1] >= self.rows:
            raise InputError(f"{self.path}: row {int(rows[-1])} is behind the last of {self.rows}")
        check_size(self.file)
        picked = self._pick(rows)
        readings = [
            self._guarded(field, self._batches[number], inside)
            for field in fields
            for number, inside in picked
        ]
        arrays = iter(drive(self.file, readings))
        found = [[next(arrays) for _ in picked] for _ in fields]
        self._check_text(fields, found)
        return found

    def _check_text(self, fields: Sequence[Field], found: list[list[pa.Array]]) -> None:
        for field, chunks in zip(fields, found, strict=True):
            if any("string" in below.logical_type for below in field.walk()):
                try:
                    for chunk in chunks:
                        chunk.validate(full=True)
                except pa.ArrowInvalid as cause:
                    raise CorruptError(
                        f"field {field.name!r} holds bytes that are not UTF-8", path=self.path
                    ) from cause

    def _pick(self, rows: Rows) -> list[tuple[int, Rows]]:
        """Split rows into (batch number, rows inside that batch)."""
        starts = self._starts
        if isinstance(rows, range):
            picked: list[tuple[int, Rows]] = []
            first = int(np.searchsorted(starts, rows.start, side="right")) - 1
            last = int(np.searchsorted(starts, rows.stop, side="left"))
            for number in range(first, last):
                start, stop = int(starts[number]), int(starts[number + 1])
                inside = range(max(rows.start, start) - start, min(rows.stop, stop) - start)
                if inside:
                    picked.append((number, inside))
            return picked
        edges = np.searchsorted(rows, starts)
        return [
            (number, rows[edges[number] : edges[number + 1]] - starts[number])
            for number in np.flatnonzero(np.diff(edges)).tolist()
        ]

    def _guarded(self, field: Field, batch: Batch, rows: Rows) -> Reading[pa.Array]:
        with Placed(self.path, f"field {field.name!r}"):
            return (yield from read_batch(field, batch, rows))


def _read_metadata(file: ReadableFile) -> Metadata:
    start = max(0, file.size - _TAIL_BYTES)
    (tail,) = file.read_ranges([ByteRange(start, file.size)])
    position = decode_footer(tail, file.size)
    read_limits().check_open(file.size - position)
    if position < start:
        (tail,) = file.read_ranges([ByteRange(position, file.size)])
        start = position
    return decode_metadata(tail[position - start : len(tail) - FOOTER_BYTES])


def _read_page_table(
    file: ReadableFile, metadata: Metadata, field_ids: Sequence[int]
) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the smallest field id of the table and its pages by field and batch."""
    known = [id_ for id_ in field_ids if id_ >= 0]
    batches = len(metadata.batch_starts) - 1
    if not known or batches == 0:
        return 0, np.zeros((0, batches, 2), np.int64)
    first = _first_id(field_ids)
    count = max(known) - first + 1
    start, size = metadata.page_table, count * batches * PAGE_BYTES
    if start + size > file.size:
        raise CorruptError(f"{count} fields in {batches} batches need {size} bytes at {start}")
    read_limits().check_open(size)
    (data,) = file.read_ranges([ByteRange(start, start + size)])
    return first, np.frombuffer(data, "<i8").reshape(count, batches, 2)


def _first_id(field_ids: Sequence[int]) -> int:
    """Return the id of the first row of the page table.

    Fields that are gone leave a negative number in the manifest, but keep their pages.
    """
    gone = next(number for number, id_ in enumerate(field_ids) if id_ >= 0)
    return max(min(id_ for id_ in field_ids if id_ >= 0) - gone, 0)
