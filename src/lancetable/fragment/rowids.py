"""Row ids and row versions: from what a fragment stores to one value per row.

A sequence is written inside the manifest, in a file of its own, or (spilled) as a hidden column of
a data file. A row id finds its row through an index over the live rows of all fragments.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never

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
from lancetable.format.manifest.rowids import (
    IdSpans,
    decode_id_spans,
    decode_row_ids,
    decode_versions,
    spans_of,
)
from lancetable.fragment.source import Source, read_whole

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
        content = read_whole(source.store, checked_path(stored.path, "row id file"))
    except FileNotFoundInStoreError as cause:
        raise FileNotFoundInStoreError(
            f"{stored.path}: version {source.manifest.version} keeps row ids there,"
            " but the file is missing"
        ) from cause
    stop = stored.offset + stored.size
    if stop > len(content):
        raise CorruptError(
            f"row ids end at byte {stop}, the file has {len(content)}",
            path=stored.path,
        )
    return content[stored.offset : stop]


def load_id_spans(
    source: Source, stored: SequenceSource, rows: int, spilled: Callable[[], Unsigned]
) -> IdSpans:
    """Return the same as spans of neighbouring ids, which are few for most fragments.

    Raises:
        CorruptError: the sequence is damaged or has another length.
    """
    data = _message(source, stored)
    if data is not None:
        return decode_id_spans(data, rows)
    return spans_of(load_row_ids(source, stored, rows, spilled))


class LiveIds(NamedTuple):
    """The row ids of a fragment, and the offsets of its deleted rows, which ascend."""

    fragment_id: int
    spans: IdSpans
    deleted: Signed | None = None


class RowIdIndex:
    """Finds the address of a live row by its row id: spans of ids whose rows are neighbours."""

    __slots__ = ("_addresses", "_firsts", "_sizes")

    def __init__(self, spans: IdSpans, addresses: Unsigned) -> None:
        firsts, sizes = spans
        if not bool((firsts[1:] > firsts[:-1]).all()):
            order = np.argsort(firsts, kind="stable")
            firsts, sizes, addresses = firsts[order], sizes[order], addresses[order]
        if bool((firsts[1:] - firsts[:-1] < sizes[:-1].astype(np.uint64)).any()):
            # A damaged table has ids twice; each by itself hides no other.
            inside = _counted(sizes).astype(np.uint64)
            firsts, addresses = (np.repeat(each, sizes) + inside for each in (firsts, addresses))
            order = np.argsort(firsts, kind="stable")
            firsts, addresses, sizes = (
                firsts[order],
                addresses[order],
                np.ones(len(order), np.int64),
            )
        self._firsts, self._sizes, self._addresses = firsts, sizes.astype(np.uint64), addresses

    @classmethod
    def of_fragments(cls, live: Sequence[LiveIds]) -> "RowIdIndex":
        """Index the live rows of fragments."""
        spans = [_live(each) for each in live]
        if not spans:
            empty = np.empty(0, np.uint64)
            return cls(IdSpans(empty, np.empty(0, np.int64)), empty)
        firsts, sizes, addresses = map(np.concatenate, zip(*spans, strict=True))
        return cls(IdSpans(firsts, sizes), addresses)

    @property
    def spans(self) -> tuple[Unsigned, Unsigned]:
        """The first ids of spans of live rows in ascending order, and how many ids each has."""
        return self._firsts, self._sizes

    def find(self, wanted: Unsigned) -> tuple[Unsigned, npt.NDArray[np.bool_]]:
        """Return the address of each row id, and whether there is such a live row."""
        if not len(self._firsts):
            return np.zeros(len(wanted), np.uint64), np.zeros(len(wanted), np.bool_)
        where = np.searchsorted(self._firsts, wanted, side="right") - 1
        # Behind the last id of its span, and before the first of all, there is no row.
        inside = wanted - self._firsts[np.maximum(where, 0)]
        is_known = (where >= 0) & (inside < self._sizes[where])
        return self._addresses[where] + inside, is_known


def _counted(sizes: Signed) -> Signed:
    """Return 0, 1, … from the start of each span."""
    return np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _live(ids: LiveIds) -> tuple[Unsigned, Signed, Unsigned]:
    """Return the first id, the size and the first address of each span of live rows."""
    firsts, sizes = ids.spans
    offsets = np.cumsum(sizes) - sizes
    if ids.deleted is not None and len(ids.deleted):
        rows = int(sizes.sum())
        edges = np.unique(np.concatenate([offsets, ids.deleted, ids.deleted + 1]))
        starts = edges[(edges < rows) & ~np.isin(edges, ids.deleted)]
        span = np.searchsorted(offsets, starts, side="right") - 1
        firsts = firsts[span] + (starts - offsets[span]).astype(np.uint64)
        stops = np.append(edges, rows)[np.searchsorted(edges, starts) + 1]
        offsets, sizes = starts, np.minimum(stops, rows) - starts
    return firsts, sizes, np.uint64(ids.fragment_id << 32) + offsets.astype(np.uint64)
