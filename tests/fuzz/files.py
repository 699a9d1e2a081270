"""Single data files to damage: their regions, their messages, and how they are read."""

import random
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lancetable.file import DataFileHandle, FileReader
from lancetable.file.leaf_info import columns_by_walk
from lancetable.file.read.codes import has_codes, read_coded
from lancetable.format.proto import encodings20_pb2, encodings21_pb2, file2_pb2, file_pb2
from lancetable.fragment.select import decoded
from lancetable.store import MemoryFile
from tests.fuzz.messages import damage_message
from tests.fuzz.mutate import damage
from tests.same import DifferenceError, assert_same_array

_FOOTER = struct.Struct("<QQQIIHH4s")


class Region(NamedTuple):
    """A part of a file; ``column`` is the one whose values it holds, else None."""

    name: str
    start: int
    stop: int
    column: int | None = None


class Mutant(NamedTuple):
    """Damaged bytes, what was done to them, and the column whose buffers were hit."""

    data: bytes
    text: str
    column: int | None


@dataclass(frozen=True)
class FileSubject:
    """A data file."""

    name: str
    data: bytes

    @classmethod
    def load(cls, path: Path) -> "FileSubject":
        """Read a file."""
        return cls(f"{path.parent.name}/{path.stem}", path.read_bytes())

    @cached_property
    def footer(self) -> tuple[int, ...]:
        """The numbers of the footer."""
        numbers: tuple[int, ...] = _FOOTER.unpack(self.data[-40:])[:7]
        return numbers

    @cached_property
    def columns(self) -> list[file2_pb2.ColumnMetadata]:
        """The metadata of every column."""
        _, table, _, _, count, *_ = self.footer
        places = self._pairs(table, count)
        return [
            file2_pb2.ColumnMetadata.FromString(self.data[start : start + size])
            for start, size in places
        ]

    def _pairs(self, position: int, count: int) -> list[tuple[int, int]]:
        numbers = struct.unpack_from(f"<{2 * count}Q", self.data, position)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    @cached_property
    def regions(self) -> list[Region]:
        """Every part of the file that means something."""
        columns, table, buffers, count, column_count, *_ = self.footer
        end = len(self.data)
        found = [
            Region("footer", end - 40, end),
            Region("column table", table, table + 16 * column_count),
            Region("buffer table", buffers, buffers + 16 * count),
            Region("column metadata", columns, table),
        ]
        start, size = self._pairs(buffers, count)[0]
        found.append(Region("descriptor", start, start + size))
        for number, column in enumerate(self.columns):
            for page in column.pages:
                pairs = zip(page.buffer_offsets, page.buffer_sizes, strict=True)
                for index, (position, length) in enumerate(pairs):
                    name = f"column {number} buffer {index}"
                    found.append(Region(name, position, position + length, number))
        return [region for region in found if region.stop > region.start]

    def mutant(self, number: int) -> Mutant:
        """Return the damaged file of a number; the same for the same number."""
        chance = random.Random(f"{self.name} {number}")
        if number % 3 == 2:
            return self._damaged_message(chance)
        # The regions take turns, so that each is hit.
        region = self.regions[(number - number // 3) % len(self.regions)]
        data, text = damage(chance, self.data, region.start, region.stop)
        hit = region.column if len(data) == len(self.data) else None
        return Mutant(data, f"{region.name}: {text}", hit)

    def _damaged_message(self, chance: random.Random) -> Mutant:
        columns = [file2_pb2.ColumnMetadata.FromString(c.SerializeToString()) for c in self.columns]
        _, _, buffers, count, *_ = self.footer
        places = self._pairs(buffers, count)
        start, size = places[0]
        descriptor = file_pb2.FileDescriptor.FromString(self.data[start : start + size])
        kind = chance.choice(("descriptor", "column", "page", "page", "page"))
        if kind == "descriptor":
            text = damage_message(chance, descriptor)
        elif columns:
            column = chance.choice(columns)
            is_page = kind == "page" and column.pages
            text = self._damage_page(chance, column) if is_page else damage_message(chance, column)
        else:
            text = "nothing"
        return Mutant(self._rebuilt(columns, descriptor, places), f"{kind}: {text}", None)

    def _damage_page(self, chance: random.Random, column: file2_pb2.ColumnMetadata) -> str:
        page = chance.choice(column.pages)
        wrapped = file2_pb2.Any.FromString(page.encoding.direct.encoding)
        is_old = wrapped.type_url.endswith("ArrayEncoding")
        kind = encodings20_pb2.ArrayEncoding if is_old else encodings21_pb2.PageLayout
        layout = kind.FromString(wrapped.value)
        text = damage_message(chance, layout)
        wrapped.value = layout.SerializeToString()
        page.encoding.direct.encoding = wrapped.SerializeToString()
        return text

    def _rebuilt(
        self,
        columns: list[file2_pb2.ColumnMetadata],
        descriptor: file_pb2.FileDescriptor,
        places: list[tuple[int, int]],
    ) -> bytes:
        """Put a file together again around changed messages."""
        start, *_, major, minor = self.footer
        body = bytearray(self.data[:start])
        message = descriptor.SerializeToString()
        places = [(len(body), len(message)), *places[1:]]
        body += message
        first = len(body)
        table = b""
        for column in columns:
            message = column.SerializeToString()
            table += struct.pack("<QQ", len(body), len(message))
            body += message
        middle = len(body)
        body += table
        last = len(body)
        for pair in places:
            body += struct.pack("<QQ", *pair)
        body += _FOOTER.pack(first, middle, last, len(places), len(columns), major, minor, b"LANC")
        return bytes(body)

    def read(self, data: bytes) -> list[pa.Table]:
        """Read a file as a user would: everything, then a few rows, then as a filter does."""
        reader = FileReader.open(MemoryFile(data), self.name)
        handle = DataFileHandle(reader)
        whole = handle.read()
        rows = [handle.rows - 1, 0, handle.rows // 2] if handle.rows else []
        taken = handle.take(rows)
        is_whole = whole.num_rows == handle.rows and taken.num_rows == len(rows)
        if whole.num_columns and not is_whole:
            raise AssertionError(f"{whole.num_rows} and {taken.num_rows} rows, not {handle.rows}")
        return [whole, taken, _coded(reader, whole)]

    def wrong(self, mutant: Mutant, tables: list[pa.Table]) -> str | None:
        """Say what is wrong with rows read from a mutant."""
        for name in tables[2].column_names:
            try:
                assert_same_array(tables[2].column(name), tables[0].column(name), name)
            except DifferenceError as cause:
                return f"a filter sees other rows: {cause}"
        # The rest can be said only when the metadata is as it was.
        if mutant.column is None:
            return None
        found, expected = tables[0], self.rows
        if found.schema != expected.schema:
            return "the schema changed"
        if found.num_rows != expected.num_rows:
            return f"{found.num_rows} rows, not {expected.num_rows}"
        hit = self.field_of_column[mutant.column]
        for number, name in enumerate(expected.column_names):
            if number == hit:
                continue
            try:
                assert_same_array(found.column(number), expected.column(number), name)
            except DifferenceError as cause:
                return f"column {hit} was damaged, but {cause}"
        return None

    @cached_property
    def field_of_column(self) -> dict[int, int]:
        """Which top-level field each column belongs to."""
        reader = FileReader.open(MemoryFile(self.data), self.name)
        owners = columns_by_walk(reader.schema, reader.version)
        return {
            owners[field.id]: number
            for number, top in enumerate(reader.schema.fields)
            for field in top.walk()
            if field.id in owners
        }

    @cached_property
    def rows(self) -> pa.Table:
        """What the undamaged file holds."""
        return self.read(self.data)[0]


def _coded(reader: FileReader, whole: pa.Table) -> pa.Table:
    """Return the columns that name few values often, read as they are stored."""
    columns = {
        field.name: pa.chunked_array(
            decoded(read_coded(reader, field, range(reader.rows))), whole.column(field.name).type
        )
        for field in reader.schema.fields
        if reader.rows and has_codes(reader, field) and field.name in whole.column_names
    }
    return pa.table(columns)
