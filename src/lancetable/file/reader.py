"""Rows and columns of one data file (2.0, 2.1, 2.2) as Arrow arrays."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.file.codec import (
    FOOTER_BYTES,
    decode_column,
    decode_footer,
    decode_rows,
    decode_table,
)
from lancetable.file.documents import json_as_text
from lancetable.file.drive import drive
from lancetable.file.leaves import Leaf, columns_by_walk, leaves_of
from lancetable.file.model import V2_0, FileVersion, Footer, PageInfo
from lancetable.format.encoding.assemble import LeafRun, assemble, join_runs, leaf_run
from lancetable.format.encoding.base import Column, Reading, Rows
from lancetable.format.encoding.jsonb import jsonb_to_text
from lancetable.format.encoding.leaf import Kind, kind_of, single_value
from lancetable.format.encoding.v20.read import bytes_key, read_field, stores_bytes_apart
from lancetable.format.schema.codec import decode_file_descriptor
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type
from lancetable.store import ByteRange, ReadableFile

if TYPE_CHECKING:
    from lancetable.format.encoding.entries import Entries, Layout, OpenPage

TAIL_BYTES = 64 * 1024

DECODING_FAILURES = (ValueError, IndexError, OverflowError, MemoryError, pa.ArrowException)

T = TypeVar("T")


class FileReader:
    """One open data file."""

    def __init__(
        self, file: ReadableFile, path: str, columns: Mapping[int, int] | None = None
    ) -> None:
        self._file = file
        self.path = path
        with _Placed(path, "footer"):
            self._footer, self._tail, self._tail_start = _read_tail(file)
            self._column_places = self._table(self._footer.column_table, self._footer.columns)
        self._numbers = columns
        self._columns: dict[int, Column] = {}
        self._open_pages: dict[tuple[int, int], OpenPage] = {}
        self._plans: dict[int, tuple[Field, list[_LeafPlan]]] = {}
        self._schema: Schema | None = None
        self._rows: int | None = None

    @classmethod
    def open(
        cls, file: ReadableFile, path: str, columns: Mapping[int, int] | None = None
    ) -> "FileReader":
        """Read the footer of a data file.

        Args:
            file: the opened file.
            path: its name, for messages.
            columns: which column holds which field id; without it the file's own schema decides.

        Raises:
            CorruptError: the file is no data file, or is damaged.
            UnsupportedError: it has a version this library does not read.
        """
        return cls(file, path, columns)

    @property
    def version(self) -> FileVersion:
        """The version of the file."""
        return self._footer.version

    @property
    def rows(self) -> int:
        """Number of rows."""
        if self._rows is None:
            with _Placed(self.path, "file descriptor"):
                self._rows = decode_rows(self._descriptor_bytes())
        return self._rows

    @property
    def schema(self) -> Schema:
        """The schema that the file itself carries."""
        if self._schema is None:
            with _Placed(self.path, "file descriptor"):
                self._schema = decode_file_descriptor(self._descriptor_bytes()).schema
        return self._schema

    def read(self, fields: Sequence[Field], rows: Rows) -> list[list[pa.Array]]:
        """Read rows of some fields.

        Args:
            fields: fields of the file's table, or parts of them.
            rows: a range with step 1, or strictly increasing row numbers.

        Returns:
            For each field its chunks, together as long as ``rows``.
        """
        if len(rows) == 0:
            return [[pa.nulls(0, arrow_type(field))] for field in fields]
        if rows[0] < 0 or rows[-1] >= self.rows:
            raise InputError(f"{self.path}: row {int(rows[-1])} is behind the last of {self.rows}")
        if self._footer.version == V2_0:
            return self._read_v20(fields, rows)
        plans = [plan for field in fields for plan in self._plans_of(field)]
        if len(rows) == 1 and self._file.is_mapped:
            cells = self._read_cells(plans, int(rows[0]))
            if cells is not None:
                return cells
        runs = iter(self._read_leaves(plans, rows))
        found = [self._field_chunks(field, runs) for field in fields]
        self._check_lengths(fields, found, len(rows))
        return found

    def _read_cells(self, plans: "Sequence[_LeafPlan]", row: int) -> list[list[pa.Array]] | None:
        """Read one row of plain columns value by value; None when a column is not plain."""
        cells: list[list[pa.Array]] = []
        for plan in plans:
            if not plan.is_simple:
                return None
            index = plan.column.page_of(row)
            opened = self._open_pages.get((plan.number, index))
            if opened is None:
                return None
            with _Placed(self.path, f"column {plan.number} page {index}"):
                value = opened.cell(row - plan.column.pages[index].first_row)
                array = None if value is None else single_value(value, plan.kind)
            if array is None:
                return None
            cells.append([array])
        return cells

    def pages(self) -> list[PageInfo]:
        """Describe every page of the file."""
        names = {number: name for name, number in self._column_names()}
        found: list[PageInfo] = []
        for number in range(self._footer.columns):
            for index, page in enumerate(self._column(number).pages):
                describe: Callable[[], str] = getattr(page.description, "describe", lambda: "")
                text = describe() or repr(page.description)
                sizes = tuple(buffer.size for buffer in page.buffers)
                name = names.get(number, "")
                found.append(PageInfo(number, name, index, page.rows, text, sizes))
        return found

    def _column_names(self) -> Iterator[tuple[str, int]]:
        numbers = self._column_numbers()

        def names(field: Field, prefix: str) -> Iterator[tuple[str, int]]:
            name = f"{prefix}{field.name}"
            if field.id in numbers:
                yield name, numbers[field.id]
            for child in field.children:
                yield from names(child, f"{name}.")

        for field in self.schema.fields:
            yield from names(field, "")

    def _descriptor_bytes(self) -> bytes:
        position, size = self._table(self._footer.buffer_table, self._footer.buffers)[0]
        return self._bytes(position, position + size)

    def _read_v20(self, fields: Sequence[Field], rows: Rows) -> list[list[pa.Array]]:
        numbers = self._column_numbers()
        readings = []
        for field in fields:
            columns: dict[int, Column] = {}
            for below in field.walk():
                if below.id in numbers:
                    columns[below.id] = self._column(numbers[below.id])
                    if stores_bytes_apart(below, columns):
                        columns[bytes_key(below.id)] = self._column(numbers[below.id] + 1)
            readings.append(
                self._guarded(read_field(field, columns, rows), f"field {field.name!r}")
            )
        found = drive(self._file, readings)
        self._check_lengths(fields, found, len(rows))
        self._check_text(fields, found)
        for number, field in enumerate(fields):
            if any(below.is_json for below in field.walk()):
                with _Placed(self.path, f"field {field.name!r}"):
                    found[number] = [json_as_text(field, chunk) for chunk in found[number]]
        return found

    def _check_lengths(
        self, fields: Sequence[Field], found: list[list[pa.Array]], count: int
    ) -> None:
        """Make sure that damaged levels never shift the rows of one column against another."""
        for field, chunks in zip(fields, found, strict=True):
            length = sum(map(len, chunks))
            if length != count:
                raise CorruptError(
                    f"field {field.name!r}: its pages hold {length} of {count} rows",
                    path=self.path,
                )

    def _check_text(self, fields: Sequence[Field], found: list[list[pa.Array]]) -> None:
        """Refuse text that is not UTF-8; later versions are checked while they are decoded."""
        for field, chunks in zip(fields, found, strict=True):
            if any("string" in below.logical_type for below in field.walk()):
                with _Placed(self.path, f"field {field.name!r}"):
                    for chunk in chunks:
                        chunk.validate(full=True)

    def _plans_of(self, field: Field) -> "list[_LeafPlan]":
        known = self._plans.get(id(field))
        if known is None:
            # The field is kept beside its plans so that its identity stays its own.
            known = self._plans[id(field)] = (
                field,
                [self._plan(leaf) for leaf in leaves_of(field)],
            )
        return known[1]

    def _plan(self, leaf: Leaf) -> "_LeafPlan":
        number = self._column_numbers().get(leaf.field.id, -1)
        column = self._column(number)
        if column.rows != self.rows * leaf.factor:
            raise CorruptError(
                f"column {number} holds {column.rows} rows, others {self.rows}", path=self.path
            )
        field = leaf.field
        if field.is_packed and not field.is_blob:
            # The stored rows hold all children, also those that were not asked for.
            field = _find(self.schema, field) or field
        kind = kind_of(pa.large_binary()) if field.is_json else _kind_of_field(field)
        is_simple = leaf.depth == 0 and not (field.is_json or field.is_packed or field.is_blob)
        return _LeafPlan(leaf, number, column, kind, is_simple)

    def _read_leaves(self, plans: Sequence["_LeafPlan"], rows: Rows) -> Iterator[list[LeafRun]]:
        readings: list[Reading[LeafRun]] = []
        counts: list[int] = []
        for plan in plans:
            picked = plan.column.pick(_scaled(rows, plan.leaf.factor))
            counts.append(len(picked))
            for index, inside in picked:
                where = f"column {plan.number} page {index}"
                readings.append(self._guarded(self._page(plan, index, inside), where))
        done = iter(drive(self._file, readings))
        for plan, count in zip(plans, counts, strict=True):
            yield [self._translated(plan, next(done)) for _ in range(count)]

    def _page(self, plan: "_LeafPlan", index: int, rows: Rows) -> Reading[LeafRun]:
        page = plan.column.pages[index]
        layout = cast("Layout", page.description)
        if len(layout.layers.items) != plan.leaf.depth + 1:
            raise CorruptError(
                f"a page has {len(layout.layers.items)} layers, its field {plan.leaf.depth + 1}"
            )
        key = (plan.number, index)
        opened = self._open_pages.get(key)
        if opened is None:
            opened = yield from layout.open(page, is_mapped=self._file.is_mapped)
            self._open_pages[key] = opened
        entries: Entries = yield from opened.read(rows)
        return leaf_run(entries, layout.layers, plan.kind, plan.leaf.widths)

    def _translated(self, plan: "_LeafPlan", run: LeafRun) -> LeafRun:
        field = plan.leaf.field
        if field.is_json:
            with _Placed(self.path, f"column {plan.number}"):
                return run._replace(array=jsonb_to_text(run.array))
        if field.is_packed and not field.is_blob:
            return run._replace(array=_pick_children(run.array, field))
        return run

    def _field_chunks(self, field: Field, runs: Iterator[list[LeafRun]]) -> list[pa.Array]:
        leaves = leaves_of(field)
        found = [next(runs) for _ in leaves]
        if leaves[0].field is field:
            return [run.array for run in found[0]]
        with _Placed(self.path, f"field {field.name!r}"):
            if len(found) == 1:
                return [assemble(field, {leaves[0].field.id: run}) for run in found[0]]
            joined = {
                leaf.field.id: join_runs(parts) for leaf, parts in zip(leaves, found, strict=True)
            }
            return [assemble(field, joined)]

    def _guarded(self, reading: Reading[T], where: str) -> Reading[T]:
        with _Placed(self.path, where):
            return (yield from reading)

    def _column_numbers(self) -> Mapping[int, int]:
        if self._numbers is None:
            self._numbers = columns_by_walk(self.schema, self._footer.version)
        return self._numbers

    def _column(self, number: int) -> Column:
        column = self._columns.get(number)
        if column is None:
            with _Placed(self.path, f"column {number}"):
                if not 0 <= number < self._footer.columns:
                    raise CorruptError(
                        f"a field is in column {number}, the file has {self._footer.columns}"
                    )
                position, size = self._column_places[number]
                data = self._view(position, position + size)
                limit = self._footer.column_start
                column = decode_column(data, self._footer.version, limit, self._bytes)
            self._columns[number] = column
        return column

    def _table(self, position: int, entries: int) -> list[tuple[int, int]]:
        table = self._view(position, position + entries * 16)
        return decode_table(table, self._file.size - FOOTER_BYTES)

    def _view(self, start: int, stop: int) -> memoryview:
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : stop - self._tail_start]
        return self._file.read_ranges([ByteRange(start, stop)])[0]

    def _bytes(self, start: int, stop: int) -> bytes:
        return bytes(self._view(start, stop))


class _LeafPlan(NamedTuple):
    """A leaf and the column it is read from."""

    leaf: Leaf
    number: int
    column: Column
    kind: Kind
    is_simple: bool


def _read_tail(file: ReadableFile) -> tuple[Footer, memoryview, int]:
    """Read the footer and everything from the first column metadata on."""
    start = 0 if file.is_mapped else max(0, file.size - TAIL_BYTES)
    (tail,) = file.read_ranges([ByteRange(start, file.size)])
    footer = decode_footer(tail, file.size)
    if footer.column_start < start:
        start = footer.column_start
        (tail,) = file.read_ranges([ByteRange(start, file.size)])
    return footer, tail, start


class _Placed:
    """Names file and place in errors; whatever damaged bytes cause becomes one clear error."""

    __slots__ = ("path", "where")

    def __init__(self, path: str, where: str) -> None:
        self.path = path
        self.where = where

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, _: object
    ) -> None:
        if kind is None:
            return
        if isinstance(cause, CorruptError):
            raise cause.at(self.path, self.where) from cause.__cause__
        if isinstance(cause, UnsupportedError):
            raise UnsupportedError(f"{self.path}: {self.where}: {cause}") from cause.__cause__
        if isinstance(cause, InputError):
            return
        if isinstance(cause, DECODING_FAILURES):
            raise CorruptError(
                f"{self.where}: the bytes cannot be decoded ({cause})", path=self.path
            ) from cause


def _scaled(rows: Rows, factor: int) -> Rows:
    """Turn rows into the entries of a column that holds ``factor`` entries for each."""
    if factor == 1:
        return rows
    if isinstance(rows, range):
        return range(rows.start * factor, rows.stop * factor)
    return (rows[:, None] * factor + np.arange(factor)).reshape(-1)


@lru_cache(maxsize=4096)
def _kind_of_field(field: Field) -> Kind:
    return kind_of(arrow_type(field))


def _find(schema: Schema, wanted: Field) -> Field | None:
    return next((field for field in schema.walk() if field.id == wanted.id), None)


def _pick_children(array: pa.Array, field: Field) -> pa.Array:
    """Keep the children of a packed struct that were asked for."""
    type_ = arrow_type(field)
    if array.type == type_:
        return array
    names = [array.type.field(number).name for number in range(array.type.num_fields)]
    children = [array.field(names.index(child.name)) for child in field.children]
    bitmap = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(type_, len(array), [bitmap], children=children)
