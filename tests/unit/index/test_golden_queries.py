"""Predicates on tables with indices of pylance give the recorded rows, with and without them."""

import json
import logging
import shutil

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.expression import Call, Column, literal
from lancetable.fragment.reader import FragmentReader
from lancetable.index.files import Pages
from lancetable.index.registry import OpenSegments, open_scalar
from lancetable.operations.rows import find_rows
from lancetable.operations.rows.parts import parts
from tests.conftest import GOLDEN
from tests.fixtures_catalog import SHARED

FOLDER = GOLDEN / "index"
FILTERS = json.loads((FOLDER / "filters.json").read_text())
CASES = [
    pytest.param(name, query, id=f"{name}: {query['filter']}")
    for name, table in FILTERS.items()
    for query in table["queries"]
]
SCANNED = ("contains_tokens",)
"""Parts that only pylance answers by an index."""
ELSEWHERE = SHARED / "index" / "queries.json"
"""All queries, with tables that are not among ours."""


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr("lancetable.scan.ask_indices.SEGMENTS", OpenSegments(open_scalar))
    monkeypatch.setattr("lancetable.index.files.PAGES", Pages())


def ids(table, where, **options):
    return sorted(table.scan(["id"], where=where, **options).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("name", "query"), CASES)
def test_rows_are_those_recorded(name, query):
    table = lt.open_table(FOLDER / name)
    where = query["filter"]
    assert ids(table, where) == query["ids"]
    assert ids(table, where, use_indices=False) == query["ids"]
    assert table.count(where) == len(query["ids"])


@pytest.mark.parametrize(("name", "query"), CASES)
def test_indices_are_named_where_they_are_used(name, query):
    explained = lt.open_table(FOLDER / name).scan(["id"], where=query["filter"]).explain()
    is_served = not any(part in query["filter"] for part in SCANNED)
    assert ("index " in explained) >= (query["uses_index"] and is_served)


@pytest.mark.skipif(not ELSEWHERE.exists(), reason="the shared fixtures are not here")
def test_rows_of_all_shared_tables_are_those_recorded():
    for name, table in json.loads(ELSEWHERE.read_text()).items():
        opened = lt.open_table(ELSEWHERE.parent / name)
        for query in table["queries"]:
            if query["kind"] == "filter":
                scan = opened.scan(["id"], where=query["filter"])
                assert sorted(scan.to_arrow()["id"].to_pylist()) == query["ids"]
                assert ids(opened, query["filter"], use_indices=False) == query["ids"]
                is_served = not any(part in query["filter"] for part in SCANNED)
                assert ("index " in scan.explain()) >= (query["uses_index"] and is_served)


@pytest.mark.parametrize("query", FILTERS["rtree"]["boxes"])
def test_geometries_are_found_by_their_boxes(query):
    snapshot = lt.open_table(FOLDER / "rtree")._snapshot
    (segment,) = snapshot.indices()
    index = OpenSegments(open_scalar).open(*snapshot.index_place(segment), segment)
    left, low, right, high = query["box"]
    area = literal(f"LINESTRING ({left} {low}, {right} {high})")
    rows = index.search(Call("st_intersects", (Column(("value",)), area)))
    assert rows is not None
    found = lt.open_table(FOLDER / "rtree").take(row_addresses=rows.addresses(), columns=["id"])
    assert sorted(found["id"].to_pylist()) == query["ids"]


def test_a_limit_takes_the_first_rows_in_table_order():
    table = lt.open_table(FOLDER / "life_segments")
    where = "i > 369 and i <= 409"
    whole = table.scan(["id"], where=where, use_indices=False).to_arrow()
    for limit, offset in [(1, 0), (5, 3), (100, 20)]:
        found = table.scan(["id"], where=where, limit=limit, offset=offset).to_arrow()
        assert found.equals(whole.slice(offset, limit))


def test_an_exact_count_opens_no_data_file(monkeypatch):
    table = lt.open_table(FOLDER / "life_segments")
    expected = [len(ids(table, where, use_indices=False)) for where in ("i = 369", "i != 369")]
    table = lt.open_table(FOLDER / "life_segments")
    opened = []
    monkeypatch.setattr(FragmentReader, "read", lambda *_: opened.append(1))
    assert [table.count(where) for where in ("i = 369", "i != 369")] == expected
    assert not opened


def test_only_what_no_index_answers_exactly_is_compared_again():
    table = lt.open_table(FOLDER / "life_segments")
    for where, rest in {
        "i = 369 and i < 400": "nothing",
        "i = 369 and id % 2 = 1 and id > 3": "((id % 2) = 1) AND (id > 3)",
        "i = 369 or i = 4": "nothing",
    }.items():
        assert f"rows are compared again with: {rest}" in table.scan(where=where).explain(), where


def test_parts_are_combined():
    table = lt.open_table(FOLDER / "bitmap")
    for where in (
        "s = 'grp-01' and b = false and id % 2 = 0",
        "i = 369 or s = 'grp-03'",
        "i = 369 or id = 4",
        "(i = 369 or b is null) and not (s = 'grp-00')",
        "s in ('grp-00', null)",
        "upper(s) = 'GRP-03'",
    ):
        assert ids(table, where) == ids(table, where, use_indices=False)


KINDS = ["btree", "bitmap", "zonemap", "label_list", "bloomfilter", "ngram", "json", "rtree"]


@pytest.fixture(params=KINDS)
def copied(request, tmp_path):
    shutil.copytree(FOLDER / request.param, tmp_path / "t")
    return tmp_path / "t", FILTERS[request.param]["queries"]


@pytest.mark.parametrize("damage", ["missing", "cut", "zeros"])
def test_damaged_segments_are_scanned(copied, damage, caplog):
    path, queries = copied
    for file in sorted((path / "_indices").rglob("*.lance")):
        content = file.read_bytes()
        if damage == "missing":
            file.unlink()
        else:
            file.write_bytes(content[:-40] if damage == "cut" else bytes(len(content)))
    table = lt.open_table(path)
    with caplog.at_level(logging.WARNING, "lancetable.scan"):
        for query in queries:
            assert ids(table, query["filter"]) == query["ids"]
    assert "is not used" in caplog.text


def test_deletes_look_at_fragments_that_indices_name(tmp_path, monkeypatch):
    shutil.copytree(FOLDER / "life_segments", tmp_path / "t")
    table = lt.open_table(tmp_path / "t")
    looked = []

    def counted(snapshot, rows=1, real=parts):
        for part in real(snapshot, rows):
            looked.append(len(part.manifest.fragments))
            yield part

    monkeypatch.setattr(find_rows, "parts", counted)
    expected = [id_ for id_ in ids(table, "true") if id_ not in ids(table, "i = 369")]
    table.delete("i = 369")
    assert ids(lt.open_table(tmp_path / "t"), "true") == expected
    assert sum(looked) < len(table.fragments)


def test_keys_in_most_pages_are_looked_up(tmp_path):
    ids_ = [number * 7919 % 400_000 for number in range(400_000)]
    table = lt.create_table(tmp_path / "t", pa.table({"id": ids_}))
    table.indices.create("id", "btree")
    wanted = [number * 4000 + 3 for number in range(100)]
    for where, count in {
        f"id in ({', '.join(map(str, wanted))})": 100,
        f"id in ({', '.join(map(str, wanted))}) and id > 3": 99,
        "id in (-1, 400000)": 0,
    }.items():
        scan = table.scan(where=where)
        assert "scanned: 0" in scan.explain()
        assert (scan.count(), scan.to_arrow().num_rows) == (count, count)
