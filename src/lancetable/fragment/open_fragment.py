"""One opened fragment: its rows, deletions and row ids."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.manifest.model import Fragment, SequenceSource
from lancetable.format.manifest.rowids import IdSpans
from lancetable.format.schema.model import Field
from lancetable.fragment.deletions import Deletions, load_deletions
from lancetable.fragment.files import DataFileReader, DataFiles
from lancetable.fragment.projection import CREATED_AT, ROW_ID, SPILLED_IDS
from lancetable.fragment.rowids import load_id_spans, load_row_ids, load_versions
from lancetable.fragment.source import Source

Unsigned = npt.NDArray[np.uint64]
Loaded = TypeVar("Loaded")
Loader: TypeAlias = Callable[[Source, SequenceSource, int, Callable[[], Unsigned]], Loaded]


class OpenFragment:
    """One fragment and, as they are asked for, the things its metadata points to."""

    __slots__ = ("_deletions", "_live", "_rows", "_sequences", "data_files", "files", "fragment")

    def __init__(
        self, fragment: Fragment, data_files: DataFiles, live: "OpenFragment | None" = None
    ) -> None:
        """Prepare to look at the files.

        ``live`` is the same fragment with its deletion file, when ``fragment`` has none so that
        its deleted rows are read.
        """
        self.fragment = fragment
        self._live = live
        self.files = fragment.files
        self.data_files = data_files
        self._rows: int | None = fragment.physical_rows or None
        self._deletions: Deletions | None = None
        self._sequences: dict[str, Unsigned | None] = {}

    @property
    def rows(self) -> int:
        """Rows in the files, deleted ones included."""
        if self._rows is None:
            self._rows = self.file(0).rows if self.files else self.fragment.physical_rows
        return self._rows

    @property
    def deletions(self) -> Deletions | None:
        """The deleted rows that reads leave out; None when there are none."""
        if self.fragment.deletion_file is None:
            return None
        if self._deletions is None:
            self._deletions = load_deletions(
                self.data_files.source, self.fragment, self.fragment.deletion_file, self.rows
            )
        return self._deletions

    @property
    def deleted(self) -> Deletions | None:
        """The deleted rows, whether reads leave them out or not; None when there are none."""
        return self.deletions if self._live is None else self._live.deletions

    @property
    def shows_deleted(self) -> bool:
        """True when reads return deleted rows, with null for their row ids and row addresses."""
        return self._live is not None

    def file(self, number: int) -> DataFileReader:
        """Return one of the fragment's data files, opened.

        Raises:
            CorruptError: the file has another number of rows than the rest of the fragment.
        """
        data_file = self.files[number]
        reader = self.data_files.get(self.fragment, data_file)
        if self._rows is None:
            self._rows = reader.rows
        elif reader.rows != self._rows:
            raise CorruptError(
                f"fragment {self.fragment.id} has {self._rows} rows, this file has {reader.rows}",
                path=data_file.path,
            )
        return reader

    def release(self) -> None:
        """Close the fragment's data files."""
        for data_file in self.files:
            self.data_files.release(data_file)

    def sequence(self, name: str) -> Unsigned | None:
        """Return the stored values of a system column for all rows; None when none are stored."""
        if name not in self._sequences:
            self._sequences[name] = self._load(name)
        return self._sequences[name]

    def id_spans(self) -> IdSpans | None:
        """Return the row ids of all rows as spans; None when none are stored."""
        return self._loaded(ROW_ID, load_id_spans)

    def _load(self, name: str) -> Unsigned | None:
        return self._loaded(name, load_row_ids if name == ROW_ID else load_versions)

    def _loaded(self, name: str, load: Loader[Loaded]) -> Loaded | None:
        stored = self._stored(name)
        if stored is None:
            return None
        source = self.data_files.source
        try:
            return load(source, stored, self.rows, lambda: self._spilled(name))
        except CorruptError as error:
            raise error.at(source.manifest_path, f"fragment {self.fragment.id}") from error

    def _stored(self, name: str) -> SequenceSource | None:
        if name == ROW_ID:
            return self.fragment.row_ids
        if name == CREATED_AT:
            return self.fragment.created_at
        return self.fragment.last_updated_at

    def _spilled(self, name: str) -> Unsigned:
        id_ = SPILLED_IDS[name]
        for number, data_file in enumerate(self.files):
            if id_ in data_file.fields:
                field = Field(name, id_, "uint64", nullable=False)
                chunks = self.file(number).read([field], range(self.rows))[0]
                parts = [chunk.to_numpy(zero_copy_only=False) for chunk in chunks]
                return np.concatenate(parts) if parts else np.empty(0, np.uint64)
        raise CorruptError(f"no data file holds the column '{name}' that the manifest promises")
