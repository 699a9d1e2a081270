"""Open a single data file to inspect it and read its rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.file.model import PageInfo
from lancetable.file.read.payloads import PayloadFinder, PayloadPlaces, with_bytes
from lancetable.file.read.reader import FileReader
from lancetable.format.arrays import numbers
from lancetable.format.encoding.base import Rows
from lancetable.format.limits import read_limits
from lancetable.format.schema.model import Blobs, Field
from lancetable.format.schema.project import project, with_payloads
from lancetable.format.schema.types import arrow_schema, arrow_type, fixed_width, relabel
from lancetable.store import ByteRange, Store, TableLocation

if TYPE_CHECKING:
    from os import PathLike

LEGACY = {(0, 0), (0, 1), (0, 2)}


class DataFileHandle:
    """One open data file, read without its table."""

    def __init__(self, reader: FileReader, store: Store | None = None, name: str = "") -> None:
        """Wrap a reader; side files of blobs are found in ``store``, beside the file ``name``."""
        self._reader = reader
        self._store, self._name = store, name
        self.path = reader.path

    @property
    def schema(self) -> pa.Schema:
        """The schema the file carries."""
        return arrow_schema(self._reader.schema)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._reader.rows

    @property
    def version(self) -> str:
        """The version of the file, for example ``2.1``."""
        return str(self._reader.version)

    def read(
        self, columns: Sequence[str] | None = None, *, blobs: Blobs = "descriptions"
    ) -> pa.Table:
        """Read all rows.

        Args:
            columns: the columns, all when it is left out; ``a.b`` names a part of a struct.
            blobs: what blob columns hold: ``descriptions`` or ``bytes``.

        Raises:
            SchemaError: a column is unknown.
            InputError: a blob is outside of the file and the side files beside it.
        """
        return self._read(columns, range(self.rows), blobs)

    def take(
        self,
        rows: Sequence[int],
        columns: Sequence[str] | None = None,
        *,
        blobs: Blobs = "descriptions",
    ) -> pa.Table:
        """Read single rows, in the given order; a row may be asked for twice.

        Raises:
            InputError: a row number is negative or behind the last row.
        """
        wanted = np.asarray(rows, np.int64)
        if len(wanted) and (int(wanted.min()) < 0 or int(wanted.max()) >= self.rows):
            raise InputError(f"{self.path}: rows go from 0 to {self.rows - 1}")
        distinct, place = np.unique(wanted, return_inverse=True)
        found = self._read(columns, distinct, blobs)
        in_order = len(distinct) == len(wanted) and bool((distinct == wanted).all())
        return found if in_order else found.take(numbers(place))

    def pages(self) -> list[PageInfo]:
        """Describe every page: its column, its rows and how it is encoded."""
        return self._reader.pages()

    @property
    def global_buffers(self) -> int:
        """Number of global buffers; number 0 is the description of the file itself."""
        return self._reader.global_buffers

    def read_global_buffer(self, number: int) -> bytes:
        """Return the content of a global buffer.

        Raises:
            InputError: there is no buffer with this number.
        """
        if not 0 <= number < self.global_buffers:
            raise InputError(
                f"{self.path}: there is no global buffer {number}, the last is"
                f" {self.global_buffers - 1}"
            )
        return self._reader.global_buffer(number)

    def _read(self, columns: Sequence[str] | None, rows: Rows, blobs: Blobs) -> pa.Table:
        if blobs not in get_args(Blobs):
            raise InputError(f"blobs must be 'descriptions' or 'bytes', not {blobs!r}")
        schema = self._reader.schema
        if columns is not None:
            schema = project(schema, columns)
        read_limits().check_row(int(sum(map(_row_bytes, schema.fields))))
        found = self._reader.read(schema.fields, rows)
        if blobs == "bytes":
            found = [
                [with_bytes(field, chunk, self._finder) for chunk in chunks]
                for field, chunks in zip(schema.fields, found, strict=True)
            ]
            shown = tuple(with_payloads(field) for field in schema.fields)
            schema = schema._replace(fields=shown)
        final = arrow_schema(schema)
        arrays = [
            pa.chunked_array([_typed(chunk, field.type) for chunk in chunks], field.type)
            for chunks, field in zip(found, final, strict=True)
        ]
        if not arrays:
            return pa.Table.from_struct_array(pa.nulls(len(rows), pa.struct([]))).cast(final)
        return pa.Table.from_arrays(arrays, schema=final)

    def _finder(self, field: Field) -> PayloadFinder:
        if self._store is None:
            raise InputError(f"{self.path}: its blobs are read only when open_file opened it")
        reader = self._reader
        places = PayloadPlaces(self._store, self._name, lambda: reader.file, self._refuse_external)
        return PayloadFinder(field, places)

    def _refuse_external(self, base_id: int, uri: str) -> tuple[Store, str]:
        raise InputError(
            f"{self.path}: a blob points at {uri!r}{f' below base {base_id}' if base_id else ''},"
            " which only its table can follow; open the table instead"
        )

    def __repr__(self) -> str:
        return f"DataFileHandle({self.path!r}, version {self.version}, {self.rows} rows)"


def _row_bytes(field: Field) -> float:
    return fixed_width(arrow_type(field)) or 0


def _typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else relabel(array, type_)


def open_file(path: "str | PathLike[str]") -> DataFileHandle:
    """Open a single data file of version 2.0, 2.1 or 2.2.

    Raises:
        FileNotFoundInStoreError: there is no such file.
        CorruptError: it is no data file, or is damaged.
        UnsupportedError: its version is not supported, or cannot be read without a table.
    """
    store, name = file_place(path)
    file = store.open(name)
    if file.size >= 16:
        (tail,) = file.read_ranges([ByteRange(file.size - 8, file.size)])
        major, minor = int.from_bytes(tail[:2], "little"), int.from_bytes(tail[2:4], "little")
        if bytes(tail[4:]) == b"LANC" and (major, minor) in LEGACY:
            raise UnsupportedError(
                f"{path}: a data file of version 0.1 carries no schema; open its table instead"
            )
        if bytes(tail[4:]) != b"LANC":
            raise CorruptError(
                "this is not a data file: it does not end with 'LANC'", path=str(path)
            )
    return DataFileHandle(FileReader.open(file, str(path)), store, name)


def file_place(path: "str | PathLike[str]") -> tuple[Store, str]:
    """Return the store of the folder that a path leads to, and the name of the file in it."""
    folder, _, name = str(path).replace("\\", "/").rpartition("/")
    location = TableLocation(folder or ("/" if str(path).startswith("/") else "."))
    return location.open(), name
