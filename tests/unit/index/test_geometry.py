"""Bounding boxes of geometries, and functions on geometries with and without shapely."""

import math
import struct
import sys

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ExpressionError
from lancetable.index.scalar.geometry import boxes_of
from lancetable.index.scalar.rtree import level_rows


def point(x, y, order="<"):
    return struct.pack(f"{order}BIdd", order == "<", 1, x, y)


def line(*points, order="<", width=2, kind=2):
    flat = [number for one in points for number in one]
    head = struct.pack(f"{order}BII", order == "<", kind, len(points))
    return head + struct.pack(f"{order}{width * len(points)}d", *flat)


def polygon(*points):
    return struct.pack("<BII", 1, 3, 1) + line(*points)[5:]


CASES = {
    "point": (point(1, 2), (1, 2, 1, 2)),
    "big endian": (point(1, 2, ">"), (1, 2, 1, 2)),
    "line": (line((1, 5), (3, 2)), (1, 2, 3, 5)),
    "line with z": (line((1, 5, 9), (3, 2, 9), width=3, kind=1002), (1, 2, 3, 5)),
    "line with z and m": (line((1, 5, 9, 9), width=4, kind=0xC0000002), (1, 5, 1, 5)),
    "polygon": (polygon((0, 0), (4, 0), (4, 3), (0, 0)), (0, 0, 4, 3)),
    "collection": (struct.pack("<BII", 1, 7, 2) + point(1, 2) + line((5, 0)), (1, 0, 5, 2)),
    "srid": (struct.pack("<BIIdd", 1, 0x20000001, 4326, 1, 2), (1, 2, 1, 2)),
    "infinite": (line((0, 0), (math.inf, 1)), (0, 0, math.inf, 1)),
    "part unknown": (line((0, 0), (math.nan, 9), (1, 1)), (0, 0, 1, 1)),
    "WKT point": ("POINT Z (1 2 3)", (1, 2, 1, 2)),
    "WKT polygon": ("POLYGON ((0 0, 4.5e0 .5, 4 3, 0 0), (1 1, 1 2, -2 1))", (-2, 0, 4.5, 3)),
}
EMPTY = [point(math.nan, math.nan), line(), struct.pack("<BII", 1, 3, 0), "POINT EMPTY", None]


@pytest.mark.parametrize("case", CASES)
def test_a_geometry_has_a_box(case):
    value, box = CASES[case]
    found = boxes_of(pa.array([None, value, value]))
    assert np.isnan(found[0]).all()
    assert [tuple(one) for one in found[1:]] == [box, box]


@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_geometry_has_none(value):
    assert np.isnan(boxes_of(pa.array([value], None if value else pa.binary()))).all()


def test_points_are_read_together():
    points = [(1.0, 2.0), (math.nan, math.nan), (-3.0, math.inf)]
    values = pa.array([point(7, 7), *(point(*one) for one in points)], pa.binary())[1:]
    np.testing.assert_array_equal(boxes_of(values), [one * 2 for one in points])


def test_layouts_of_geoarrow_have_boxes():
    points = pa.array([{"x": 1.0, "y": 2.0}, None, {"x": 3.0, "y": -1.0}])
    np.testing.assert_array_equal(boxes_of(points), [[1, 2, 1, 2], [np.nan] * 4, [3, -1, 3, -1]])
    pairs = [[(1, 5), (3, 2)], [], None, [(7, 7)]]
    rings = pa.array(
        [one if one is None else [{"x": float(x), "y": float(y)} for x, y in one] for one in pairs]
    )
    expected = [[1, 2, 3, 5], [np.nan] * 4, [np.nan] * 4, [7, 7, 7, 7]]
    np.testing.assert_array_equal(boxes_of(rings), expected)
    np.testing.assert_array_equal(boxes_of(rings[1:]), expected[1:])
    nested = pa.ListArray.from_arrays([0, 2, 4], rings)
    np.testing.assert_array_equal(boxes_of(nested), [[1, 2, 3, 5], [7, 7, 7, 7]])


@pytest.mark.parametrize("value", [b"", b"\x01\x01", point(1, 2)[:-1], b"\x01\x63" + bytes(9), "x"])
def test_what_is_not_a_geometry_is_refused(value):
    with pytest.raises(ExpressionError, match="is not a geometry in WK"):
        boxes_of(pa.array([value]))


def test_levels_end_with_one_page():
    assert level_rows(10_000, 16) == [10_000, 625, 40, 3]
    assert level_rows(3, 16) == [3]


POINTS = pa.table({"id": [0, 1, 2, 3], "g": [point(1, 2), None, point(5, 5), line((0, 0), (9, 9))]})


def test_functions_name_the_package_they_need(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "shapely", None)
    table = lt.create_table(tmp_path / "t", POINTS)
    with pytest.raises(ExpressionError, match=r"need shapely: pip install 'lancetable\[geo\]'"):
        table.scan(where="st_intersects(g, 'POINT (1 2)')").to_arrow()


def test_rows_without_a_geometry_do_not_match(tmp_path):
    table = lt.create_table(tmp_path / "t", POINTS)
    for where, ids in (
        ("st_intersects(g, 'LINESTRING (0 0, 2 4)')", [0, 3]),
        ("not ST_Intersects(g, 'LINESTRING (0 0, 2 4)')", [2]),
        ("st_intersects(g, st_point(5, 5))", [2, 3]),
        ("st_intersects('POINT (5 5)', g)", [2, 3]),
    ):
        assert table.scan(["id"], where=where).to_arrow()["id"].to_pylist() == ids
