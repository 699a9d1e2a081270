"""The readers of all fragments of one version, and the positions of rows in them."""

from bisect import bisect_right
from collections.abc import Iterable
from functools import partial

import numpy as np

from lancetable.format.encoding.kernels.addressing import GATHER
from lancetable.fragment.blob_dataset import blob_dataset_of
from lancetable.fragment.files import DataFiles
from lancetable.fragment.fragments import OpenFragments
from lancetable.fragment.projection import Projection
from lancetable.fragment.random_access import TableGather
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.rowids import RowIdIndex
from lancetable.fragment.source import Source

KEPT_GATHERS = 16


class Readers:
    """One reader per fragment, made when first asked for; safe to use from several threads."""

    __slots__ = (
        "_blob_dataset",
        "_fragments",
        "_gathers",
        "_has_deletions",
        "_readers",
        "source",
    )

    def __init__(self, source: Source, live: Source | None = None) -> None:
        """Prepare to read.

        ``live`` is the same version with its deletion files, when ``source`` has none so that
        deleted rows are read.
        """
        self.source = source
        self._fragments = OpenFragments(source, live)
        self._readers: dict[int, FragmentReader] = {}
        self._blob_dataset = blob_dataset_of(source)
        self._has_deletions: bool | None = None
        self._gathers: dict[tuple[int, ...], TableGather] = {}

    def __len__(self) -> int:
        return len(self.source.manifest.fragments)

    def __getitem__(self, position: int) -> FragmentReader:
        reader = self._readers.get(position)
        if reader is None:
            fragments = self._fragments
            reader = FragmentReader(
                fragments[position],
                partial(fragments.first_live_row, position),
                self._blob_dataset,
            )
            self._readers[position] = reader
        return reader

    @property
    def data_files(self) -> DataFiles:
        """The data files of the version."""
        return self._fragments.data_files

    @property
    def starts(self) -> list[int]:
        """The number of live rows before each fragment, and at the end the number of all."""
        return self._fragments.starts

    @property
    def has_deletions(self) -> bool:
        """True when some fragment has deleted rows."""
        if self._has_deletions is None:
            fragments = self.source.manifest.fragments
            self._has_deletions = any(fragment.deletion_file for fragment in fragments)
        return self._has_deletions

    def with_deletions(self, positions: Iterable[int]) -> list[int]:
        """Return the fragments among these that have deleted rows, their deletion files read."""
        return self._fragments.with_deletions(positions)

    def gather(self, projection: Projection) -> TableGather | None:
        """Return what finds single rows of a projection.

        None without compiled kernels, and for files far away, which are better read side by side.
        """
        # The fields of a table are the same objects for every plan, and kept by the gather.
        key = tuple(map(id, projection.fields))
        found = self._gathers.get(key)
        if found is None and GATHER is not None and self.source.store.width == 1:
            if len(self._gathers) >= KEPT_GATHERS:
                self._gathers.clear()
            found = TableGather(GATHER, projection, self.starts, self._fragments.__getitem__)
            self._gathers[key] = found
        return found

    def live_rows(self, position: int) -> int:
        """Return the number of live rows of one fragment; asks its files if it must."""
        return self._fragments.live_rows(position)

    def locate(self, row: int) -> tuple[int, int]:
        """Return the fragment's position and the offset of the n-th live row of the table."""
        starts = self.starts
        position = bisect_right(starts, row) - 1
        rank = row - starts[position]
        deletions = self[position].opened.deletions
        if deletions is not None:
            rank = int(deletions.physical(np.array([rank]))[0])
        return position, rank

    @property
    def positions(self) -> dict[int, int]:
        """The position of each fragment id in the manifest."""
        return self._fragments.positions

    @property
    def row_id_index(self) -> RowIdIndex | None:
        """The index from row ids to addresses; None when addresses are the row ids."""
        return self._fragments.row_id_index
