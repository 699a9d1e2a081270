"""Functions on geometries give what they give in pylance."""

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.expression.functions.geo import RELATIONS
from tests.unit.index.test_geometry import line, point, polygon

pytestmark = pytest.mark.oracle

SHAPES = [
    point(1, 1),
    point(0, 0),
    line((0, 0), (2, 2)),
    line((1, -1), (1, 3)),
    polygon((0, 0), (2, 0), (2, 2), (0, 2), (0, 0)),
    polygon((1, 1), (3, 1), (3, 3), (1, 3), (1, 1)),
    None,
    polygon((0, 0), (1, 0), (1, 1), (0, 1), (0, 0)),
]
OTHERS = ["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POINT (1 1)", "LINESTRING (0 1, 2 1)"]


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("geo") / "t")
    data = {"id": range(len(SHAPES)), "g": pa.array(SHAPES, pa.binary())}
    lance.write_dataset(pa.table(data), path)
    return path


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", RELATIONS)
def test_relations(uri, name, other):
    where = f"{name}(g, st_geomfromtext('{other}'))"
    theirs = lance.dataset(uri).to_table(columns=["id"], filter=where)
    assert lt.open_table(uri).scan(["id"], where=where).to_arrow() == theirs


def test_points_and_bytes(uri):
    table = lt.open_table(uri)
    for where in (
        "st_intersects(g, st_point(1.0, 1.0))",
        "st_intersects(g, st_geomfromwkb(st_point(1.0, 1.0)))",
    ):
        assert table.scan(["id"], where=where).to_arrow()["id"].to_pylist() == [0, 2, 3, 4, 5, 7]
