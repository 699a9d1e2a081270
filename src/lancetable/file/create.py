"""Write a single data file without a table."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from lancetable.errors import ExistsError, InputError, SchemaError
from lancetable.file.handle import file_place
from lancetable.file.model import V2_1, V2_2, FileVersion, file_version
from lancetable.file.read.payloads import sidecar_path
from lancetable.file.write.blobs import second_generation
from lancetable.file.write.writer import FileWriter
from lancetable.format.schema.types import schema_from_arrow
from lancetable.store import Store

if TYPE_CHECKING:
    from os import PathLike


class DataFileWriter:
    """A data file in the making; leaving its ``with`` block closes it, an error removes it."""

    def __init__(self, store: Store, name: str, schema: pa.Schema, version: FileVersion) -> None:
        stored = second_generation(schema) if version == V2_2 else schema
        self._names = stored.names
        self._is_open = True
        file = store.create(name)
        try:
            self._writer = FileWriter(
                file,
                schema_from_arrow(stored),
                version,
                sidecars=lambda blob_id: store.create(sidecar_path(name, blob_id)),
            )
        except BaseException:
            file.abort()
            raise

    @property
    def rows(self) -> int:
        """Number of rows written so far."""
        return self._writer.rows

    def write(self, data: pa.Table | pa.RecordBatch) -> None:
        """Add rows; the columns may stand in any order.

        Raises:
            SchemaError: the data has other columns, or other types.
            InputError: a value cannot be stored, or the file is closed.
        """
        self._check_open()
        if sorted(data.schema.names) != sorted(self._names):
            raise SchemaError(
                f"the data has the columns {data.schema.names}, the file has {self._names}"
            )
        chosen = data.select(self._names)
        batches = chosen.to_batches() if isinstance(chosen, pa.Table) else [chosen]
        for batch in batches:
            self._writer.write(batch)

    def add_global_buffer(self, data: bytes) -> int:
        """Store bytes of your own in the file; return the number under which they are read."""
        self._check_open()
        return self._writer.add_global_buffer(data)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Add an entry to the metadata of the schema, which is written when the file is closed."""
        self._check_open()
        self._writer.add_schema_metadata(key, value)

    def close(self) -> int:
        """Finish the file and return the number of its rows; a second call does nothing."""
        if self._is_open:
            self._is_open = False
            self._writer.finish()
        return self.rows

    def _check_open(self) -> None:
        if not self._is_open:
            raise InputError("the data file is closed; create another one")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        elif self._is_open:
            self._is_open = False
            self._writer.abort()


def create_file(
    path: "str | PathLike[str]", schema: pa.Schema, *, version: str = str(V2_1)
) -> DataFileWriter:
    """Begin a single data file of version 2.0, 2.1 or 2.2.

    Raises:
        ExistsError: there is such a file.
        SchemaError: files of that version cannot hold a column.
        InputError: no such version can be written.
    """
    store, name = file_place(path)
    wanted = file_version(version)
    if store.exists(name):
        raise ExistsError(f"{path}: the file already exists; choose another name")
    return DataFileWriter(store, name, schema, wanted)
