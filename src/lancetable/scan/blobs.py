"""Blobs of chosen rows as files that are read when asked."""

import numpy as np
import pyarrow as pa

from lancetable.format.rows import OFFSET_BITS
from lancetable.format.schema.model import Field
from lancetable.fragment.blobfile import BlobFile
from lancetable.fragment.blobs import blob_files
from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.fragment.readers import Readers


def open_blobs(
    readers: Readers, field: Field, rows: pa.Table, *, allow_external: bool
) -> list[BlobFile | None]:
    """Return one file per row of a table that holds descriptors, then row addresses.

    Raises:
        CorruptError: a descriptor points outside its file.
        InputError: a blob lies outside the table, and that was not allowed.
    """
    descriptors = rows.column(0).combine_chunks()
    addresses = rows.column(ROW_ADDRESS).to_numpy()
    fragments = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
    found: list[BlobFile | None] = [None] * len(descriptors)
    for fragment_id in np.unique(fragments).tolist():
        places = np.flatnonzero(fragments == fragment_id)
        opened = readers[readers.positions[fragment_id]].opened
        files = blob_files(
            opened, field, descriptors.take(pa.array(places)), allow_external=allow_external
        )
        for place, file in zip(places.tolist(), files, strict=True):
            found[place] = file
    return found
