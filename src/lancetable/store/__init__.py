"""Bytes in, bytes out: the only package that touches a disk or a network."""

from lancetable.store.base import Bytes, Credentials, Entry, ReadableFile, Store, WritableFile
from lancetable.store.copy import copy_object, share_object
from lancetable.store.local import Durability, LocalStore, MemoryFile, will_need
from lancetable.store.location import TableLocation
from lancetable.store.manifests import KeyValueManifests, ManifestEntry, ManifestStore
from lancetable.store.ranges import ByteRange, merge_neighbours
from lancetable.store.spread import spread

__all__ = [
    "ByteRange",
    "Bytes",
    "Credentials",
    "Durability",
    "Entry",
    "KeyValueManifests",
    "LocalStore",
    "ManifestEntry",
    "ManifestStore",
    "MemoryFile",
    "ReadableFile",
    "Store",
    "TableLocation",
    "WritableFile",
    "copy_object",
    "merge_neighbours",
    "share_object",
    "spread",
    "will_need",
]
