"""Bounding boxes of geometries: least x, least y, largest x, largest y.

A geometry is WKB bytes, WKT text, or one of GeoArrow's layouts: a struct of ``x`` and ``y``, lists
of such structs to any depth, or a struct of ``xmin``, ``ymin``, ``xmax`` and ``ymax``. Coordinates
other than x and y are passed over. An empty geometry has no box: its numbers are NaN.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression import coerce
from lancetable.format.encoding.kernels.wkb import NOWHERE, Boxes, box_of, stacked, wkb_boxes

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
        return stacked([box_of(_wkt_pairs(one)) if one else NOWHERE for one in values.to_pylist()])
    if coerce.is_bytes(values.type):
        return wkb_boxes(values.cast(pa.large_binary()))
    boxes = _nested_boxes(values)
    boxes[np.asarray(pc.is_null(values))] = np.nan
    return boxes


_BOX = ("xmin", "ymin", "xmax", "ymax")


def _names(type_: pa.StructType) -> list[str]:
    return [field.name for field in type_]


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


def _wkt_pairs(text: str) -> Boxes:
    """Return the pairs of x and y in a text: the first two numbers between commas and brackets."""
    found = [_NUMBER.findall(point)[:2] for point in re.split(r"[(),]", text)]
    pairs = [[float(number) for number in pair] for pair in found if len(pair) == 2]
    if not pairs and not text.rstrip().upper().endswith("EMPTY"):
        raise ExpressionError(f"{text[:40]!r} is not a geometry in WKT")
    return np.array(pairs).reshape(-1, 2)
