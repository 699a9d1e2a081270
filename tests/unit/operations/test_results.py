"""Every change of a table tells whether it made a version."""

import pyarrow as pa
import pytest

import lancetable as lt

NOTHING = {
    "delete": lambda table: table.delete("id > 100"),
    "update": lambda table: table.update({"s": "'x'"}, "id > 100"),
    "update columns": lambda table: table.update({"s": "'x'"}, "id > 100", mode="columns"),
    "merge": lambda table: (
        table.merge({"id": [100], "s": ["x"]}, on="id").when_matched_update_all().execute()
    ),
    "compact": lambda table: table.compact(),
    "dry run": lambda table: table.compact(dry_run=True),
    "row ids": lambda table: table.maintenance.enable_stable_row_ids(),
    "cherry pick": lambda table: table.branches.cherry_pick("b"),
    "fast forward": lambda table: table.branches.fast_forward("b"),
}
SOMETHING = {
    "append": lambda table: table.append({"id": [9], "s": ["x"]}),
    "delete": lambda table: table.delete("id = 1"),
    "delete all": lambda table: table.delete("true"),
    "update": lambda table: table.update({"s": "'x'"}),
    "merge": lambda table: (
        table.merge({"id": [1], "s": ["x"]}, on="id").when_matched_update_all().execute()
    ),
    "columns": lambda table: table.columns.add({"n": "1"}),
    "overwrite": lambda table: table.overwrite({"id": [9]}),
}


@pytest.fixture
def table(tmp_path):
    rows = pa.table({"id": [1, 2], "s": ["a", "b"]})
    made = lt.create_table(str(tmp_path / "t"), rows, stable_row_ids=True)
    made.branches.create("b")
    return made


@pytest.mark.parametrize("change", NOTHING.values(), ids=NOTHING)
def test_nothing_to_do_makes_no_version(table, change):
    before = table.version
    result = change(table)
    assert not result.is_new_version
    assert result.version == before == lt.open_table(table.uri).version


@pytest.mark.parametrize("change", SOMETHING.values(), ids=SOMETHING)
def test_a_change_makes_a_version(table, change):
    before = table.version
    result = change(table)
    assert result.is_new_version
    assert result.version == table.version == before + 1
