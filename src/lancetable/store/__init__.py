"""Bytes in, bytes out: the only package that touches a disk or a network."""

from lancetable.store.base import Entry, ReadableFile, Store
from lancetable.store.local import LocalStore, MemoryFile
from lancetable.store.location import TableLocation
from lancetable.store.memory import MemoryStore
from lancetable.store.ranges import ByteRange, merge_neighbours

__all__ = [
    "ByteRange",
    "Entry",
    "LocalStore",
    "MemoryFile",
    "MemoryStore",
    "ReadableFile",
    "Store",
    "TableLocation",
    "merge_neighbours",
]
