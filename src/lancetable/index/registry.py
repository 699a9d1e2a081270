"""The kinds of index that this release knows, and the opened segments of this process."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from lancetable.errors import CorruptError
from lancetable.format.manifest.indices.kinds import is_known, is_system, kind_of
from lancetable.format.manifest.model import IndexSegment
from lancetable.format.schema.model import Schema
from lancetable.index.base import IndexKind, ScalarIndex, ScalarKind
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar.bitmap import BitmapKind, LabelListKind
from lancetable.index.scalar.bloomfilter import BloomFilterKind
from lancetable.index.scalar.btree import BTreeKind
from lancetable.index.scalar.json_path import TARGETS, JsonPathKind, target_of
from lancetable.index.scalar.ngram import NGramKind
from lancetable.index.scalar.rtree import RTreeKind
from lancetable.index.scalar.zonemap import ZoneMapKind
from lancetable.index.text.kind import TextKind
from lancetable.index.text.segment import TextSegment
from lancetable.index.vector.kind import VectorKind
from lancetable.index.vector.segment import VectorSegment
from lancetable.store import Store

_BITMAP, _BTREE, _NGRAM = BitmapKind(), BTreeKind(), NGramKind()

SCALAR: Mapping[str, ScalarKind] = {
    kind.name: kind
    for kind in (
        _BITMAP,
        _BTREE,
        LabelListKind(),
        JsonPathKind((_BITMAP, _BTREE, _NGRAM)),
        RTreeKind(),
        _NGRAM,
        ZoneMapKind(),
        BloomFilterKind(),
    )
}
"""Kinds that answer parts of predicates, in the order in which they are asked."""

_TEXT, _VECTOR = TextKind(), VectorKind()
BUILT: Mapping[str, IndexKind] = {**SCALAR, _TEXT.name: _TEXT, _VECTOR.name: _VECTOR}
"""Kinds that are built, merged and moved."""

KEPT_SEGMENTS = 64


def unusable(  # noqa: PLR0911 - one for each reason
    segment: IndexSegment, schema: Schema | None = None
) -> str | None:
    """Return why a segment cannot be used; None when it can.

    With a schema, its column must exist: other libraries may index a column that was just dropped.
    """
    kind = kind_of(segment)
    if is_system(segment):
        return "it is a system index"
    if not segment.type_url:
        return "it does not record its kind"
    if kind.name not in BUILT:
        return f"kind {kind.name!r} is not used in this release"
    if not is_known(segment):
        return f"version {segment.index_version} of kind {kind.name!r} is not known"
    if len(segment.fields) != 1:
        return f"it has {len(segment.fields)} fields, expected 1"
    if schema is not None and all(field.id != segment.fields[0] for field in schema.walk()):
        return "its column was dropped or replaced; drop the index"
    if not segment.fragment_bitmap:
        return "it does not record which fragments it describes"
    return _unusable_target(segment) if kind.name == JsonPathKind.name else None


def _unusable_target(segment: IndexSegment) -> str | None:
    try:
        target = target_of(segment.details)
    except CorruptError as error:
        return str(error)
    if target not in TARGETS:
        return f"an index of kind {target!r} on JSON documents is not supported"
    return None


_Opened = TypeVar("_Opened")


class OpenSegments(Generic[_Opened]):
    """Opened segments by their folder; the least recently used are forgotten."""

    def __init__(self, open_: Callable[[SegmentFiles], _Opened], most: int = KEPT_SEGMENTS) -> None:
        self._open = open_
        self._most = most
        self._kept: OrderedDict[tuple[str, str], _Opened] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, store: Store, folder: str, segment: IndexSegment) -> _Opened:
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
        made = self._open(SegmentFiles(store, folder, segment))
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


def open_scalar(files: SegmentFiles) -> ScalarIndex:
    """Return an opened segment of a kind that answers predicates.

    Raises:
        CorruptError: a file of the segment is damaged.
    """
    return SCALAR[kind_of(files.segment).name].open(files)


SEGMENTS = OpenSegments(open_scalar)
"""Those of this process that answer predicates."""
VECTORS = OpenSegments(VectorSegment)
"""Those of this process that find vectors."""
TEXTS = OpenSegments(TextSegment)
"""Those of this process for full-text search."""
