"""Functions on geometries: WKB bytes, WKT text, or points as a struct of ``x`` and ``y``.

All but the constructors of points need the package shapely.
"""

import struct
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression import coerce
from lancetable.expression.functions.signature import Function, Kernel, Kind, by_row, function

RELATIONS: Mapping[str, str] = {
    "st_intersects": "intersects",
    "st_contains": "contains",
    "st_within": "within",
    "st_touches": "touches",
    "st_crosses": "crosses",
    "st_overlaps": "overlaps",
    "st_covers": "covers",
    "st_coveredby": "covered_by",
}
"""Functions that are true only where the bounding boxes meet, with their names in shapely."""


def _shapely() -> Any:  # noqa: ANN401 - a module without types
    try:
        return import_module("shapely")
    except ImportError as cause:
        message = "functions on geometries need shapely: pip install 'lancetable[geo]'"
        raise ExpressionError(message) from cause


def _geometries(shapely: Any, values: pa.Array) -> Any:  # noqa: ANN401
    """Return a value as one geometry, or an array as an array of them."""
    if isinstance(values, pa.Scalar):
        return _geometries(shapely, pa.array([values.as_py()], values.type))[0]
    if pt.is_struct(values.type) and {"x", "y"} <= {field.name for field in values.type}:
        x, y = (pc.struct_field(values, name).cast(pa.float64()) for name in ("x", "y"))
        made = shapely.points(*(one.to_numpy(zero_copy_only=False) for one in (x, y)))
        return np.where(np.asarray(pc.is_null(values)), None, made)
    read = shapely.from_wkt if coerce.is_text(values.type) else shapely.from_wkb
    if not coerce.is_text(values.type) and not coerce.is_bytes(values.type):
        raise ExpressionError(f"a geometry is WKB, WKT or a struct of x and y, not {values.type}")
    try:
        return read(np.array(values.to_pylist(), object))
    except Exception as cause:
        raise ExpressionError(f"a value is not a geometry: {cause}") from cause


def _relation(name: str) -> Kernel:
    def kernel(arguments: Sequence[pa.Array]) -> pa.Array:
        shapely = _shapely()
        first, second = (_geometries(shapely, each) for each in arguments)
        known = getattr(shapely, name)(first, second)
        is_null = shapely.is_missing(first) | shapely.is_missing(second)
        return pa.array(np.atleast_1d(known), pa.bool_(), mask=np.atleast_1d(is_null))

    return kernel


def _from_text(arguments: Sequence[pa.Array]) -> pa.Array:
    shapely = _shapely()
    return pa.array(list(shapely.to_wkb(_geometries(shapely, arguments[0]))), pa.binary())


def _point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


GEO_FUNCTIONS: Mapping[str, Function] = {
    **{name: function(_relation(called), Kind.ANY, Kind.ANY) for name, called in RELATIONS.items()},
    "st_geomfromtext": function(_from_text, Kind.TEXT),
    "st_geomfromwkb": function(lambda arguments: arguments[0], Kind.BYTES),
    "st_point": function(by_row(_point, pa.binary()), Kind.FLOAT, Kind.FLOAT),
}
