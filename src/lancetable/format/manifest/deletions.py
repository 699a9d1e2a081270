"""Read and write deletion files.

An ``.arrow`` file is an Arrow IPC file with one column of row offsets in any order; a ``.bin``
file is a roaring bitmap. Both hold all deleted rows of their fragment.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.manifest.arrowfile import decode_column
from lancetable.format.manifest.model import DeletionKind
from lancetable.format.manifest.roaring import decode_bitmap, encode_bitmap

Offsets: TypeAlias = npt.NDArray[np.uint32]

MOST_IN_ARROW = 4_999
_MOST_GROWN_IN_ARROW = 5_000
_ARROW_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
# So few bytes are compressed sooner than another thread wakes up.
_ARROW_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_SMALL = 1 << 20
_EXPANSION = 256


def decode_deletions(
    data: bytes, kind: DeletionKind, *, deleted_rows: int = 0, physical_rows: int = 0
) -> Offsets:
    """Return the deleted offsets in ascending order; a number of rows of 0 is unknown.

    Raises:
        CorruptError: the bytes are damaged, or do not fit the numbers of the manifest.
    """
    most = deleted_rows or physical_rows or max(_SMALL, _EXPANSION * len(data))
    if kind is DeletionKind.BITMAP:
        offsets = decode_bitmap(data, most=most)
    else:
        offsets = np.sort(decode_column(data, most=most))
        if (offsets[1:] == offsets[:-1]).any():
            raise CorruptError("a row is deleted twice")
    if deleted_rows and offsets.size != deleted_rows:
        raise CorruptError(
            f"the manifest says {deleted_rows} deleted rows, the file has {offsets.size}"
        )
    if physical_rows and offsets.size and int(offsets[-1]) >= physical_rows:
        raise CorruptError(
            f"row {int(offsets[-1])} is deleted, but the fragment has {physical_rows} rows"
        )
    return offsets


def choose_kind(rows: int, previous: DeletionKind | None = None) -> DeletionKind:
    """Return the kind of file for so many deleted rows; once a bitmap, always a bitmap."""
    if previous is DeletionKind.BITMAP:
        return previous
    most = MOST_IN_ARROW if previous is None else _MOST_GROWN_IN_ARROW
    return DeletionKind.ARROW if rows <= most else DeletionKind.BITMAP


def encode_deletions(offsets: Offsets, kind: DeletionKind) -> bytes:
    """Return the file that lists the deleted offsets."""
    values = np.ascontiguousarray(offsets, np.uint32)
    if kind is DeletionKind.BITMAP:
        return encode_bitmap(values)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _ARROW_SCHEMA, options=_ARROW_OPTIONS) as writer:
        writer.write(pa.record_batch([pa.array(values)], schema=_ARROW_SCHEMA))
    return bytes(sink.getvalue())
