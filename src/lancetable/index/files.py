"""The files of one index segment, opened when they are first needed."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.file.reader import FileReader
from lancetable.format.manifest.model import IndexSegment
from lancetable.format.schema.model import Field
from lancetable.store import Store


class SegmentFiles:
    """The data files of a segment by name; recorded sizes save a request each."""

    def __init__(self, store: Store, folder: str, segment: IndexSegment) -> None:
        self.segment = segment
        self._store = store
        self._folder = folder
        self._sizes = {file.path: file.size for file in segment.files}
        self._open: dict[str, FileReader] = {}

    def rows(self, name: str) -> int:
        """Return the number of rows of a file."""
        return self._reader(name).rows

    def metadata(self, name: str) -> Mapping[str, str]:
        """Return the schema metadata of a file."""
        found = self._reader(name).schema.metadata
        return {_text(key): _text(value) for key, value in found.items()}

    def read(
        self, name: str, columns: tuple[str, ...], rows: range | npt.NDArray[np.int64] | None = None
    ) -> list[pa.Array]:
        """Return columns of a file, all rows unless some are given.

        Raises:
            CorruptError: the file lacks a column or is damaged.
            FileNotFoundInStoreError: there is no such file.
        """
        reader = self._reader(name)
        fields = [self._field(reader, column) for column in columns]
        chosen = range(reader.rows) if rows is None else rows
        found = reader.read(fields, chosen)
        return [
            chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
            for chunks in (
                each or reader.read([field], range(0))[0]
                for each, field in zip(found, fields, strict=True)
            )
        ]

    def global_buffer(self, name: str, number: int) -> bytes:
        """Return a global buffer of a file.

        Raises:
            CorruptError: the file has no such buffer.
        """
        reader = self._reader(name)
        if not 0 < number < reader.global_buffers:
            raise CorruptError(
                f"global buffer {number} is missing, the last is {reader.global_buffers - 1}",
                path=reader.path,
            )
        return reader.global_buffer(number)

    def _reader(self, name: str) -> FileReader:
        found = self._open.get(name)
        if found is None:
            path = f"{self._folder}/{name}"
            file = self._store.open(path, size=self._sizes.get(name) or None)
            found = self._open[name] = FileReader.open(file, path)
        return found

    def _field(self, reader: FileReader, column: str) -> Field:
        for field in reader.schema.fields:
            if field.name == column:
                return field
        raise CorruptError(f"the index file has no column {column!r}", path=reader.path)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
