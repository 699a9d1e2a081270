"""Giving the rows of a table stable ids afterwards."""

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError, UnsupportedError
from tests.acts import rows_from

LINEAGE = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    made = lt.create_table(tmp_path / "t", rows_from(0, 10))
    made.append(rows_from(10, 10))
    made.delete("id in (3, 12)")
    return made


def ids(table: lt.Table) -> dict[int, int]:
    found = table.scan(["id", "_rowid"]).to_arrow()
    return dict(zip(found["id"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def test_rows_keep_their_addresses_as_ids(table: lt.Table) -> None:
    before = ids(table)
    done = table.maintenance.enable_stable_row_ids(commit="ids")
    assert (done.version, done.rows, done.fragments) == (4, 20, 2)
    assert ids(table) == before
    table.update({"x": "0"}, where="id in (4, 14)")
    table.compact()
    assert ids(lt.open_table(table.uri)) == before
    table.append(rows_from(30, 2))
    after = ids(table)
    assert len(set(after.values())) == len(after)
    assert after[30] > max(before.values())
    again = table.maintenance.enable_stable_row_ids()
    assert (again.version, again.attempts) == (table.version, 0)


def test_versions_are_recorded_from_then_on(table: lt.Table) -> None:
    table.maintenance.enable_stable_row_ids()
    table.update({"x": "0"}, where="id = 4")
    table.append(rows_from(30, 1))
    rows = {row["id"]: row for row in table.scan(LINEAGE).to_arrow().to_pylist()}
    assert rows[1]["_row_created_at_version"] == rows[1]["_row_last_updated_at_version"] == 1
    assert rows[4]["_row_created_at_version"] == 1
    assert rows[4]["_row_last_updated_at_version"] == 5
    assert rows[30]["_row_created_at_version"] == 6


def test_an_empty_table(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", schema=pa.schema([("id", pa.int64())]))
    table.maintenance.enable_stable_row_ids()
    table.append(pa.table({"id": [7, 8]}))
    assert ids(table) == {7: 0, 8: 1}
    table.update({"id": "9"}, where="id = 7")
    assert ids(table) == {8: 1, 9: 0}


def test_versions_without_ids_are_read_but_not_restored(table: lt.Table, tmp_path: Path) -> None:
    before = ids(table)
    table.maintenance.enable_stable_row_ids()
    table.update({"x": "0"}, where="id = 4")
    table.append(rows_from(40, 2))
    with pytest.raises(InputError, match="version 3 cannot be restored: its rows have no stable"):
        table.restore(3)
    old = lt.open_table(table.uri, version=3)
    assert ids(old) == before
    assert ids(old.clone(tmp_path / "c")) == before
    table.restore(5)
    assert ids(table) == before
    table.append(rows_from(40, 2))
    assert len(set(ids(table).values())) == table.count()


def test_others_may_write_meanwhile(table: lt.Table) -> None:
    stale = [lt.open_table(table.uri) for _ in range(6)]
    acts: list[Callable[[], object]] = [
        table.maintenance.enable_stable_row_ids,
        lambda: stale[0].append(rows_from(50, 5)),
        lambda: stale[1].delete("id = 7"),
        lambda: stale[2].update({"x": "1"}, where="id = 8"),
        lambda: stale[3].append(rows_from(60, 5)),
    ]
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lt.open_table(table.uri)
    assert found.version == 8
    assert found.count() == 18 + 10 - 1
    assert len(set(ids(found).values())) == found.count()
    before = ids(found)
    found.update({"y": "'z'"})
    assert ids(found) == before


def test_old_files_are_refused() -> None:
    root = Path(__file__).parents[2] / "golden"
    old = sorted(root.rglob("legacy_0_16_1_basic.lance")) or sorted(root.rglob("*0_8_21*.lance"))
    if not old:
        pytest.skip("no table of that time is kept")
    with pytest.raises(UnsupportedError, match=r"file of version 0\.1"):
        lt.open_table(old[0]).maintenance.enable_stable_row_ids()
