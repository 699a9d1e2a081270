"""Columns of storage class blob, which releases 0.19 to 0.39 keep in a table of their own.

That table, the blob dataset, is in the folder ``_blobs`` and has the same field ids. A row has the
same row id in both tables.
"""

import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.manifest.names import BLOB_DATASET
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type
from lancetable.fragment.fragments import OpenFragments
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import ROW_ID, Projection
from lancetable.fragment.reader import FragmentReader
from lancetable.fragment.rowids import RowIdIndex
from lancetable.fragment.select import reorder
from lancetable.fragment.source import Source
from lancetable.fragment.system import Rows

Unsigned = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


def blob_dataset_of(source: Source) -> "BlobDataset | None":
    """Return the blob dataset of a version; None when it has none."""
    return None if source.manifest.blob_dataset_version is None else BlobDataset(source)


class BlobDataset:
    """The blob dataset of one version, opened when its first value is read."""

    __slots__ = ("_fragments", "_lock", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._fragments: OpenFragments | None = None
        self._lock = threading.Lock()

    def read(self, opened: OpenFragment, field: Field, rows: Rows) -> pa.Array:
        """Return a column for rows of a fragment of the table itself.

        Raises:
            CorruptError: a live row has no row id, or none that the blob dataset has.
            FileNotFoundInStoreError: the blob dataset is missing.
        """
        if field.is_blob:
            raise UnsupportedError(
                f"column {field.name!r} is in the blob dataset and encoded as blobs at once, which"
                " this release cannot read"
            )
        ids = opened.sequence(ROW_ID)
        if ids is None:
            raise CorruptError(
                f"fragment {opened.fragment.id} has no row ids, by which its blobs are found",
                path=self._source.manifest_path,
            )
        wanted = ids[rows.start : rows.stop] if isinstance(rows, range) else ids[rows]
        addresses, is_known = self._index().find(wanted)
        if not is_known.all():
            self._check_deleted(opened, rows, wanted, is_known)
        return self._read(field, addresses, is_known)

    def lost_ids(self, opened: OpenFragment) -> Unsigned:
        """Return the row ids of live rows that the blob dataset does not have."""
        ids = opened.sequence(ROW_ID)
        if ids is None:
            return np.empty(0, np.uint64)
        is_lost = ~self._index().find(ids)[1]
        if opened.deleted is not None:
            is_lost[opened.deleted.offsets] = False
        return ids[is_lost]

    def _opened(self) -> OpenFragments:
        with self._lock:
            if self._fragments is None:
                source = self._source.blob_dataset()
                if source is None:
                    raise AssertionError("the manifest names a blob dataset")
                self._fragments = OpenFragments(source)
            return self._fragments

    def _index(self) -> RowIdIndex:
        fragments = self._opened()
        with self._lock:
            index = fragments.row_id_index
        if index is None:
            raise CorruptError(
                f"the table {BLOB_DATASET} has no row ids", path=fragments.source.manifest_path
            )
        return index

    def _check_deleted(
        self, opened: OpenFragment, rows: Rows, wanted: Unsigned, is_known: Mask
    ) -> None:
        offsets = np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
        is_lost = ~is_known
        if opened.deleted is not None:
            is_lost &= ~opened.deleted.are(offsets)
        if is_lost.any():
            raise CorruptError(
                f"fragment {opened.fragment.id} has a row with the id {wanted[is_lost][0]}, which"
                f" version {self._source.manifest.blob_dataset_version} of {BLOB_DATASET} lacks",
                path=self._source.manifest_path,
            )

    def _read(self, field: Field, addresses: Unsigned, is_known: Mask) -> pa.Array:
        """Read values by their addresses; null where there is none."""
        distinct, places = np.unique(addresses[is_known], return_inverse=True)
        stored = next(
            (one for one in self._opened().source.manifest.schema.fields if one.id == field.id),
            None,
        )
        if stored is None:
            return pa.nulls(len(addresses), arrow_type(field))
        chunks = [chunk for part in self._parts(stored, distinct) for chunk in part]
        if not chunks:
            return pa.nulls(len(addresses), arrow_type(field))
        if is_known.all():
            if bool((addresses[1:] > addresses[:-1]).all()):
                return pa.concat_arrays(chunks)
            return reorder([chunks], places)[0][0]
        everywhere = np.zeros(len(addresses), np.int64)
        everywhere[is_known] = places
        return pa.concat_arrays(chunks).take(pa.array(everywhere, mask=~is_known))

    def _parts(self, field: Field, addresses: Unsigned) -> Iterator[list[pa.Array]]:
        """Read the values at ascending addresses, fragment by fragment."""
        fragments = self._opened()
        ids = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
        offsets = (addresses & np.uint64(MAX_OFFSET)).astype(np.int64)
        projection = Projection([field])
        for fragment_id in np.unique(ids).tolist():
            reader = FragmentReader(fragments[fragments.positions[fragment_id]], lambda: 0)
            chosen = offsets[ids == fragment_id]
            first, last = int(chosen[0]), int(chosen[-1])
            is_whole = last - first + 1 == len(chosen)
            yield reader.read(projection, range(first, last + 1) if is_whole else chosen)[0]
