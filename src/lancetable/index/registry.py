"""The kinds of index that this release searches, and the opened segments of this process."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.format.manifest.indices.codec import decode_json_details
from lancetable.format.manifest.indices.kinds import is_known, is_system, kind_name, kind_of
from lancetable.format.manifest.model import IndexSegment
from lancetable.index.base import ScalarIndex
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar import bitmap, btree, zonemap
from lancetable.index.scalar.bitmap import Bitmap, LabelList
from lancetable.index.scalar.bloomfilter import BloomFilter
from lancetable.index.scalar.btree import BTree
from lancetable.index.scalar.json_path import JsonPath
from lancetable.index.scalar.ngram import NGram
from lancetable.index.scalar.rtree import RTree
from lancetable.index.scalar.zonemap import ZoneMap
from lancetable.store import Store

_VALUES = {
    "bitmap": (bitmap.FILE, "keys"),
    "btree": (btree.LOOKUP, "min"),
    "zonemap": (zonemap.FILE, "min"),
}
"""Where the kinds that hold values have some, by which their type is known."""


def _json(files: SegmentFiles) -> ScalarIndex:
    path, type_url, _ = decode_json_details(files.segment.details)
    kind = kind_name(type_url)
    if kind not in {*_VALUES, "ngram"}:
        raise UnsupportedError(f"an index of kind {kind!r} on JSON documents is not supported")
    type_ = files.type(*_VALUES[kind]) if kind in _VALUES else pa.string()
    return JsonPath(path, type_, SCALAR[kind](files))


SCALAR: Mapping[str, Callable[[SegmentFiles], ScalarIndex]] = {
    "bitmap": Bitmap,
    "btree": BTree,
    "labellist": LabelList,
    "json": _json,
    "rtree": RTree,
    "ngram": NGram,
    "zonemap": ZoneMap,
    "bloomfilter": BloomFilter,
}
"""Kinds in the order in which they are asked."""

KEPT_SEGMENTS = 64


def unusable(segment: IndexSegment) -> str | None:
    """Return why a segment cannot answer predicates; None when it can."""
    kind = kind_of(segment)
    if is_system(segment):
        return "it is a system index"
    if kind.name not in SCALAR:
        return f"kind {kind.name!r} does not answer predicates in this release"
    if not is_known(segment):
        return f"version {segment.index_version} of kind {kind.name!r} is not known"
    if len(segment.fields) != 1:
        return f"it has {len(segment.fields)} fields, expected 1"
    if not segment.fragment_bitmap:
        return "it does not record which fragments it describes"
    return None


class OpenSegments:
    """Opened segments by their folder; the least recently used are forgotten."""

    def __init__(self, most: int = KEPT_SEGMENTS) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], ScalarIndex] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, store: Store, folder: str, segment: IndexSegment) -> ScalarIndex:
        """Return an opened segment of a usable kind.

        Raises:
            CorruptError: a file of the segment is damaged.
            FileNotFoundInStoreError: a file of the segment is missing.
        """
        key = (store.root, folder)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = SCALAR[kind_of(segment).name](SegmentFiles(store, folder, segment))
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


SEGMENTS = OpenSegments()
"""Those of this process."""
