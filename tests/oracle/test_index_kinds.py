"""Bloom filters, trigrams, JSON paths and R-trees of pylance answer as a scan does."""

import random

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.indices import IndexConfig

import lancetable as lt
from lancetable.expression import Call, Column, literal
from lancetable.index.registry import OpenSegments, open_scalar
from tests.unit.index.test_geometry import line, point

pytestmark = pytest.mark.oracle

ROWS = 500
TYPES = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()),
    *(pa.uint64(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
    *(pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.timestamp("ns", "UTC")),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
]
WORDS = [
    "Straße",
    "street",
    "STREET",
    "Ünïcode",
    "a_b%c",
    "red green",
    "x",
    "",
    "日本語abc",
    "12345",
]
TEXT_FILTERS = [
    "contains(v, 'tre')",
    "contains(v, 'TRE')",
    "contains(v, 'raß')",
    "contains(v, 'n g')",
    "contains(v, '本語abc')",
    "v like '%gre%'",
    "v like 'str%t'",
    "v like '%b\\%c%'",
    "starts_with(v, 'str')",
    "ends_with(v, '345')",
    "regexp_like(v, 'str+eet')",
    "regexp_like(v, 'stre{1}et')",
    "regexp_like(v, 'xyz|123')",
    "regexp_like(v, '[0-9]+345?')",
    "regexp_like(v, 'red.green')",
]


def values_of(type_: pa.DataType, draw: random.Random) -> pa.Array:
    numbers = [None if draw.random() < 0.1 else draw.randrange(100) for _ in range(ROWS)]
    if pa.types.is_floating(type_):
        odd = [0.0, -0.0, float("inf"), 1.5]
        return pa.array([draw.choice(odd) if one == 3 else one for one in numbers], type_)
    if pa.types.is_date64(type_):
        return pa.array(numbers, pa.int32()).cast(pa.date32()).cast(type_)
    if pa.types.is_integer(type_) or pa.types.is_temporal(type_):
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(numbers, type_ if pa.types.is_integer(type_) else width).cast(type_)
    texts = [None if one is None else str(one) * (1 + one % 17) for one in numbers]
    return pa.array(texts, pa.string()).cast(type_)


def written(values: pa.Array, uri: str, *, stable: bool = False) -> lance.LanceDataset:
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": values})
    return lance.write_dataset(
        table, uri, max_rows_per_file=200, enable_stable_row_ids=stable, data_storage_version="2.2"
    )


def assert_same_rows(uri, where, *, uses=True, table=None):
    table = lt.open_table(uri) if table is None else table
    scan = table.scan(["id"], where=where)
    plain = table.scan(["id"], where=where, use_indices=False).to_arrow()["id"].to_pylist()
    assert scan.to_arrow()["id"].to_pylist() == plain, where
    assert ("index " in scan.explain()) >= uses, where
    return plain


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_bloom_filters_of_pylance(tmp_path, type_, stable):
    values = values_of(type_, random.Random(1))
    uri = str(tmp_path / "t")
    dataset = written(values, uri, stable=stable)
    settings = {"number_of_items": 50, "probability": 0.01}
    dataset.create_scalar_index("v", IndexConfig("bloomfilter", settings))
    dataset.delete("id % 9 = 1")
    column = pc.field("v")
    for value in values.unique():
        where = column == value if value.is_valid else column.is_null()
        assert_same_rows(uri, where)
    few = column.isin(values.drop_null()[:3])
    assert_same_rows(uri, few, uses=not pa.types.is_floating(type_))


@pytest.mark.parametrize("stable", [False, True])
def test_trigrams_of_pylance(tmp_path, stable):
    draw = random.Random(2)
    words = [None if draw.random() < 0.1 else " ".join(draw.sample(WORDS, 2)) for _ in range(ROWS)]
    uri = str(tmp_path / "t")
    dataset = written(pa.array(words), uri, stable=stable)
    dataset.create_scalar_index("v", "NGRAM")
    dataset.delete("id % 9 = 1")
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    for where in TEXT_FILTERS:
        is_certain = not any(one in where for one in ("\\", "|", "?", "raß", "n g"))
        assert_same_rows(uri, where, uses=is_certain)


JSON_VALUES: dict[str, tuple[list[object], str, str]] = {
    "int": ([1, 7, -3, 2**40], "json_get_int(v, 'a')", "7"),
    "float": ([1.5, -0.0, 7.0, 1e300], "json_get_float(v, 'a')", "7.0"),
    "string": ([f'"{one}"' for one in ("x", "7", "ü", "")], "json_get_string(v, 'a')", "'7'"),
    "bool": (["true", "false"], "json_get_bool(v, 'a')", "true"),
}


@pytest.mark.parametrize("path", ["a", "$.a"])
@pytest.mark.parametrize("target", ["btree", "bitmap", "zonemap"])
@pytest.mark.parametrize("kind", JSON_VALUES)
def test_json_paths_of_pylance(tmp_path, kind, target, path):
    chosen, getter, constant = JSON_VALUES[kind]
    draw = random.Random(3)
    documents = [
        draw.choice([None, "{}", '{"a":null}', "[1]", '{"b":{"a":1}}', '{"$.a":7}'])
        if draw.random() < 0.3
        else f'{{"a":{draw.choice(chosen)},"b":1}}'
        for _ in range(ROWS)
    ]
    uri = str(tmp_path / "t")
    dataset = written(pa.array(documents, pa.json_()), uri)
    dataset.create_scalar_index(
        "v", IndexConfig("json", {"target_index_type": target, "path": path})
    )
    dataset.delete("id % 9 = 1")
    for where in (
        f"{getter} = {constant}",
        f"{getter} in ({constant})",
        f"{getter} != {constant}",
        f"{getter} is null",
        f"{getter} is not null",
        f"{getter} >= {constant} and {getter} <= {constant}",
    ):
        assert_same_rows(uri, where, uses=target != "zonemap")
    for where in (
        f"{getter} = {constant} and v is not null",
        f"{getter[:-4]}'$.a') = {constant}",
        f"{getter[:-4]}'b') = {constant}",
        "json_get_string(v, 'a') = '7'",
        "json_get_int(v, 'a') = 7",
        "v is null",
    ):
        assert_same_rows(uri, where, uses=False)


AREAS = {
    "st_intersects": "POLYGON ((10 10, 40 10, 40 30, 10 30, 10 10))",
    "st_within": "POLYGON ((-5 -5, 60 -5, 60 60, -5 60, -5 -5))",
    "st_contains": "POINT (20 20)",
}


@pytest.mark.parametrize("is_infinite", [False, True])
def test_trees_of_pylance_name_every_row(tmp_path, is_infinite):
    draw = np.random.default_rng(4)
    places = draw.uniform(-10, 90, (ROWS, 4))
    shapes = [
        None
        if row % 11 == 0
        else point(*one[:2])
        if row % 3
        else line(one[:2], one[:2] + one[2:] / 9)
        for row, one in enumerate(places)
    ]
    uri = str(tmp_path / "t")
    dataset = written(pa.array(shapes), uri)
    expected = {
        name: dataset.scanner(["id"], f"{name}(v, ST_GeomFromText('{area}'))").to_table()["id"]
        for name, area in AREAS.items()
    }
    if is_infinite:
        more = pa.table({"id": pa.array([ROWS], pa.int64()), "v": [line((0, 0), (np.inf, 50))]})
        dataset = lance.write_dataset(more, uri, mode="append")
    dataset.create_scalar_index("v", IndexConfig("rtree", {"page_size": 16}))
    table = lt.open_table(uri)
    (segment,) = table._snapshot.indices()
    index = OpenSegments(open_scalar).open(*table._snapshot.index_place(segment), segment)
    for name, area in AREAS.items():
        found = index.search(Call(name, (Column(("value",)), literal(area))))
        assert found is not None
        ids = table.take(row_addresses=found.addresses(), columns=["id"])["id"].to_pylist()
        assert set(expected[name].to_pylist()) <= set(ids), name
        assert len(ids) < ROWS
        assert not is_infinite or name == "st_contains" or ROWS in ids
    assert_same_rows(uri, "v is null")
