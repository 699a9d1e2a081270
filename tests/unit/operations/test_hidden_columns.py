"""Row ids that take too much room in the manifest, kept as hidden columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError, StoreError, UnsupportedError
from lancetable.format.manifest import ColumnSequence, InlineSequence

ROWS = 5000
LINEAGE = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
SETTINGS = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "200"}


def made(path: Path, settings: dict[str, str] = SETTINGS, version: str = "2.1") -> lt.Table:
    rng = np.random.default_rng(7)
    rows = pa.table({"id": np.arange(ROWS), "x": rng.integers(0, 9, ROWS)})
    table = lt.create_table(path, rows, stable_row_ids=True, storage_version=version)
    if settings:
        table.config.update(settings)
    return table


def lineage(table: lt.Table) -> pa.Table:
    return table.scan(LINEAGE).to_arrow().sort_by("id").combine_chunks()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_rows_are_the_same_wherever_their_ids_are(tmp_path: Path, version: str) -> None:
    table = made(tmp_path / "t", version=version)
    twin = made(tmp_path / "twin", {"other": "x"}, version)
    source = pa.table({"id": [5, 7, ROWS + 1], "x": [1, 2, 3]})
    for one in (table, twin):
        one.update({"x": "x"}, where="x < 4")
        one.update({"x": "9"}, where="x in (2, 5)")
        merge = one.merge(source, on="id").when_matched_update_all()
        merge.when_not_matched_insert_all().execute()
        one.update({"x": "0"}, where="id % 7 = 0", mode="columns")
    kept = [type(fragment.row_ids) for fragment in table.fragments]
    assert kept[:3] == [InlineSequence, ColumnSequence, ColumnSequence]
    assert ColumnSequence not in {type(fragment.row_ids) for fragment in twin.fragments}
    again = lt.open_table(table.uri)
    assert lineage(again) == lineage(twin)
    assert again.take(row_ids=[4999, 3], columns=["id"])["id"].to_pylist() == [4999, 3]
    again.compact()
    assert lineage(again) == lineage(twin)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lance.row_lineage.spill": "false"},
        {"lance.row_lineage.spill": "true"},
    ],
)
def test_it_has_to_be_asked_for_and_worth_it(tmp_path: Path, settings: dict[str, str]) -> None:
    table = made(tmp_path / "t", settings)
    table.update({"x": "x"}, where="x < 4")
    assert {type(fragment.row_ids) for fragment in table.fragments} == {InlineSequence}


def test_a_setting_that_is_no_number(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {**SETTINGS, "lance.row_lineage.inline_max_bytes": "many"})
    with pytest.raises(InputError, match="is 'many'; make it a number"):
        table.update({"x": "x"}, where="x < 4")


def test_nothing_stays_when_the_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t")
    files = sorted((tmp_path / "t/data").iterdir())

    def fail(*_: object) -> None:
        raise StoreError("no room")

    monkeypatch.setattr("lancetable.operations.rows.move_rows.open_writer", fail)
    with pytest.raises(StoreError, match="no room"):
        table.update({"x": "x"}, where="x < 4")
    assert sorted((tmp_path / "t/data").iterdir()) == files


def test_a_branch_with_hidden_ids_is_not_brought_back(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.branches.create("dev").update({"x": "x"}, where="x < 4")
    with pytest.raises(UnsupportedError, match="cannot be brought along"):
        table.branches.fast_forward("dev")
    with pytest.raises(UnsupportedError, match="repeat the change on this table"):
        table.branches.cherry_pick("dev")
    assert lt.open_table(table.uri).version == 2
