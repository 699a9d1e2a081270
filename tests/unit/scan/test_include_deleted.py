"""Scans that return deleted rows, too."""

import pyarrow as pa
import pytest

import lancetable as lt
from tests.conftest import GOLDEN


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    rows = pa.table({"id": range(100), "s": [str(n % 3) for n in range(100)]})
    made = lt.create_table(
        str(tmp_path / "t"),
        rows,
        max_rows_per_file=30,
        stable_row_ids=request.param,
    )
    made.delete("id % 7 = 0 or (id >= 30 and id < 60)")
    return made


WHOLE = [*range(30), *range(60, 100)]  # fragment 1 is gone


def scan(table, columns=None, **more):
    return table.scan(columns, include_deleted=True, with_row_id=True, **more)


def test_deleted_rows_have_neither_row_id_nor_row_address(table):
    found = scan(table, with_row_address=True).to_arrow().to_pydict()
    live = table.scan(with_row_id=True, with_row_address=True).to_arrow().to_pylist()
    assert found["id"] == WHOLE
    assert found["s"] == [str(n % 3) for n in WHOLE]
    for name in ("_rowid", "_rowaddr"):
        known = {row["id"]: row[name] for row in live}
        assert found[name] == [known.get(n) for n in WHOLE]
    assert table.count() == len(live) == 59


def test_predicates_see_the_nulls(table):
    gone = [n for n in WHOLE if n % 7 == 0]
    for where in ("_rowid IS NULL", "_rowaddr IS NULL", "_rowid IS NULL AND id >= 0"):
        assert scan(table, where=where).to_arrow()["id"].to_pylist() == gone
        assert scan(table, where=where).count() == len(gone)
    assert scan(table, where="_rowid IS NOT NULL").count() == 59
    assert scan(table, where="_rowid >= 0").count() == 59


def test_count_limit_and_offset(table):
    assert scan(table).count() == 70
    assert scan(table, limit=40, offset=5).to_arrow()["id"].to_pylist() == WHOLE[5:45]
    assert scan(table, limit=40, offset=65).count() == 5
    assert scan(table, where="id > 5", limit=3, offset=1).to_arrow()["id"].to_pylist() == [7, 8, 9]


def test_of_some_fragments(table):
    found = scan(table, ["id"], fragments=[2, 0]).to_arrow()["id"].to_pylist()
    assert found == [*range(60, 90), *range(30)]


def test_row_offsets_count_live_rows(table):
    found = scan(table, ["id", "_rowoffset"]).to_arrow().to_pydict()
    live = [n for n in WHOLE if n % 7]
    assert found["_rowoffset"] == [sum(other < n for other in live) for n in WHOLE]


def test_the_row_id_must_be_in_the_result(table):
    with pytest.raises(lt.InputError, match="give with_row_id=True"):
        table.scan(include_deleted=True)
    with pytest.raises(lt.InputError, match="give with_row_id=True"):
        table.scan(["_rowid"], include_deleted=True)


def test_a_version_without_deletions(tmp_path):
    table = lt.create_table(str(tmp_path / "t"), pa.table({"id": range(5)}))
    assert scan(table).to_arrow().equals(table.scan(with_row_id=True).to_arrow())


def worn_tables():
    """Yield the golden tables whose latest version has deleted rows and can be read."""
    for folder in sorted((GOLDEN / "table").iterdir()):
        try:
            table = lt.open_table(folder)
            if any(one.deletion_file for one in table.fragments):
                yield table, table.scan(with_row_id=True).to_arrow()
        except lt.LanceTableError:
            continue


def test_tables_of_other_writers():
    tables = list(worn_tables())
    assert len(tables) > 15
    for table, live in tables:
        every = scan(table).to_arrow()
        assert every.filter(every["_rowid"].is_valid()).to_pylist() == live.to_pylist()
        deleted = [one.deletion_file.deleted_rows for one in table.fragments if one.deletion_file]
        assert every.num_rows - live.num_rows == sum(deleted)
