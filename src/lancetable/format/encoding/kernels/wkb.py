"""Find the bounding boxes of geometries in WKB."""

import struct
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import ExpressionError
from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.format.encoding.kernels.foreign import address

Boxes: TypeAlias = npt.NDArray[np.float64]
"""One row of four numbers per geometry: least x, least y, largest x, largest y."""

NOWHERE: Boxes = np.full(4, np.nan)
_POINT, _LINE, _POLYGON = 1, 2, 3
_COLLECTIONS = {4, 5, 6, 7}
_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000
_DEEPEST = 32


def wkb_boxes(values: pa.LargeBinaryArray) -> Boxes:
    """Return the box of each geometry; NaN for null and for those without points.

    Raises:
        ExpressionError: a value is not a geometry.
    """
    if DLL is None:
        boxes = (NOWHERE if one is None else _wkb_box(one) for one in values.to_pylist())
        return stacked(list(boxes))
    found = np.full((len(values), 4), np.nan)
    edges = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    data, is_valid = values.buffers()[2], np.asarray(values.is_valid()).view(np.uint8)
    start = 0 if data is None else data.address
    read = DLL.lt_wkb_boxes(start, address(edges), address(is_valid), len(values), address(found))
    if read < len(values):
        raise _no_geometry(values[read].as_py())
    return found


def box_of(pairs: Boxes) -> Boxes:
    """Return the box around points, given as pairs of x and y; those with NaN are none."""
    known = pairs[~np.isnan(pairs).any(axis=1)]
    return np.concatenate([known.min(axis=0), known.max(axis=0)]) if len(known) else NOWHERE


def stacked(boxes: list[Boxes]) -> Boxes:
    """Return all boxes together."""
    return np.stack(boxes) if boxes else np.empty((0, 4))


def _no_geometry(data: bytes) -> ExpressionError:
    return ExpressionError(f"{data[:16].hex()}… is not a geometry in WKB")


def _wkb_box(data: bytes) -> Boxes:
    try:
        return box_of(np.concatenate([np.empty((0, 2)), *_Wkb(data).pairs()]))
    except (struct.error, ValueError) as cause:
        raise _no_geometry(data) from cause


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
        if code % 1000 in _COLLECTIONS and depth < _DEEPEST:
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
