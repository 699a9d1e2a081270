"""RTREE: bounding boxes of geometries, in pages of pages.

``page_data.lance`` has the columns ``bbox``, a struct of ``xmin``, ``ymin``, ``xmax`` and ``ymax``,
and ``id`` (u64). The first ``num_items`` rows are the boxes of geometries with the row of each.
Then comes level after level: one row for each ``page_size`` rows of the level below, until a level
fits into one page. ``nulls.lance`` has one set of rows, those without a geometry. Empty geometries
are in neither file. Geometries are in the order of the Hilbert curve through their centres. The id
of a row of an upper level is the number of its page, counted from the first page of geometries.
"""

import json
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.expression import Call, Column, Expression, IsNull, Literal
from lancetable.expression.functions.geo import RELATIONS
from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.rows import RowSet
from lancetable.index.base import ROW, VALUE, Numbers, Sink, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.row_map import decode_row_map
from lancetable.index.scalar.geometry import Boxes, boxes_of, is_geometry
from lancetable.index.specs import RTree, Spec

DATA, NULLS = "page_data.lance", "nulls.lance"
_NAMES = ("xmin", "ymin", "xmax", "ymax")
_HILBERT_BITS = 16
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
        """Write a segment; the boxes are held in memory, 40 bytes for each row."""
        assert isinstance(spec, RTree)
        boxes, ids, nulls = [], [], RowBitmaps()
        for batch in rows:
            values, numbers = batch.column(VALUE), batch.column(ROW).to_numpy()
            found = finite(boxes_of(values))
            is_box = ~np.isnan(found).any(axis=1)
            boxes.append(found[is_box])
            ids.append(numbers[is_box])
            nulls.add(numbers[np.asarray(values.is_null())])
        _write(boxes, ids, nulls, spec, sink)
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
        boxes, ids, nulls = [], [], RowBitmaps()
        for source in sources:
            found = source.files.read(NULLS, ("nulls",))[0].to_pylist()
            known = decode_row_map(found[0] if found else b"")
            items = source.files.metadata(DATA).get("num_items", "")
            if known is None or not items.isdecimal():
                return None
            rows, is_kept = source.translate(known)
            nulls.add(rows[is_kept])
            stored, numbers = source.files.read(DATA, ("bbox", "id"), range(int(items)))
            rows, is_kept = source.translate(np.asarray(numbers).astype(np.uint64))
            boxes.append(boxes_of(stored)[is_kept])
            ids.append(rows[is_kept])
        _write(boxes, ids, nulls, spec, sink)
        return b""

    def spec(self, files: SegmentFiles) -> RTree:
        """Return the parameters of a segment."""
        size = files.metadata(DATA).get("page_size", "")
        return RTree(int(size)) if size.isdecimal() and int(size) > 1 else RTree()

    def open(self, files: SegmentFiles) -> RTreeSegment:
        """Return an opened segment."""
        return RTreeSegment(files)


def _write(
    parts: Sequence[Boxes],
    rows: Sequence[Numbers],
    nulls: RowBitmaps,
    spec: RTree,
    sink: Sink,
) -> None:
    boxes = np.concatenate([*parts, np.empty((0, 4))])
    ids = np.concatenate([*rows, np.empty(0, np.uint64)])
    order = np.argsort(_hilbert(boxes), kind="stable")
    levels, numbers = [boxes[order]], [ids[order]]
    pages = 0
    while len(levels[-1]) > spec.page_size:
        firsts = np.arange(0, len(levels[-1]), spec.page_size)
        least = np.minimum.reduceat(levels[-1][:, :2], firsts)
        largest = np.maximum.reduceat(levels[-1][:, 2:], firsts)
        levels.append(np.concatenate([least, largest], axis=1))
        numbers.append(np.arange(pages, pages + len(firsts), dtype=np.uint64))
        pages += len(firsts)
    extension = {"ARROW:extension:name": "geoarrow.box"}
    schema = pa.schema(
        [
            pa.field("bbox", _BOX, nullable=False, metadata=extension),
            pa.field("id", pa.uint64(), nullable=False),
        ]
    )
    around = [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)] if len(boxes) else [0.0] * 4
    metadata = {
        "page_size": str(spec.page_size),
        "num_items": str(len(boxes)),
        "num_pages": str(pages + (1 if len(boxes) else 0)),
        "bbox": json.dumps(
            dict(zip(("minx", "miny", "maxx", "maxy"), map(float, around), strict=True)),
            separators=(",", ":"),
        ),
    }
    whole, all_ids = np.concatenate(levels), np.concatenate(numbers)
    batches = (
        _batch(whole[first : first + _ROWS_AT_A_TIME], all_ids[first : first + _ROWS_AT_A_TIME])
        for first in range(0, len(whole), _ROWS_AT_A_TIME)
    )
    sink.write(DATA, schema, (batch.cast(schema) for batch in batches), metadata=metadata)
    null_set = pa.record_batch([pa.array([nulls.encoded(has_sizes=True)], pa.binary())], ["nulls"])
    sink.write(NULLS, pa.schema([pa.field("nulls", pa.binary(), nullable=False)]), [null_set])


def _batch(boxes: Boxes, ids: Numbers) -> pa.RecordBatch:
    sides = [pa.array(np.ascontiguousarray(side)) for side in boxes.T]
    return pa.record_batch(
        [pa.StructArray.from_arrays(sides, fields=list(_BOX)), ids], ["bbox", "id"]
    )


def _hilbert(boxes: Boxes) -> Numbers:
    """Return the place of the centre of each box on a Hilbert curve through all centres."""
    centres = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    if not len(centres):
        return np.empty(0, np.uint64)
    least = centres.min(axis=0)
    extent = centres.max(axis=0) / 2 - least / 2
    most = (1 << _HILBERT_BITS) - 1
    share = (centres / 2 - least / 2) / np.where(extent > 0, extent, 1)
    x, y = (share * most).astype(np.int64).clip(0, most).T
    found = np.zeros(len(x), np.uint64)
    for bit in range(_HILBERT_BITS - 1, -1, -1):
        in_x, in_y = (x >> bit) & 1, (y >> bit) & 1
        found |= ((3 * in_x) ^ in_y).astype(np.uint64) << np.uint64(2 * bit)
        turned = (in_y == 0) & (in_x == 1)
        x, y = np.where(turned, most - x, x), np.where(turned, most - y, y)
        x, y = np.where(in_y == 0, y, x), np.where(in_y == 0, x, y)
    return found


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
