"""Row ids and row versions: from what a fragment stores to one value per row.

A sequence is written inside the manifest, in a file of its own, or (spilled) as a hidden column of
a data file. A row id finds its row through an index over the live rows of all fragments.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError, FileNotFoundInStoreError
from lancetable.format.manifest.model import (
    ColumnSequence,
    ExternalSequence,
    InlineSequence,
    SequenceSource,
)
from lancetable.format.manifest.names import checked_path
from lancetable.format.manifest.rowids import decode_row_ids, decode_versions
from lancetable.fragment.source import Source

Unsigned = npt.NDArray[np.uint64]
Signed = npt.NDArray[np.int64]


def load_row_ids(
    source: Source, stored: SequenceSource, rows: int, spilled: Callable[[], Unsigned]
) -> Unsigned:
    """Return the row id of every row of a fragment, deleted rows included.

    Raises:
        CorruptError: the sequence is damaged or has another length.
    """
    data = _message(source, stored)
    ids = spilled() if data is None else decode_row_ids(data, rows)
    if len(ids) != rows:
        raise CorruptError(f"{len(ids)} row ids are stored for {rows} rows")
    return ids


def load_versions(
    source: Source, stored: SequenceSource, rows: int, spilled: Callable[[], Unsigned]
) -> Unsigned:
    """Return the version of every row of a fragment, deleted rows included.

    Raises:
        CorruptError: the sequence is damaged or has another length.
    """
    data = _message(source, stored)
    versions = spilled() if data is None else decode_versions(data, rows)
    if len(versions) != rows:
        raise CorruptError(f"{len(versions)} row versions are stored for {rows} rows")
    return versions


def _message(source: Source, stored: SequenceSource) -> bytes | None:
    """Return the bytes of a sequence; None when it is a column of a data file."""
    match stored:
        case ColumnSequence():
            return None
        case InlineSequence(data=data):
            return data
        case ExternalSequence():
            return _external(source, stored)
        case _:
            assert_never(stored)


def _external(source: Source, stored: ExternalSequence) -> bytes:
    try:
        content = source.store.read(checked_path(stored.path, "row id file"))
    except FileNotFoundInStoreError as cause:
        raise FileNotFoundInStoreError(
            f"{stored.path}: version {source.manifest.version} keeps row ids there,"
            " but the file is missing"
        ) from cause
    stop = stored.offset + stored.size
    if stop > len(content):
        raise CorruptError(
            f"row ids are said to end at byte {stop}, the file has {len(content)}",
            path=stored.path,
        )
    return content[stored.offset : stop]


class RowIdIndex:
    """Finds the address of a live row by its row id."""

    __slots__ = ("_addresses", "_ids")

    def __init__(self, ids: Unsigned, addresses: Unsigned) -> None:
        if len(ids) and not bool((ids[1:] > ids[:-1]).all()):
            order = np.argsort(ids, kind="stable")
            ids, addresses = ids[order], addresses[order]
        self._ids = ids
        self._addresses = addresses

    @classmethod
    def of_fragments(cls, live: Sequence[tuple[int, Unsigned, Signed | None]]) -> "RowIdIndex":
        """Index (fragment id, its row ids, offsets of live rows or None for all)."""
        ids, addresses = [], []
        for fragment_id, of_fragment, offsets in live:
            base = np.uint64(fragment_id << 32)
            if offsets is None:
                ids.append(of_fragment)
                addresses.append(base + np.arange(len(of_fragment), dtype=np.uint64))
            else:
                ids.append(of_fragment[offsets])
                addresses.append(base + offsets.astype(np.uint64))
        if not ids:
            return cls(np.empty(0, np.uint64), np.empty(0, np.uint64))
        return cls(np.concatenate(ids), np.concatenate(addresses))

    def find(self, wanted: Unsigned) -> tuple[Unsigned, npt.NDArray[np.bool_]]:
        """Return the address of each row id, and whether there is such a live row."""
        if not len(self._ids):
            return np.zeros(len(wanted), np.uint64), np.zeros(len(wanted), np.bool_)
        where = np.searchsorted(self._ids, wanted)
        where[where == len(self._ids)] = 0
        return self._addresses[where], self._ids[where] == wanted
