"""Bounding boxes of geometries: least x, least y, largest x, largest y.

A geometry is WKB bytes, WKT text, or one of GeoArrow's layouts: a struct of ``x`` and ``y``, lists
of such structs to any depth, or a struct of ``xmin``, ``ymin``, ``xmax`` and ``ymax``. Coordinates
other than x and y are passed over. An empty geometry has no box: its numbers are NaN.
"""

import re
import struct
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression import coerce

Boxes: TypeAlias = npt.NDArray[np.float64]
"""One row of four numbers per geometry."""

_POINT_BYTES = 21
_POINT, _LINE, _POLYGON = 1, 2, 3
_COLLECTIONS = {4, 5, 6, 7}
_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|nan)", re.IGNORECASE)


def is_geometry(type_: pa.DataType) -> bool:
    """Return whether values of a type can be geometries."""
    type_ = coerce.plain(type_)
    while coerce.is_list(type_):
        type_ = coerce.plain(type_.value_type)
    if pt.is_struct(type_):
        return {"x", "y"} <= set(_names(type_)) or set(_BOX) <= set(_names(type_))
    return bool(coerce.is_text(type_) or coerce.is_bytes(type_))


def boxes_of(values: pa.Array) -> Boxes:
    """Return the box of each geometry; NaN for null.

    Raises:
        ExpressionError: a value is not a geometry.
    """
    while isinstance(values, pa.ExtensionArray):
        values = values.storage
    if coerce.is_text(values.type):
        return _stack([_box(_wkt_pairs(one)) if one else _NOWHERE for one in values.to_pylist()])
    if coerce.is_bytes(values.type):
        return _wkb_boxes(values)
    boxes = _nested_boxes(values)
    boxes[np.asarray(pc.is_null(values))] = np.nan
    return boxes


_BOX = ("xmin", "ymin", "xmax", "ymax")
_NOWHERE = np.full(4, np.nan)


def _names(type_: pa.StructType) -> list[str]:
    return [field.name for field in type_]


def _stack(boxes: list[Boxes]) -> Boxes:
    return np.stack(boxes) if boxes else np.empty((0, 4))


def _box(pairs: Boxes) -> Boxes:
    known = pairs[~np.isnan(pairs).any(axis=1)]
    return np.concatenate([known.min(axis=0), known.max(axis=0)]) if len(known) else _NOWHERE


def _nested_boxes(values: pa.Array) -> Boxes:
    if coerce.is_list(values.type):
        return _merged(values, _nested_boxes(values.values))
    names = _names(values.type)
    wanted = _BOX if set(_BOX) <= set(names) else ("x", "y", "x", "y")
    columns = [values.field(names.index(one)).slice(0, len(values)) for one in wanted]
    boxes = np.stack([one.to_numpy(zero_copy_only=False) for one in columns], axis=1)
    boxes = boxes.astype(np.float64)
    boxes[np.isnan(boxes).any(axis=1)] = np.nan
    return boxes


def _merged(lists: pa.Array, inner: Boxes) -> Boxes:
    """Return the boxes of lists by those of all their items."""
    boxes = np.full((len(lists), 4), np.nan)
    if pt.is_fixed_size_list(lists.type):
        raise ExpressionError(f"geometries of type {lists.type} are not supported; use WKB")
    offsets = np.asarray(lists.offsets)
    filled = np.flatnonzero(np.diff(offsets))
    if not len(filled):
        return boxes
    inner = inner[: offsets[-1]]
    for column, least in ((0, np.fmin), (1, np.fmin), (2, np.fmax), (3, np.fmax)):
        boxes[filled, column] = least.reduceat(inner[:, column], offsets[filled])
    return boxes


def _wkb_boxes(values: pa.Array) -> Boxes:
    whole = values.cast(pa.large_binary())
    lengths = pc.binary_length(whole)
    if len(whole) and not whole.null_count and pc.all(pc.equal(lengths, _POINT_BYTES)).as_py():
        offsets = np.frombuffer(whole.buffers()[1], np.int64)
        start = int(offsets[whole.offset])
        data = np.frombuffer(whole.buffers()[2], np.uint8)[start:]
        rows = data[: _POINT_BYTES * len(whole)].reshape(-1, _POINT_BYTES)
        if (rows[:, :5] == (1, 1, 0, 0, 0)).all():
            points = np.ascontiguousarray(rows[:, 5:]).view("<f8")
            points[np.isnan(points).any(axis=1)] = np.nan
            return np.concatenate([points, points], axis=1)
    return _stack([_wkb_box(one) if one is not None else _NOWHERE for one in whole.to_pylist()])


def _wkb_box(data: bytes) -> Boxes:
    try:
        return _box(np.concatenate([np.empty((0, 2)), *_Wkb(data).pairs()]))
    except (struct.error, ValueError) as cause:
        raise ExpressionError(f"{data[:16].hex()}… is not a geometry in WKB") from cause


class _Wkb:
    """Reads the coordinates of one geometry from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def pairs(self, depth: int = 0) -> Iterator[Boxes]:
        """Yield the pairs of x and y of each sequence of points."""
        order = "<" if self._number("<B") else ">"
        kind = self._number(f"{order}I")
        if kind & _HAS_SRID:
            self._number(f"{order}I")
        code = kind & ~(_HAS_Z | _HAS_M | _HAS_SRID)
        extra = bool(kind & _HAS_Z) + bool(kind & _HAS_M) + (0, 1, 1, 2)[min(code // 1000, 3)]
        if code % 1000 in _COLLECTIONS and depth < 32:
            for _ in range(self._number(f"{order}I")):
                yield from self.pairs(depth + 1)
        elif code % 1000 in {_POINT, _LINE, _POLYGON}:
            rings = self._number(f"{order}I") if code % 1000 == _POLYGON else 1
            for _ in range(rings):
                count = 1 if code % 1000 == _POINT else self._number(f"{order}I")
                yield self._points(order, count, 2 + extra)
        else:
            raise ValueError(kind)

    def _number(self, form: str) -> int:
        (found,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def _points(self, order: str, count: int, width: int) -> Boxes:
        found = np.frombuffer(self._data, f"{order}f8", count * width, self._at)
        self._at += 8 * count * width
        return found.reshape(count, width)[:, :2].astype(np.float64)


def _wkt_pairs(text: str) -> Boxes:
    """Return the pairs of x and y in a text: the first two numbers between commas and brackets."""
    found = [_NUMBER.findall(point)[:2] for point in re.split(r"[(),]", text)]
    pairs = [[float(number) for number in pair] for pair in found if len(pair) == 2]
    if not pairs and not text.rstrip().upper().endswith("EMPTY"):
        raise ExpressionError(f"{text[:40]!r} is not a geometry in WKT")
    return np.array(pairs).reshape(-1, 2)
