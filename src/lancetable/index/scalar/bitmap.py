"""BITMAP and LABEL_LIST: each distinct value with the set of its rows.

``bitmap_page_lookup.lance`` has the columns ``keys``, the distinct values in ascending order with a
null first if there is one, and ``bitmaps``, the rows of each as ``index.row_map`` describes.

The keys of a label list are the items of lists: a list is a row of each of its items. Rows whose
list is null are in a global buffer, which the metadata ``lance:label_list_nulls`` numbers.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression import (
    Call,
    Column,
    Compare,
    Comparison,
    Expression,
    IsNull,
    Literal,
    Opaque,
    walk,
)
from lancetable.format.arrays import Mask, numbers
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.rows import RowSet
from lancetable.index import sorting
from lancetable.index.base import VALUE, Numbers, Sink, Source, matching
from lancetable.index.files import SegmentFiles
from lancetable.index.grouping import set_batches
from lancetable.index.kept_sets import KeptSets
from lancetable.index.row_map import decode_row_map
from lancetable.index.scalar.types import refuses_lists, refuses_values
from lancetable.index.sorting import Pairs, Stream
from lancetable.index.specs import Bitmap, LabelList, Spec

FILE = "bitmap_page_lookup.lance"
HAS = {"array_has", "array_contains", "list_has", "list_contains"}
HAS_ANY = {"array_has_any", "list_has_any"}
HAS_ALL = {"array_has_all", "list_has_all"}
LIST_TESTS = HAS | HAS_ANY | HAS_ALL
"""Functions that are unknown for a list that is null, and for no other."""
_ITEM = Column((VALUE,))
_NULLS = "lance:label_list_nulls"
_KEYS_AT_A_TIME = 1024
_ROWS_AT_A_TIME = 64 * 1024


class BitmapSegment:
    """An opened segment: the keys are in memory, sets of rows are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        (self._keys,) = files.read(FILE, ("keys",))
        self._sets = KeptSets(files, FILE, "bitmaps", _row_set)

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def warm(self) -> None:
        """Read the sets of rows, as far as there is room."""
        self._sets.warm()

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all keys for which a part of a predicate is true."""
        if any(isinstance(node, Opaque) for node in walk(part)):
            return None
        return self._rows_of(matching(part, self._keys))

    def _rows_of(self, keys: Mask) -> RowSet | None:
        found = RowSet.from_addresses(np.empty(0, np.uint64))
        for rows in self._sets.of(np.flatnonzero(keys).tolist()):
            if rows is None:
                return None
            found |= rows
        return found


def _row_set(data: bytes) -> RowSet | None:
    rows = decode_row_map(data)
    return None if rows is None else RowSet.from_addresses(rows)


class LabelListSegment(BitmapSegment):
    """An opened segment of an index on lists."""

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows whose lists hold items, or that have no list."""
        match part:
            case Call(name, (Column(), Literal() as item)) if name in HAS:
                return self._with_item(item) if item.scalar.is_valid else None
            case Call(name, (Column(), Literal() as items)) if name in HAS_ANY | HAS_ALL:
                return self._with_items(items, is_all=name in HAS_ALL)
            case IsNull(Column(), False):
                return self._null_lists()
            case _:
                return None

    def _null_lists(self) -> RowSet | None:
        rows = null_lists(self._files)
        return None if rows is None else RowSet.from_addresses(rows)

    def _with_item(self, item: Literal) -> RowSet | None:
        if item.type != self._keys.type or _is_zero_or_nan(item.scalar):
            return None
        if not item.scalar.is_valid:
            return self._rows_of(matching(IsNull(_ITEM), self._keys))
        return self._rows_of(matching(Compare(Comparison.EQ, _ITEM, item), self._keys))

    def _with_items(self, items: Literal, *, is_all: bool) -> RowSet | None:
        wanted = items.scalar.values if items.scalar.is_valid else None
        if wanted is None or not len(wanted):
            return None
        found: RowSet | None = None
        for item in wanted:
            rows = self._with_item(Literal(item))
            if rows is None:
                return None
            if found is not None:
                rows = found & rows if is_all else found | rows
            found = rows
        return found


def null_lists(files: SegmentFiles) -> Numbers | None:
    """Return the rows whose list is null; None when a segment does not record them."""
    number = files.metadata(FILE).get(_NULLS, "")
    return decode_row_map(files.global_buffer(FILE, int(number))) if number.isdecimal() else None


def _is_zero_or_nan(scalar: pa.Scalar) -> bool:
    """Return whether values that differ in bits may equal a constant, as not all functions hold."""
    value = scalar.as_py()
    return isinstance(value, float) and (value == 0 or value != value)  # noqa: PLR0124 - NaN


class BitmapKind:
    """Build, merge and open segments on values."""

    name = Bitmap.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return refuses_values(type_)

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        stream = sorting.sort(sorting.pairs_of(rows), sink, memory_bytes)
        _write(stream, type_, sink)
        return b""

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several; None for sets of whole fragments of unknown size."""
        if any(map(_has_whole_fragments, sources)):
            return None
        _write(sorting.merge([_stored(source) for source in sources]), type_, sink)
        return b""

    def spec(self, files: SegmentFiles) -> Bitmap:
        """Return the parameters of a segment."""
        return Bitmap()

    def open(self, files: SegmentFiles) -> BitmapSegment:
        """Return an opened segment."""
        return BitmapSegment(files)


class LabelListKind:
    """Build, merge and open segments on items of lists."""

    name = LabelList.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return refuses_lists(type_)

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        nulls = RowBitmaps()

        def items() -> Stream:
            for lists, ids in sorting.pairs_of(rows):
                nulls.add(ids[np.asarray(lists.is_null())])
                parents = pc.list_parent_indices(lists).to_numpy()
                yield Pairs(pc.list_flatten(lists), ids[parents])

        stream = sorting.sort(items(), sink, memory_bytes)
        _write(stream, type_.value_type, sink, nulls)
        return b""

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several; None when one does not record which lists are null."""
        nulls = RowBitmaps()
        for source in sources:
            found = null_lists(source.files)
            if found is None or _has_whole_fragments(source):
                return None
            rows, is_kept = source.translate(found)
            nulls.add(rows[is_kept])
        stream = sorting.merge([_stored(source) for source in sources])
        _write(stream, type_.value_type, sink, nulls)
        return b""

    def spec(self, files: SegmentFiles) -> LabelList:
        """Return the parameters of a segment."""
        return LabelList()

    def open(self, files: SegmentFiles) -> LabelListSegment:
        """Return an opened segment."""
        return LabelListSegment(files)


def _key_ranges(files: SegmentFiles) -> Iterator[range]:
    total = files.rows(FILE)
    for first in range(0, total, _KEYS_AT_A_TIME):
        yield range(first, min(first + _KEYS_AT_A_TIME, total))


def _has_whole_fragments(source: Source) -> bool:
    for keys in _key_ranges(source.files):
        (sets,) = source.files.read(FILE, ("bitmaps",), keys)
        if any(decode_row_map(one or b"") is None for one in sets.to_pylist()):
            return True
    return False


def _stored(source: Source) -> Stream:
    """Yield each key of a segment with its new rows, in order of the keys.

    Other writers append the null key when they merge segments.
    """
    (all_keys,) = source.files.read(FILE, ("keys",))
    keys, places = sorting.in_order([Pairs(all_keys, np.arange(len(all_keys), dtype=np.uint64))])
    for first in range(0, len(keys), _KEYS_AT_A_TIME):
        some = places[first : first + _KEYS_AT_A_TIME].view(np.int64)
        (sets,) = source.files.read(FILE, ("bitmaps",), some)
        found = [decode_row_map(one or b"") for one in sets.to_pylist()]
        rows = [np.empty(0, np.uint64) if one is None else one for one in found]
        owners = first + np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        new, is_kept = source.translate(np.concatenate([np.empty(0, np.uint64), *rows]))
        owners, new = owners[is_kept], new[is_kept]
        for at in range(0, len(new), _ROWS_AT_A_TIME):
            stop = at + _ROWS_AT_A_TIME
            yield Pairs(keys.take(numbers(owners[at:stop])), new[at:stop])


def _write(stream: Stream, type_: pa.DataType, sink: Sink, nulls: RowBitmaps | None = None) -> None:
    """Write the rows of each distinct value; ``nulls`` are complete when the stream ends."""
    metadata: dict[str, str] = {}
    buffers: list[bytes] = []
    schema = pa.schema([("keys", type_), ("bitmaps", pa.binary())])

    def batches() -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in set_batches(stream, schema, has_sizes=True):
            total += batch.num_rows
            yield batch
        metadata["lance:index_stats"] = json.dumps({"num_bitmaps": total}, separators=(",", ":"))
        if nulls is not None:
            metadata[_NULLS] = "1"
            buffers.append(nulls.encoded(has_sizes=True))

    sink.write(FILE, schema, batches(), metadata=metadata, buffers=buffers)
