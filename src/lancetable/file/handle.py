"""A single data file for people: open it, look at it, read from it."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.file.model import PageInfo
from lancetable.file.reader import FileReader
from lancetable.format.arrays import numbers
from lancetable.format.encoding.base import Rows
from lancetable.format.schema.project import project
from lancetable.format.schema.types import arrow_schema, relabel
from lancetable.store import ByteRange, TableLocation

LEGACY = {(0, 0), (0, 1), (0, 2)}


class DataFileHandle:
    """One open data file, read without its table."""

    def __init__(self, reader: FileReader) -> None:
        self._reader = reader
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

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read all rows, of all columns or of the named ones (``a.b`` names a part of a struct)."""
        return self._read(columns, range(self.rows))

    def take(self, rows: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Read single rows, in the given order; a row may be asked for twice.

        Raises:
            InputError: a row number is negative or behind the last row.
        """
        wanted = np.asarray(rows, np.int64)
        if len(wanted) and (int(wanted.min()) < 0 or int(wanted.max()) >= self.rows):
            raise InputError(f"{self.path}: rows go from 0 to {self.rows - 1}")
        distinct, place = np.unique(wanted, return_inverse=True)
        found = self._read(columns, distinct)
        in_order = len(distinct) == len(wanted) and bool((distinct == wanted).all())
        return found if in_order else found.take(numbers(place))

    def pages(self) -> list[PageInfo]:
        """Describe every page: its column, its rows and how it is encoded."""
        return self._reader.pages()

    def _read(self, columns: Sequence[str] | None, rows: Rows) -> pa.Table:
        schema = self._reader.schema
        if columns is not None:
            schema = project(schema, columns)
        final = arrow_schema(schema)
        found = self._reader.read(schema.fields, rows)
        arrays = [
            pa.chunked_array([_typed(chunk, field.type) for chunk in chunks], field.type)
            for chunks, field in zip(found, final, strict=True)
        ]
        if not arrays:
            return pa.Table.from_struct_array(pa.nulls(len(rows), pa.struct([]))).cast(final)
        return pa.Table.from_arrays(arrays, schema=final)

    def __repr__(self) -> str:
        return f"DataFileHandle({self.path!r}, version {self.version}, {self.rows} rows)"


def _typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else relabel(array, type_)


def open_file(path: str) -> DataFileHandle:
    """Open a single data file of version 2.0, 2.1 or 2.2.

    Raises:
        FileNotFoundInStoreError: there is no such file.
        CorruptError: it is no data file, or is damaged.
        UnsupportedError: its version is not supported, or cannot be read without a table.
    """
    folder, _, name = str(path).replace("\\", "/").rpartition("/")
    store = TableLocation(folder or ("/" if str(path).startswith("/") else ".")).open()
    file = store.open(name)
    if file.size >= 16:
        (tail,) = file.read_ranges([ByteRange(file.size - 8, file.size)])
        major, minor = int.from_bytes(tail[:2], "little"), int.from_bytes(tail[2:4], "little")
        if bytes(tail[4:]) == b"LANC" and (major, minor) in LEGACY:
            raise UnsupportedError(
                f"{path}: a data file of version 0.1 carries no schema; open its table instead"
            )
        if bytes(tail[4:]) != b"LANC":
            raise CorruptError("this is no data file: it does not end with 'LANC'", path=str(path))
    return DataFileHandle(FileReader.open(file, str(path)))
