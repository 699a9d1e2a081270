"""RTREE: bounding boxes of geometries, in pages of pages.

``page_data.lance`` has the columns ``bbox``, a struct of ``xmin``, ``ymin``, ``xmax`` and ``ymax``,
and ``id`` (u64). The first ``num_items`` rows are the boxes of geometries with the row of each.
Then comes level after level: one row for each ``page_size`` rows of the level below, until a level
fits into one page. ``nulls.lance`` has one set of rows, those without a geometry. Empty geometries
are in neither file. Geometries are in the order of the Hilbert curve through their centres. The id
of a row of an upper level is the number of its page, counted from the first page of geometries.
"""

import json
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.expression import Call, Column, Expression, IsNull, Literal
from lancetable.expression.functions.geo import RELATIONS
from lancetable.format.arrays import Mask, byte_strings, numbers
from lancetable.format.encoding.kernels import hilbert
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.encoding.kernels.wkb import Boxes
from lancetable.format.rows import RowSet
from lancetable.index import sorting
from lancetable.index.base import ROW, VALUE, Numbers, Sink, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.row_map import decode_row_map
from lancetable.index.scalar.geometry import boxes_of, is_geometry
from lancetable.index.sorting import Kept, Pairs, Stream
from lancetable.index.specs import RTree, Spec

DATA, NULLS = "page_data.lance", "nulls.lance"
_NAMES = ("xmin", "ymin", "xmax", "ymax")
_ROWS_AT_A_TIME = 64 * 1024
_BOX = pa.struct([pa.field(name, pa.float64(), nullable=False) for name in _NAMES])
LARGEST = np.finfo(np.float64).max
"""Stands for an infinite coordinate: other readers lose all rows of an index that holds one."""


class RTreeSegment:
    """An opened segment: pages are read from the root down where boxes meet."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        found = files.metadata(DATA)
        size, items = (found.get(key, "") for key in ("page_size", "num_items"))
        if not (size.isdecimal() and items.isdecimal() and int(size) > 1):
            raise CorruptError(f"the pages of an rtree are of {size!r} rows for {items!r} items")
        self._page_rows = int(size)
        self._levels = level_rows(int(items), self._page_rows)
        if sum(self._levels) != files.rows(DATA):
            raise CorruptError(
                f"an rtree of {items} items has {files.rows(DATA)} rows, not {sum(self._levels)}"
            )

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """Return the fragments that the segment describes: all that it names."""
        return fragments

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows whose boxes meet the box of a geometry."""
        match part:
            case IsNull(Column(), False):
                (nulls,) = self._files.read(NULLS, ("nulls",))
                rows = decode_row_map(nulls[0].as_py() if len(nulls) else b"")
                return None if rows is None else RowSet.from_addresses(rows)
            case Call(name, (Column(), Literal(scalar))) if name in RELATIONS and scalar.is_valid:
                return self._meeting(finite(boxes_of(pa.repeat(scalar, 1)))[0])
            case _:
                return None

    def _meeting(self, box: Boxes) -> RowSet | None:
        if np.isnan(box).any():
            return None
        firsts = np.cumsum([0, *self._levels[:-1]])
        chosen = np.arange(self._levels[-1])
        for first, below in zip(firsts[::-1], [*self._levels[-2::-1], 0], strict=True):
            boxes, ids = self._read(first + chosen)
            found = _meets(boxes, box)
            if not below:
                return RowSet.from_addresses(ids[found], is_exact=False)
            pages = chosen[found] * self._page_rows
            chosen = (pages[:, None] + np.arange(self._page_rows)).ravel()
            chosen = chosen[chosen < below]
        return None

    def _read(self, rows: npt.NDArray[np.int64]) -> tuple[Boxes, npt.NDArray[np.uint64]]:
        boxes, ids = self._files.read(DATA, ("bbox", "id"), rows)
        return boxes_of(boxes), np.asarray(ids).astype(np.uint64)


class RTreeKind:
    """Build, merge and open segments."""

    name = RTree.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return None if is_geometry(type_) else "it takes geometries as WKB, WKT or GeoArrow"

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        assert isinstance(spec, RTree)
        items = _Items(sink, memory_bytes)
        for batch in rows:
            values, ids = batch.column(VALUE), batch.column(ROW).to_numpy()
            boxes = finite(boxes_of(values))
            is_box = ~np.isnan(boxes[:, 0])
            items.add(boxes[is_box], ids[is_box])
            if values.null_count:
                items.nulls.add(ids[np.asarray(values.is_null())])
        _write(items, spec, sink, memory_bytes)
        return b""

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several."""
        assert isinstance(spec, RTree)
        items = _Items(sink, memory_bytes)
        for source in sources:
            found = source.files.read(NULLS, ("nulls",))[0].to_pylist()
            known = decode_row_map(found[0] if found else b"")
            count = source.files.metadata(DATA).get("num_items", "")
            if known is None or not count.isdecimal():
                return None
            rows, is_kept = source.translate(known)
            items.nulls.add(rows[is_kept])
            for first in range(0, int(count), _ROWS_AT_A_TIME):
                some = range(first, min(first + _ROWS_AT_A_TIME, int(count)))
                stored, ids = source.files.read(DATA, ("bbox", "id"), some)
                rows, is_kept = source.translate(np.asarray(ids).astype(np.uint64))
                items.add(finite(boxes_of(stored)[is_kept]), rows[is_kept])
        _write(items, spec, sink, memory_bytes)
        return b""

    def spec(self, files: SegmentFiles) -> RTree:
        """Return the parameters of a segment."""
        size = files.metadata(DATA).get("page_size", "")
        return RTree(int(size)) if size.isdecimal() and int(size) > 1 else RTree()

    def open(self, files: SegmentFiles) -> RTreeSegment:
        """Return an opened segment."""
        return RTreeSegment(files)


class _Items:
    """Boxes with their rows, and those around them."""

    def __init__(self, sink: Sink, memory_bytes: int) -> None:
        self.count = 0
        self.nulls = RowBitmaps()
        self.around: Boxes = np.array([np.inf, np.inf, -np.inf, -np.inf])
        self.centres = self.around.copy()
        self._kept = Kept(sink, memory_bytes)

    def add(self, boxes: Boxes, rows: Numbers) -> None:
        """Add boxes, all of them known and finite."""
        if len(boxes):
            self.count += len(boxes)
            self.around = _wider(self.around, boxes)
            self.centres = _wider(self.centres, np.tile(_centres(boxes), 2))
            self._kept.add(Pairs(_packed(boxes), rows))

    def on_curve(self) -> Stream:
        """Yield the boxes behind their places on a Hilbert curve, which a sort begins with."""
        for values, rows in self._kept.pairs():
            boxes = _unpacked(values)
            places = _places(boxes, self.centres)
            yield Pairs(_packed(boxes, places), rows)


def _wider(around: Boxes, boxes: Boxes) -> Boxes:
    """Return a box around another and more; one side after the other, which is fastest."""
    x, y, far_x, far_y = boxes.T
    least = np.minimum(around[:2], (x.min(), y.min()))
    return np.concatenate([least, np.maximum(around[2:], (far_x.max(), far_y.max()))])


def _centres(boxes: Boxes) -> Boxes:
    return boxes[:, :2] / 2 + boxes[:, 2:] / 2


def _packed(boxes: Boxes, places: npt.NDArray[np.uint32] | None = None) -> pa.Array:
    """Return boxes as byte strings, which begin with their places."""
    sides = np.ascontiguousarray(boxes).view(np.uint8).reshape(len(boxes), -1)
    if places is not None:
        before = places.astype(">u4").view(np.uint8).reshape(-1, 4)
        sides = np.concatenate([before, sides], axis=1)
    data = pa.py_buffer(sides)
    return pa.Array.from_buffers(pa.binary(sides.shape[1]), len(boxes), [None, data])


def _unpacked(values: pa.Array) -> Boxes:
    width = values.type.byte_width
    data = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * width :]
    rows = data[: len(values) * width].reshape(-1, width)
    return np.ascontiguousarray(rows[:, width - 32 :]).view(np.float64)


def _places(boxes: Boxes, centres: Boxes) -> npt.NDArray[np.uint32]:
    """Return the places of boxes on a Hilbert curve through all centres."""
    extent = centres[2:] / 2 - centres[:2] / 2
    share = (_centres(boxes) / 2 - centres[:2] / 2) / np.where(extent > 0, extent, 1)
    most = (1 << hilbert.BITS) - 1
    x, y = (share * most).astype(np.int64).clip(0, most).T.astype(np.uint16)
    return hilbert.hilbert_places(x, y)


def _write(items: _Items, spec: RTree, sink: Sink, memory_bytes: int) -> None:
    extension = {"ARROW:extension:name": "geoarrow.box"}
    schema = pa.schema(
        [
            pa.field("bbox", _BOX, nullable=False, metadata=extension),
            pa.field("id", pa.uint64(), nullable=False),
        ]
    )
    levels = level_rows(items.count, spec.page_size)
    around = items.around if items.count else np.zeros(4)
    sides = dict(zip(("minx", "miny", "maxx", "maxy"), around.tolist(), strict=True))
    metadata = {
        "page_size": str(spec.page_size),
        "num_items": str(items.count),
        "num_pages": str(sum(-(-rows // spec.page_size) for rows in levels)),
        "bbox": json.dumps(sides, separators=(",", ":")),
    }
    leaves = sorting.sort(items.on_curve(), sink, memory_bytes)
    rows = _levels(leaves, spec.page_size, lambda: Kept(sink, memory_bytes))
    sink.write(DATA, schema, (_batch(one, schema) for one in rows), metadata=metadata)
    nulls = byte_strings([items.nulls.encoded(has_sizes=True)]).cast(pa.binary())
    null_schema = pa.schema([pa.field("nulls", pa.binary(), nullable=False)])
    sink.write(NULLS, null_schema, [pa.RecordBatch.from_arrays([nulls], schema=null_schema)])


def _levels(leaves: Stream, page_rows: int, keep: Callable[[], Kept]) -> Stream:
    """Yield the leaves, then level after level above them."""
    level, pages = leaves, 0
    while True:
        above, count = keep(), 0
        for some in sorting.whole_pages(level, page_rows):
            yield some
            boxes = _unpacked(some.values)
            firsts = np.arange(0, len(boxes), page_rows)
            least = np.minimum.reduceat(boxes[:, :2], firsts)
            largest = np.maximum.reduceat(boxes[:, 2:], firsts)
            ids = np.arange(pages, pages + len(firsts), dtype=np.uint64)
            above.add(Pairs(_packed(np.concatenate([least, largest], axis=1)), ids))
            pages, count = pages + len(firsts), count + len(firsts)
        if count < 2:
            return
        level = above.pairs()


def _batch(pairs: Pairs, schema: pa.Schema) -> pa.RecordBatch:
    sides = [numbers(side) for side in _unpacked(pairs.values).T]
    boxes = pa.StructArray.from_arrays(sides, fields=list(_BOX))
    return pa.RecordBatch.from_arrays([boxes, numbers(pairs.rows)], schema=schema)


def level_rows(items: int, page_rows: int) -> list[int]:
    """Return the number of rows of each level, that of the items first."""
    levels = [items]
    while levels[-1] > page_rows:
        levels.append(-(-levels[-1] // page_rows))
    return levels


def finite(boxes: Boxes) -> Boxes:
    """Return boxes with the largest numbers in place of infinite ones."""
    return np.clip(boxes, -LARGEST, LARGEST)


def _meets(boxes: Boxes, box: Boxes) -> Mask:
    """Return which boxes meet another; one that is not known may."""
    known = finite(boxes)
    apart = (known[:, :2] > box[2:]) | (known[:, 2:] < box[:2])
    return np.asarray(~apart.any(axis=1))
