"""Bytes in, bytes out: the only package that touches a disk or a network.

What few need stands in modules of its own, such as ``copy`` and ``manifests``.
"""

from lancetable.store.base import Bytes, Credentials, Entry, ReadableFile, Store, WritableFile
from lancetable.store.local import Durability, LocalStore
from lancetable.store.location import TableLocation
from lancetable.store.opened import MemoryFile, check_size, will_need
from lancetable.store.ranges import ByteRange, merge_neighbours
from lancetable.store.spread import spread

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
    "merge_neighbours",
    "spread",
    "will_need",
]
