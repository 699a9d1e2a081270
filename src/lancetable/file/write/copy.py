"""Join data files page by page, without decoding them.

A page of a 2.1 or 2.2 file is complete in itself: its description and its buffers do not depend on
where in a file they stand, nor on other pages. So the pages of several files, one behind the other,
are the pages of one file with all rows. Four things are not so simple and are not copied: blobs,
whose pages hold positions in their file; columns with bytes outside of their pages; 2.0 files,
whose structs must have a single page; and structs of lists of which only some pages say that they
may be null, since pylance cannot read such a file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from lancetable.errors import CorruptError
from lancetable.file.codec import (
    FOOTER_BYTES,
    decode_footer,
    decode_place,
    decode_rows,
    decode_stored_pages,
    encode_tail,
)
from lancetable.file.error_context import Placed
from lancetable.file.leaf_info import column_owners, leaves_of
from lancetable.file.model import V2_1, V2_2, FileVersion, WrittenColumn, WrittenPage
from lancetable.file.write.writer import ALIGNMENT, WrittenFile, aligned_parts
from lancetable.format.encoding.build.shred import LISTS
from lancetable.format.encoding.codec import decode_layout
from lancetable.format.encoding.repdef import Layer
from lancetable.format.schema.codec import decode_file_descriptor
from lancetable.format.schema.model import Field, Schema
from lancetable.store import ByteRange, Bytes, ReadableFile, WritableFile

COPYABLE = (V2_1, V2_2)
_TAIL_BYTES = 64 * 1024
_AT_A_TIME = 4 * 1024 * 1024
_MAPPED_BYTES = 8 * 1024 * 1024


class StoredFile:
    """A data file whose pages are looked at as they are stored."""

    def __init__(self, file: ReadableFile, path: str, columns: Mapping[int, int]) -> None:
        self._file = file
        self.path = path
        self._numbers = columns
        with Placed(path, "footer"):
            start = 0 if file.is_mapped else max(0, file.size - _TAIL_BYTES)
            (tail,) = file.read_ranges([ByteRange(start, file.size)])
            self._footer = decode_footer(tail, file.size)
            self.rows, self._schema = _described(
                self._bytes(*self._place(self._footer.buffer_table, 0))
            )

    @property
    def version(self) -> FileVersion:
        """The version of the file."""
        return self._footer.version

    def holds(self, field: Field) -> bool:
        """Return whether the file has all of a top-level column, of the same types throughout."""
        if self._footer.buffers != 1 or any(part.is_blob for part in field.walk()):
            return False
        owners = list(column_owners(field, self.version))
        if any(owner.id not in self._numbers for owner in owners):
            return False
        return _are_alike(field, self._schema)

    def pages(self, field: Field, factor: int) -> list[WrittenPage] | None:
        """Return the pages of the column that a field owns; ``None`` when they are not all of it.

        Raises:
            CorruptError: the column has another number of rows than the file.
        """
        number = self._numbers[field.id]
        with Placed(self.path, f"column {number}"):
            if not 0 <= number < self._footer.columns:
                raise CorruptError(
                    f"a field is in column {number}, the file has {self._footer.columns}"
                )
            data = self._view(*self._place(self._footer.column_table, number))
            limit = self._footer.column_start
            pages = decode_stored_pages(data, self.version, limit, self._bytes)
            if pages is not None and sum(page.rows for page in pages) != self.rows * factor:
                raise CorruptError(f"column {number} holds other rows than the file's {self.rows}")
        return pages

    def _place(self, table: int, number: int) -> tuple[int, int]:
        entry = self._view(table + number * 16, table + number * 16 + 16)
        return decode_place(entry, self._file.size - FOOTER_BYTES)

    def _view(self, start: int, stop: int) -> memoryview:
        return self._file.read_ranges([ByteRange(start, stop)])[0]

    def _bytes(self, start: int, stop: int) -> bytes:
        return bytes(self._view(start, stop))


@lru_cache(maxsize=256)
def _described(descriptor: bytes) -> tuple[int, Schema]:
    return decode_rows(descriptor), decode_file_descriptor(descriptor).schema


@lru_cache(maxsize=4096)
def _are_alike(field: Field, schema: Schema) -> bool:
    """Return whether a file describes all of a column as the table does."""
    stored = {one.id: one for one in schema.walk()}
    return all(_is_alike(part, stored.get(part.id)) for part in field.walk())


def _is_alike(field: Field, stored: Field | None) -> bool:
    """Return whether a file describes a part of a column as the table does."""
    if stored is None or stored.logical_type != field.logical_type:
        return False
    if field.is_packed != stored.is_packed or len(field.children) != len(stored.children):
        return False
    return [one.id for one in field.children] == [one.id for one in stored.children]


class Owner(NamedTuple):
    """A column of a file in the making: the field that owns it, and how many entries make a row."""

    field: Field
    factor: int


def owners_of(schema: Schema, version: FileVersion) -> list[tuple[Field, list[Owner]]]:
    """Return for each top-level column the columns of a file that hold it, in their order."""
    found = []
    for field in schema.fields:
        factors = {leaf.field.id: leaf.factor for leaf in leaves_of(field)}
        owners = [Owner(one, factors[one.id]) for one in column_owners(field, version)]
        found.append((field, owners))
    return found


def holds_lists_in_structs(field: Field) -> bool:
    """Return whether a column has a struct with a list somewhere in it."""
    structs = [one for one in field.walk() if one.logical_type == "struct" and not one.is_packed]
    return any(below.logical_type in LISTS for one in structs for below in one.walk())


def structs_that_may_be_null(page: WrittenPage) -> tuple[Layer, ...]:
    """Return what a page says of the structs above its values, from the inside out.

    Raises:
        CorruptError: the page is not described as pages are.
        UnsupportedError: it is described in a way of a later version.
    """
    layout = decode_layout(page.description)
    return tuple(layer for layer in layout.layers.items[1:] if not layer.is_list)


class PageCopier:
    """One data file in the making out of the pages of others."""

    def __init__(self, file: WritableFile, schema: Schema, version: FileVersion) -> None:
        self._file = file
        self._schema = schema
        self._version = version
        self._owners = [owner for _, owners in owners_of(schema, version) for owner in owners]
        self._pages: dict[int, list[WrittenPage]] = {one.field.id: [] for one in self._owners}
        self._position = 0
        self.rows = 0

    def add(self, rows: int, columns: Mapping[int, tuple["FilePart", list[WrittenPage]]]) -> None:
        """Add rows: for each field that owns a column the file it is in and its pages."""
        for owner in self._owners:
            file, pages = columns[owner.field.id]
            first = self.rows * owner.factor
            for run in _runs(pages):
                self._copy(owner.field.id, file, run, first)
        self.rows += rows

    def _copy(self, id_: int, file: "FilePart", run: Sequence[WrittenPage], first: int) -> None:
        if len(run) == 1 and _weight(run[0]) > _AT_A_TIME:
            places = iter([self._long(file, *buffer) for buffer in run[0].buffers])
        else:
            places = iter(self._short(file, [one for page in run for one in page.buffers]))
        for page in run:
            buffers = tuple(next(places) for _ in page.buffers)
            moved = page._replace(first_row=first + page.first_row, buffers=buffers)
            self._pages[id_].append(moved)

    def _short(self, file: "FilePart", places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Copy buffers together; return their new places."""
        contents = file.read([ByteRange(at, at + size) for at, size in places])
        parts, positions = aligned_parts(contents, self._position)
        self._put(parts)
        return [(at, size) for at, (_, size) in zip(positions, places, strict=True)]

    def _long(self, file: "FilePart", at: int, size: int) -> tuple[int, int]:
        """Copy one buffer piece by piece; return its new place."""
        place = self._position
        for first in range(at, at + size, _AT_A_TIME):
            last = min(first + _AT_A_TIME, at + size)
            self._put(file.read([ByteRange(first, last)]))
        self._put([bytes(-size % ALIGNMENT)])
        return place, size

    def _put(self, parts: Sequence[Bytes]) -> None:
        self._file.write(parts)
        self._position += sum(map(len, parts))

    def finish(self) -> WrittenFile:
        """Write what comes behind the pages and close the file."""
        columns = [WrittenColumn(self._pages[one.field.id], is_blob=False) for one in self._owners]
        tail = encode_tail(self._schema, columns, self.rows, self._version, self._position)
        self._file.write([tail])
        self._file.close()
        ids = tuple(one.field.id for one in self._owners)
        size = self._position + len(tail)
        return WrittenFile(ids, tuple(range(len(ids))), self._version, self.rows, size)

    def abort(self) -> None:
        """Give up and remove what was written."""
        self._file.abort()


class FilePart:
    """A file that is opened again after some bytes were read, so that mapped ones do not add up."""

    def __init__(self, open_: Callable[[], ReadableFile]) -> None:
        self._open = open_
        self._file: ReadableFile | None = None
        self._read = 0

    def read(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return the bytes of each range."""
        if self._file is None or self._read >= _MAPPED_BYTES:
            self._file, self._read = self._open(), 0
        self._read += sum(stop - start for start, stop in ranges)
        return self._file.read_ranges(ranges)


def _weight(page: WrittenPage) -> int:
    return sum(size for _, size in page.buffers)


def _runs(pages: Sequence[WrittenPage]) -> Iterator[list[WrittenPage]]:
    """Cut pages into runs that are fetched and written together; a large one stands alone."""
    run: list[WrittenPage] = []
    held = 0
    for page in pages:
        if run and held + _weight(page) > _AT_A_TIME:
            yield run
            run, held = [], 0
        run.append(page)
        held += _weight(page)
    if run:
        yield run
