"""The container of a 0.1 data file.

| place | type | content |
|---|---|---|
| end - 16 | i64 | position of the metadata |
| end - 8 | u16, u16 | version: (0, 0), (0, 1) or (0, 2) |
| end - 4 | 4 bytes | ``LANC`` |
| metadata | u32, message | length and ``lance.file.Metadata`` |
| page table | i64, i64 | position and length of each page, batch by batch, field id by field id |

The page table has a row for every id between the smallest and the largest one of the file, also
for those that are not in it; their pages are at 0 with length 0.
"""

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.proto import file_pb2

MAGIC = b"LANC"
FOOTER_BYTES = 16
LENGTH_BYTES = 4
PAGE_BYTES = 16
_FOOTER = struct.Struct("<qHH4s")
_VERSIONS = frozenset({(0, 0), (0, 1), (0, 2)})


class Metadata(NamedTuple):
    """The decoded metadata: ``batch_starts`` has one number more than there are batches."""

    batch_starts: npt.NDArray[np.int64]
    page_table: int


def decode_footer(footer: memoryview, size: int) -> int:
    """Return the position of the metadata of a file of ``size`` bytes.

    Raises:
        CorruptError: the file is no data file, or is cut off.
        UnsupportedError: the file has another version.
    """
    if len(footer) < FOOTER_BYTES:
        raise CorruptError(f"a data file has at least {FOOTER_BYTES} bytes, this one has {size}")
    position, major, minor, magic = _FOOTER.unpack(footer[-FOOTER_BYTES:])
    if magic != MAGIC:
        raise CorruptError(f"a data file ends with {MAGIC!r}, this one with {bytes(magic)!r}")
    if (major, minor) not in _VERSIONS:
        raise UnsupportedError(
            f"data file version {major}.{minor} was found where the manifest promises 0.1"
        )
    if not 0 <= position <= size - FOOTER_BYTES - LENGTH_BYTES:
        raise CorruptError(f"the footer says that the metadata is at {position}, outside the file")
    return int(position)


def decode_metadata(data: memoryview) -> Metadata:
    """Decode the metadata; ``data`` reaches from its length to the footer.

    Raises:
        CorruptError: the bytes are not a metadata message, or its numbers make no sense.
    """
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > len(data) - LENGTH_BYTES:
        raise CorruptError(f"the metadata claims {length} bytes and has {len(data) - LENGTH_BYTES}")
    try:
        message = file_pb2.Metadata.FromString(bytes(data[LENGTH_BYTES : LENGTH_BYTES + length]))
    except DecodeError:
        raise CorruptError("the metadata cannot be parsed") from None
    starts = np.array(message.batch_offsets, np.int64)
    if len(starts) and (starts[0] != 0 or (starts[1:] < starts[:-1]).any()):
        raise CorruptError("the batches of the file are not in ascending order from 0")
    if not len(starts):
        starts = np.zeros(1, np.int64)
    return Metadata(starts, int(message.page_table_position))
