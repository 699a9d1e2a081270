"""Open data files, and keep a bounded number of them open.

A mapped file holds a descriptor, a small one its bytes; both are counted against one budget.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from lancetable.errors import CorruptError, FileNotFoundInStoreError, UnsupportedError
from lancetable.file import FileReader
from lancetable.file.legacy import LegacyFile, read_manifest_dictionary
from lancetable.format.manifest.model import DataFile, Fragment
from lancetable.format.schema.types import arrow_type
from lancetable.fragment.projection import TOMBSTONE
from lancetable.fragment.source import Source, whose
from lancetable.store import ReadableFile

DataFileReader: TypeAlias = FileReader | LegacyFile
Key: TypeAlias = tuple[int | None, str]

BUDGET = 64 * 1024 * 1024
MAPPED_WEIGHT = 256 * 1024
"""What a mapped file counts for: 256 of them fill the budget."""
FETCHED_WEIGHT = 1024 * 1024
"""What a file of an object store counts for: so much of its end may be kept."""

LEGACY_VERSIONS = frozenset({(0, 0), (0, 1), (0, 2)})
CURRENT_VERSIONS = frozenset({(0, 3), (2, 0), (2, 1), (2, 2)})


class OpenFiles:
    """Open data files by base and path, the least recently used closed first."""

    __slots__ = ("_files", "_lock", "_weight", "budget")

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._files: OrderedDict[Key, tuple[DataFileReader, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._files)

    def find(self, key: Key) -> DataFileReader | None:
        """Return the file when it is open."""
        found = self._files.get(key)
        if found is None:
            return None
        try:  # noqa: SIM105 - suppress costs more than the whole search
            self._files.move_to_end(key)
        except KeyError:  # another thread closed it just now
            pass
        return found[0]

    def add(
        self, key: Key, reader: DataFileReader, size: int, *, is_mapped: bool = True
    ) -> DataFileReader:
        """Keep a file of ``size`` bytes; return the one already kept if another was faster."""
        weight = min(size, MAPPED_WEIGHT if is_mapped else FETCHED_WEIGHT)
        with self._lock:
            other = self._files.get(key)
            if other is not None:
                return other[0]
            self._files[key] = (reader, weight)
            self._weight += weight
            while self._weight > self.budget and len(self._files) > 1:
                _, (_, freed) = self._files.popitem(last=False)
                self._weight -= freed
        return reader

    def forget(self, key: Key) -> None:
        """Close one file; arrays that still look into it keep it alive."""
        with self._lock:
            found = self._files.pop(key, None)
            if found is not None:
                self._weight -= found[1]


class DataFiles:
    """The data files of one version of a table."""

    __slots__ = ("_asked", "_columns", "_dictionaries", "_open", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self._open = OpenFiles()
        self._columns: dict[tuple[tuple[int, ...], tuple[int, ...]], dict[int, int]] = {}
        self._dictionaries: Mapping[int, pa.Array] | None = None
        self._asked: dict[Key, ReadableFile] = {}

    def ask(self, data_file: DataFile) -> None:
        """Start reading the metadata of a file from the disk, ahead of ``get``."""
        key = (data_file.base_id, data_file.path)
        if self._open.find(key) is None and key not in self._asked:
            store, path = self.source.data_file_place(data_file)
            try:
                self._asked[key] = store.open(path, size=data_file.size)
            except FileNotFoundInStoreError:  # `get` says for what it is needed
                return

    def get(self, fragment: Fragment, data_file: DataFile) -> DataFileReader:
        """Return one file of a fragment, opened if it was not.

        Raises:
            FileNotFoundInStoreError: the file is gone.
            UnsupportedError: the file has a version this library cannot read.
        """
        key = (data_file.base_id, data_file.path)
        found = self._open.find(key)
        if found is not None:
            return found
        store, path = self.source.data_file_place(data_file)
        try:
            asked = self._asked.pop(key, None)
            file = store.open(path, size=data_file.size) if asked is None else asked
            reader = self._reader(file, path, data_file)
        except FileNotFoundInStoreError as cause:
            raise FileNotFoundInStoreError(
                f"{path}: version {self.source.manifest.version} needs this data file"
                f" for fragment {fragment.id}, but it is missing"
                f"{whose(self.source.manifest, data_file.base_id)}"
            ) from cause
        return self._open.add(key, reader, file.size, is_mapped=file.is_mapped)

    def release(self, data_file: DataFile) -> None:
        """Close a file that will not be needed soon."""
        self._open.forget((data_file.base_id, data_file.path))

    def _reader(self, file: ReadableFile, path: str, data_file: DataFile) -> DataFileReader:
        version = (data_file.major, data_file.minor)
        if version in CURRENT_VERSIONS:
            return FileReader.open(file, path, self._columns_of(data_file))
        if version in LEGACY_VERSIONS:
            schema = self.source.manifest.schema
            return LegacyFile.open(file, path, data_file.fields, schema, self._legacy_values())
        raise UnsupportedError(
            f"{path}: data files of version {version[0]}.{version[1]} cannot be read,"
            " only 0.1, 2.0, 2.1 and 2.2; rewrite the table with an older storage version"
        )

    def _columns_of(self, data_file: DataFile) -> Mapping[int, int]:
        shape = (data_file.fields, data_file.column_indices)
        columns = self._columns.get(shape)
        if columns is None:
            if len(data_file.fields) != len(data_file.column_indices):
                raise CorruptError(
                    f"{len(data_file.fields)} fields but {len(data_file.column_indices)} column"
                    " indices are recorded",
                    path=data_file.path,
                )
            pairs = zip(data_file.fields, data_file.column_indices, strict=True)
            columns = {id_: index for id_, index in pairs if id_ != TOMBSTONE}
            self._columns[shape] = columns
        return columns

    def _legacy_values(self) -> Mapping[int, pa.Array]:
        """Return the dictionary values that old tables keep in the manifest file."""
        if self._dictionaries is None:
            pages = {
                field.id: (field.dictionary, arrow_type(field).value_type)
                for field in self.source.manifest.schema.walk()
                if field.dictionary is not None and field.logical_type.startswith("dict")
            }
            values = {}
            if pages:
                file = self.source.store.open(self.source.manifest_path)
                values = {
                    id_: read_manifest_dictionary(file, page, value_type)
                    for id_, (page, value_type) in pages.items()
                }
            self._dictionaries = values
        return self._dictionaries
