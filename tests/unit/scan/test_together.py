"""Rows of many small fragments at once are the rows of each of them."""

import gc
import shutil
import weakref
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.format.encoding.kernels.addressing import GATHER
from lancetable.scan import execute, small_fragments, window

FRAGMENTS = 40


def rows_of(number: int) -> pa.Table:
    """One to three rows; one fragment is too large to be read together."""
    count = 70 if number % 30 == 27 else 1 + number % 3
    ids = [number * 100 + place for place in range(count)]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([None if one % 7 == 0 else f"t{one}" for one in ids], pa.string()),
            "pair": pa.array([{"a": one, "b": [one, one + 1]} for one in ids]),
        }
    )


@pytest.fixture(scope="module", params=[False, True], ids=["whole", "with deletions"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("together") / "t"
    table = lt.create_table(path, rows_of(0))
    for number in range(1, FRAGMENTS):
        table.append(rows_of(number))
    if request.param:
        table.delete("id % 5 = 1")
    return path


@pytest.fixture
def table(made: Path, tmp_path: Path) -> lt.Table:
    return lt.open_table(shutil.copytree(made, tmp_path / "t"))


@pytest.fixture
def expected(table: lt.Table) -> pa.Table:
    every = pa.concat_tables([rows_of(number) for number in range(FRAGMENTS)]).to_pylist()
    if table.version > FRAGMENTS:
        every = [row for row in every if row["id"] % 5 != 1]
    return every


WHERE = [
    ("id % 3 = 0", lambda row: row["id"] % 3 == 0),
    ("text IS NULL", lambda row: row["text"] is None),
    ("pair.a > 1500 AND text LIKE '%2'", lambda row: row["id"] > 1500 and _ends_with_2(row)),
    ("id = 1200", lambda row: row["id"] == 1200),
    ("id < 0", lambda row: False),
]


def _ends_with_2(row) -> bool:
    return row["text"] is not None and row["text"].endswith("2")


@pytest.mark.parametrize(("where", "holds"), WHERE, ids=[text for text, _ in WHERE])
def test_a_predicate_finds_the_same_rows(table, expected, where, holds) -> None:
    wanted = [row for row in expected if holds(row)]
    assert table.scan(where=where).to_arrow().to_pylist() == wanted
    assert table.count(where) == len(wanted)
    first = table.scan(["id"], where=where, limit=3, offset=1).to_arrow()
    assert first.column(0).to_pylist() == [row["id"] for row in wanted[1:4]]


@pytest.mark.parametrize("where", [None, "id % 3 = 0", "_rowaddr % 2 = 0"])
def test_addresses_belong_to_their_rows(table, where) -> None:
    found = table.scan(["id"], where=where, with_row_id=True, with_row_address=True).to_arrow()
    assert found["_rowid"].equals(found["_rowaddr"])
    again = table.take(row_addresses=found["_rowaddr"], columns=["id"])
    assert again["id"].to_pylist() == found["id"].to_pylist()


@pytest.mark.skipif(GATHER is None, reason="single rows are gathered by compiled kernels")
def test_small_fragments_are_not_read_one_by_one(table, monkeypatch) -> None:
    alone = []

    def watched(plan, readers, one, *rest):
        alone.append(one.stop - one.start)
        return window.read_window(plan, readers, one, *rest)

    monkeypatch.setattr(execute, "read_window", watched)
    table.scan(where="id % 3 = 0").to_arrow()
    assert [rows for rows in alone if rows > 3] == [70]
    assert len(alone) < 1 + small_fragments.TOGETHER_FROM_WINDOWS
    assert small_fragments.SMALL_WINDOW_ROWS < 70


def test_a_column_that_some_fragments_lack_is_read_one_by_one(table, expected) -> None:
    table.columns.add(pa.field("later", pa.int32()))
    table.append(rows_of(FRAGMENTS).append_column("later", pa.array([1, 2], pa.int32())))
    assert table.count("later = 1") == 1
    assert table.count("later IS NULL") == len(expected)


def test_a_merge_finds_the_rows_of_small_fragments(table, expected) -> None:
    ids = [row["id"] for row in expected]
    wanted = [ids[0], ids[len(ids) // 2], ids[-1], 999_999]
    source = pa.table({"id": wanted, "text": ["new"] * 4, "pair": [None] * 4})
    source = source.cast(table.schema)
    merge = table.merge(source, on=["id"]).when_matched_update_all()
    done = merge.when_not_matched_insert_all().execute()
    assert (done.updated, done.inserted) == (3, 1)
    assert sorted(table.scan(["id"], where="text = 'new'").to_arrow()["id"].to_pylist()) == wanted


def test_readers_are_freed_without_the_collector(table) -> None:
    gc.disable()
    try:
        table.count("id % 3 = 0")
        reader = weakref.ref(table._handle.readers[0].opened.file(0))
        assert reader() is not None
        table._handle.readers = None
        assert reader() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("limit", [0, 1, 10, 64, 65, 200])
def test_a_few_rows_of_a_large_fragment(tmp_path, limit) -> None:
    rows = pa.table({"id": range(5000), "text": [f"t{one % 7}" for one in range(5000)]})
    table = lt.create_table(tmp_path / "t", rows)
    for offset in (0, 1030, 4990):
        assert table.scan(limit=limit, offset=offset).to_arrow() == rows.slice(offset, limit)
    table.delete("id % 3 = 0")
    left = rows.take([one for one in range(5000) if one % 3])
    assert table.scan(limit=limit, offset=1030).to_arrow() == left.slice(1030, limit)
    again = table.scan(["text"], limit=limit).to_arrow()
    assert again["text"] == left["text"].slice(0, limit)


def test_a_scan_keeps_the_columns_of_its_own_version(tmp_path) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"id": [1, 2]}))
    old = table.scan()
    table.columns.add({"twice": "id * 2"})
    assert table.scan().schema.names == ["id", "twice"]
    assert old.to_arrow().column_names == ["id"]
    assert table.scan(limit=1).to_arrow().num_rows == 1
    assert table.scan().to_arrow().num_rows == 2
