"""The files of one index segment, opened when they are first needed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.file.read.reader import FileReader
from lancetable.format.manifest.model import IndexSegment
from lancetable.format.schema.model import Field
from lancetable.store import Store

KEPT_BYTES = 256 << 20
T = TypeVar("T")


class Pages:
    """What was read of index files; what was not used for longest is forgotten."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most_bytes
        self._held = 0
        self._kept: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object) -> Any:  # noqa: ANN401 - what was kept under the key
        """Return what is still kept; None otherwise."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: object, value: object, size: int) -> None:
        """Keep something of a size, unless that is more than all may have together."""
        with self._lock:
            self._held += size - self._kept.pop(key, (None, 0))[1]
            self._kept[key] = (value, size)
            while self._held > self._most:
                self._held -= self._kept.popitem(last=False)[1][1]


PAGES = Pages()
"""Those of this process."""


class SegmentFiles:
    """The data files of a segment by name; recorded sizes save a request each."""

    def __init__(self, store: Store, folder: str, segment: IndexSegment) -> None:
        self.segment = segment
        self._store = store
        self._folder = folder
        self._place = (store.root, folder)
        self._sizes = {file.path: file.size for file in segment.files}
        self._open: dict[str, FileReader] = {}

    @property
    def place(self) -> tuple[str, str]:
        """Where the files are; other segments are elsewhere."""
        return self._place

    def columns(self, name: str) -> list[str]:
        """Return the names of the columns of a file."""
        return [field.name for field in self._reader(name).schema.fields]

    def portions(self, name: str, rows: int, most: int) -> Iterator[range]:
        """Yield the rows of a file in portions, as many as there is room for in memory."""
        total = self.rows(name)
        per_row = self._sizes.get(name, 0) / max(total, 1)
        for first in range(0, total, rows):
            if first * per_row > most:
                return
            yield range(first, min(first + rows, total))

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

    def find(self, key: object) -> Any:  # noqa: ANN401 - what was kept under the key
        """Return what was made of the files before and is still kept; None otherwise."""
        return PAGES.get((self._place, key))

    def keep(self, key: object, value: object, size: int) -> None:
        """Keep what was made of the files, of which it takes some bytes to hold it."""
        PAGES.put((self._place, key), value, size)

    def kept(self, key: object, make: Callable[[], tuple[T, int]]) -> T:
        """Return what was made of the files before, or make it; with it comes its size."""
        found: T | None = self.find(key)
        if found is None:
            found, size = make()
            self.keep(key, found, size)
        return found

    def page(self, name: str, columns: tuple[str, ...], rows: range) -> list[pa.Array]:
        """Return some rows of columns of a file, kept from an earlier call if possible.

        Raises:
            CorruptError: the file lacks a column or is damaged.
            FileNotFoundInStoreError: there is no such file.
        """

        def read() -> tuple[list[pa.Array], int]:
            found = self.read(name, columns, rows)
            return found, sum(one.get_total_buffer_size() for one in found)

        return self.kept((name, columns, rows.start, rows.stop), read)

    def type(self, name: str, column: str) -> pa.DataType:
        """Return the type of a column of a file.

        Raises:
            CorruptError: the file lacks the column or is damaged.
        """
        return self.read(name, (column,), range(0))[0].type

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
