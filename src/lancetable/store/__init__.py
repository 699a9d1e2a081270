"""Bytes in, bytes out: the only package that touches a disk or a network.

Rarely used parts, such as ``copy`` and ``manifests``, are imported from their own modules.
"""

from lancetable.store.base import (
    ByteRange,
    Bytes,
    Credentials,
    Entry,
    ReadableFile,
    Store,
    WritableFile,
    merge_neighbours,
    spread,
)
from lancetable.store.local import Durability, LocalStore
from lancetable.store.location import TableLocation
from lancetable.store.opened import MemoryFile, check_size, mapped_file, will_need

__all__ = [
    "ByteRange",
    "Bytes",
    "Credentials",
    "Durability",
    "Entry",
    "LocalStore",
    "MemoryFile",
    "ReadableFile",
    "Store",
    "TableLocation",
    "WritableFile",
    "check_size",
    "mapped_file",
    "merge_neighbours",
    "spread",
    "will_need",
]
