"""Deleted and live rows of a fragment, and the deletion of more rows.

Deleted offsets are kept sorted. The number of live rows before the i-th deleted offset is that
offset minus i, which turns "the n-th live row" into one binary search.
"""

import secrets
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError, FileNotFoundInStoreError
from lancetable.format.manifest.deletions import choose_kind, decode_deletions, encode_deletions
from lancetable.format.manifest.model import DeletionFile, DeletionKind, Fragment
from lancetable.format.manifest.names import deletion_path
from lancetable.fragment.source import Source, read_whole, whose
from lancetable.store import Store

Offsets = npt.NDArray[np.int64]


class Deletions:
    """The deleted rows of one fragment."""

    __slots__ = ("_live_before", "offsets")

    def __init__(self, offsets: Offsets) -> None:
        self.offsets = offsets
        self._live_before: Offsets | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def physical(self, ranks: Offsets) -> Offsets:
        """Return the offsets of the n-th live rows, n counted from 0."""
        if self._live_before is None:
            self._live_before = self.offsets - np.arange(len(self.offsets))
        return ranks + np.searchsorted(self._live_before, ranks, side="right")

    def rank(self, offsets: Offsets) -> Offsets:
        """Return how many live rows stand before each offset."""
        return offsets - np.searchsorted(self.offsets, offsets)

    def are(self, offsets: Offsets) -> npt.NDArray[np.bool_]:
        """Say for each offset whether it is deleted."""
        if not len(self.offsets):
            return np.zeros(len(offsets), np.bool_)
        where = np.searchsorted(self.offsets, offsets)
        where[where == len(self.offsets)] = 0
        found: npt.NDArray[np.bool_] = self.offsets[where] == offsets
        return found

    def within(self, start: int, stop: int) -> Offsets:
        """Return the deleted offsets in a range, counted from its start."""
        first, last = np.searchsorted(self.offsets, (start, stop))
        return self.offsets[first:last] - start


def load_deletions(
    source: Source, fragment: Fragment, deletion_file: DeletionFile, rows: int
) -> Deletions:
    """Read the deletion file of a fragment that has ``rows`` rows, deleted ones included.

    Raises:
        CorruptError: the file is damaged, or does not fit what the manifest says.
        FileNotFoundInStoreError: the file is gone.
    """
    store, path = source.deletion_file_place(fragment, deletion_file)
    try:
        data = read_whole(store, path)
    except FileNotFoundInStoreError as cause:
        raise FileNotFoundInStoreError(
            f"{path}: version {source.manifest.version} needs this deletion file"
            f" for fragment {fragment.id}, but it is missing"
            f"{whose(source.manifest, deletion_file.base_id)}"
        ) from cause
    try:
        offsets = decode_deletions(
            data,
            deletion_file.kind,
            deleted_rows=deletion_file.deleted_rows,
            physical_rows=rows,
        )
    except CorruptError as error:
        raise error.at(path, f"fragment {fragment.id}") from error
    return Deletions(offsets.astype(np.int64))


class WrittenDeletions(NamedTuple):
    """A new deletion file and its path in the store."""

    file: DeletionFile
    path: str


def write_deletions(
    store: Store,
    fragment: Fragment,
    offsets: Offsets,
    *,
    read_version: int,
    kind: DeletionKind | None = None,
) -> WrittenDeletions:
    """Write a file with all deleted offsets of a fragment, those of the old file included.

    ``store`` is the table's own, whatever base the fragment's other files lie below.

    Raises:
        StoreError: the store failed; no file stays behind.
    """
    previous = fragment.deletion_file
    kind = kind or choose_kind(len(offsets), previous.kind if previous else None)
    file = DeletionFile(kind, read_version, secrets.randbits(64), len(offsets))
    path = deletion_path(fragment.id, file)
    writing = store.create(path)
    try:
        writing.write([encode_deletions(np.asarray(offsets, np.uint32), kind)])
        writing.close()
    except BaseException:
        writing.abort()
        raise
    return WrittenDeletions(file, path)
