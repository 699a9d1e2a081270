"""Rows and columns of one data file (2.0, 2.1, 2.2) as Arrow arrays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import pyarrow as pa

from lancetable.errors import CorruptError, InputError
from lancetable.file.codec import (
    FOOTER_BYTES,
    decode_column,
    decode_footer,
    decode_place,
    decode_rows,
)
from lancetable.file.drive import drive, run
from lancetable.file.error_context import Placed, explained
from lancetable.file.leaf_info import LeafInfo, LeafPlan, columns_by_walk, leaf_infos
from lancetable.file.model import V2_0, FileVersion, Footer, PageInfo
from lancetable.file.read.compiled_range import OpenField
from lancetable.file.read.compiled_rows import FieldRecords, FileGather
from lancetable.file.read.listing import page_infos
from lancetable.file.read.packed import pick_children, stored_field
from lancetable.file.read.v20 import FileColumns, read_v20
from lancetable.file.read.whole_pages import hold
from lancetable.format.encoding.assemble import LeafRun, assemble, join_runs, leaf_run
from lancetable.format.encoding.base import Column, Integers, Reading, Rows, scaled
from lancetable.format.encoding.compiled_range import Tests
from lancetable.format.encoding.jsonb import jsonb_to_text
from lancetable.format.encoding.kernels.addressing import GATHER, Gather
from lancetable.format.encoding.leaf import kind_of
from lancetable.format.encoding.repdef import Mask
from lancetable.format.limits import read_limits
from lancetable.format.schema.codec import decode_file_descriptor
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type
from lancetable.store import ByteRange, ReadableFile, check_size

if TYPE_CHECKING:
    from lancetable.format.encoding.layout import Entries, Layout, OpenPage

T = TypeVar("T")
_TAIL_BYTES = 64 * 1024


class FileReader:
    """One open data file."""

    def __init__(
        self, file: ReadableFile, path: str, columns: Mapping[int, int] | None = None
    ) -> None:
        self.file = file
        self.path = path
        with Placed(path, "footer"):
            self._footer, self._tail, self._tail_start = _read_tail(file)
        self._limit = file.size - FOOTER_BYTES
        self._numbers = columns
        self._columns: dict[int, Column] = {}
        self._open_pages: dict[tuple[int, int], OpenPage] = {}
        self._fields: dict[Field, OpenField] = {}
        self._latest: dict[int, OpenField] = {}
        """By id: what was asked for last, as comparing fields is faster than hashing them."""
        self._gathered: FileGather | None = None
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
            with Placed(self.path, "file descriptor"):
                self._rows = decode_rows(self._descriptor_bytes())
        return self._rows

    @property
    def schema(self) -> Schema:
        """The schema that the file itself carries."""
        if self._schema is None:
            with Placed(self.path, "file descriptor"):
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
        check_size(self.file)
        if self._footer.version == V2_0:
            return self._read_v20(fields, rows)
        if not self.file.is_mapped:
            return self._decode(fields, rows)
        found: Sequence[pa.Array | None]
        if isinstance(rows, range):
            found = [self._read_range(field, rows) for field in fields]
        elif GATHER is not None:
            found = self._gather(GATHER, fields, rows)
        else:
            return self._decode(fields, rows)
        rest = [field for field, array in zip(fields, found, strict=True) if array is None]
        decoded = iter(self._decode(rest, rows) if rest else ())
        return [next(decoded) if array is None else [array] for array in found]

    def match(self, field: Field, rows: range, tests: Tests) -> tuple[Mask, int] | None:
        """Return which rows pass tests of a column, and how many; None when it must be read."""
        if self._footer.version == V2_0 or not self.file.is_mapped:
            return None
        check_size(self.file)
        compiled = self.field(field).compiled
        return None if compiled is None else compiled.match(rows, tests)

    def records(self, field: Field) -> FieldRecords | None:
        """Return where single rows of a field are found; None when they cannot be gathered."""
        if self._footer.version == V2_0 or not self.file.is_mapped:
            return None
        return self.field(field).records

    def field(self, field: Field) -> OpenField:
        """Return the columns of a field, and the compiled ways to read its rows."""
        known = self._latest.get(field.id)
        if known is None or known.field != field:
            known = self._latest[field.id] = self._fields.get(field) or self._opened(field)
        return known

    def _opened(self, field: Field) -> OpenField:
        plans = [self._plan(info) for info in leaf_infos(field)]
        opened = self._fields[field] = OpenField(field, plans, self.file, self._open_pages)
        return opened

    def _read_range(self, field: Field, rows: range) -> pa.Array | None:
        """Return neighbouring rows of a field; None when they are read page by page."""
        compiled = self.field(field).compiled
        return None if compiled is None else compiled.read(rows)

    def _gather(
        self, library: Gather, fields: Sequence[Field], rows: Integers
    ) -> Sequence[pa.Array | None]:
        """Return single rows of fields; None for fields that are read page by page."""
        if self._gathered is None:
            self._gathered = FileGather()
        with Placed(self.path, "single rows"):
            return self._gathered.read(library, fields, rows, self.records)

    def _decode(self, fields: Sequence[Field], rows: Rows) -> list[list[pa.Array]]:
        """Read rows page by page."""
        opened = [self.field(field) for field in fields]
        runs = self._read_leaves([plan for one in opened for plan in one.plans], rows)
        found = [self._field_chunks(one.field, one.plans, runs) for one in opened]
        self._check_lengths(fields, found, len(rows))
        return found

    def pages(self) -> list[PageInfo]:
        """Describe every page of the file."""
        columns = map(self._column, range(self._footer.columns))
        return page_infos(columns, self.schema, self._column_numbers())

    @property
    def global_buffers(self) -> int:
        """Number of global buffers; the first holds the schema."""
        return self._footer.buffers

    def global_buffer(self, number: int) -> bytes:
        """Return the content of a global buffer."""
        with Placed(self.path, f"global buffer {number}"):
            return self._bytes(*self._place(self._footer.buffer_table, number))

    def _descriptor_bytes(self) -> bytes:
        return self._bytes(*self._place(self._footer.buffer_table, 0))

    def _read_v20(self, fields: Sequence[Field], rows: Rows) -> list[list[pa.Array]]:
        columns = FileColumns(self.path, self._column_numbers(), self._column, lambda: self.schema)
        found = read_v20(self.file, columns, fields, rows)
        self._check_lengths(fields, found, len(rows))
        return found

    def _check_lengths(
        self, fields: Sequence[Field], found: list[list[pa.Array]], count: int
    ) -> None:
        """Make sure that damaged levels never shift the rows of one column against another."""
        for field, chunks in zip(fields, found, strict=True):
            length = len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
            if length != count:
                raise CorruptError(
                    f"field {field.name!r}: its pages hold {length} of {count} rows",
                    path=self.path,
                )

    def _plan(self, info: LeafInfo) -> LeafPlan:
        leaf, kind, is_simple, gather = info
        number = self._column_numbers().get(leaf.field.id, -1)
        column = self._column(number)
        if column.rows != self.rows * leaf.factor:
            raise CorruptError(
                f"column {number} holds {column.rows} rows, others {self.rows}", path=self.path
            )
        if kind is None:
            # The stored rows hold all children, also those that were not asked for.
            kind = kind_of(arrow_type(stored_field(self.schema, leaf.field) or leaf.field))
        return LeafPlan(leaf, number, column, kind, is_simple, gather and gather.layers)

    def _read_leaves(self, plans: Sequence[LeafPlan], rows: Rows) -> Iterator[list[LeafRun]]:
        picked = [plan.column.pick(scaled(rows, plan.leaf.factor)) for plan in plans]
        if self.file.is_mapped:
            for plan, parts in zip(plans, picked, strict=True):
                yield [self._mapped_page(plan, index, inside) for index, inside in parts]
            return
        every = [(plan, *part) for plan, parts in zip(plans, picked, strict=True) for part in parts]
        readings = [
            self._guarded(self._page(plan, index, inside), f"column {plan.number} page {index}")
            for plan, index, inside in every
        ]
        file = hold(self.file, [(plan.column.pages[n], inside) for plan, n, inside in every])
        done = iter(drive(file, readings))
        for plan, parts in zip(plans, picked, strict=True):
            yield [self._translated(plan, next(done)) for _ in parts]

    def _mapped_page(self, plan: LeafPlan, index: int, rows: Rows) -> LeafRun:
        """Read a page whose bytes are at hand; nothing is gained by reading several together."""
        try:
            found = run(self.file, self._page(plan, index, rows))
        except Exception as cause:
            where = f"column {plan.number} page {index}"
            raise explained(cause, self.path, where) from cause
        return found if plan.is_simple else self._translated(plan, found)

    def _page(self, plan: LeafPlan, index: int, rows: Rows) -> Reading[LeafRun]:
        opened, layout = yield from self.open_page(plan, index)
        entries: Entries = yield from opened.read(rows)
        return leaf_run(entries, layout.layers, plan.kind, plan.leaf.widths)

    def open_page(self, plan: LeafPlan, index: int) -> Reading[tuple["OpenPage", "Layout"]]:
        """Open a page of a column, if it was not yet."""
        page = plan.column.pages[index]
        layout = cast("Layout", page.description)
        if len(layout.layers.items) != plan.leaf.depth + 1:
            raise CorruptError(
                f"a page has {len(layout.layers.items)} layers, its field {plan.leaf.depth + 1}"
            )
        key = (plan.number, index)
        opened = self._open_pages.get(key)
        if opened is None:
            opened = yield from layout.open(page, is_mapped=self.file.is_mapped)
            self._open_pages[key] = opened
        return opened, layout

    def _translated(self, plan: LeafPlan, run: LeafRun) -> LeafRun:
        field = plan.leaf.field
        is_packed = field.is_packed and not field.is_blob
        if not (is_packed or field.is_json):
            return run
        with Placed(self.path, f"column {plan.number}"):
            if is_packed:
                return run._replace(array=pick_children(run.array, field, self.schema))
            return run._replace(array=jsonb_to_text(run.array))

    def _field_chunks(
        self, field: Field, plans: Sequence[LeafPlan], runs: Iterator[list[LeafRun]]
    ) -> list[pa.Array]:
        if plans[0].leaf.depth == 0:
            return [run.array for run in next(runs)]
        found = [next(runs) for _ in plans]
        with Placed(self.path, f"field {field.name!r}"):
            if len(found) == 1:
                return [assemble(field, {plans[0].leaf.field.id: run}) for run in found[0]]
            joined = {
                plan.leaf.field.id: join_runs(parts)
                for plan, parts in zip(plans, found, strict=True)
            }
            return [assemble(field, joined)]

    def _guarded(self, reading: Reading[T], where: str) -> Reading[T]:
        with Placed(self.path, where):
            return (yield from reading)

    def _column_numbers(self) -> Mapping[int, int]:
        if self._numbers is None:
            self._numbers = columns_by_walk(self.schema, self._footer.version)
        return self._numbers

    def _column(self, number: int) -> Column:
        column = self._columns.get(number)
        if column is None:
            with Placed(self.path, f"column {number}"):
                if not 0 <= number < self._footer.columns:
                    raise CorruptError(
                        f"a field is in column {number}, the file has {self._footer.columns}"
                    )
                data = self._view(*self._place(self._footer.column_table, number))
                limit = self._footer.column_start
                column = decode_column(data, self._footer.version, limit, self._bytes)
            self._columns[number] = column
        return column

    def _place(self, table: int, number: int) -> tuple[int, int]:
        """Return where a section starts and ends, from its entry in an offset table."""
        return decode_place(self._view(table + number * 16, table + number * 16 + 16), self._limit)

    def _view(self, start: int, stop: int) -> memoryview:
        if start >= self._tail_start:
            check_size(self.file)
            return self._tail[start - self._tail_start : stop - self._tail_start]
        return self.file.read_ranges([ByteRange(start, stop)])[0]

    def _bytes(self, start: int, stop: int) -> bytes:
        return bytes(self._view(start, stop))


def _read_tail(file: ReadableFile) -> tuple[Footer, memoryview, int]:
    """Read the footer and everything from the first column metadata on.

    Raises:
        CorruptError: the footer contradicts the size of the file.
        LimitError: the metadata exceeds the limit on opening.
    """
    start = 0 if file.is_mapped else max(0, file.size - _TAIL_BYTES)
    (tail,) = file.read_ranges([ByteRange(start, file.size)])
    footer = decode_footer(tail, file.size)
    read_limits().check_open(file.size - footer.column_start)
    if footer.column_start < start:
        start = footer.column_start
        (tail,) = file.read_ranges([ByteRange(start, file.size)])
    return footer, tail, start
