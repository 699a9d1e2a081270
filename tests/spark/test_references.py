"""Tags, branches, inspection and rescue from Spark: what the core does and tells, on both sessions.

Each change is made to two equal tables, by Spark to one and by the core to the other.
"""

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import ConflictError, CorruptError, ExistsError, InputError, RefNotFoundError
from lancetable.spark import LanceTable


@pytest.fixture
def spark(either):
    """All of this works in classic sessions and over Connect."""
    return either


SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def made(path):
    table = lancetable.create_table(path, schema=SCHEMA)
    for first in (0, 5):
        rows = [{"id": n, "name": f"n{n}"} for n in range(first, first + 5)]
        table.append(pa.Table.from_pylist(rows, SCHEMA))
    return table


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


@pytest.fixture
def core(tmp_path):
    """The same table for the core."""
    return made(str(tmp_path / "core"))


@pytest.fixture
def table(spark, path):
    made(path)
    return LanceTable.forPath(spark, path)


def rows(path, **where):
    found = lancetable.open_table(path, **where).scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_tags_name_versions(table, path, core):
    for tags in (table.tags, core.tags):
        assert tags.create("first", 2, metadata={"by": "me"}).version == 2
        assert tags.create("last").version == 3
        assert tags.move("first", 3).before.version == 2
        assert tags.delete("last").name == "last"
        with pytest.raises(ExistsError):
            tags.create("first")
        with pytest.raises(RefNotFoundError):
            tags.move("none")
        with pytest.raises(InputError):
            tags.create("no/slash")
    (found,) = table.tags.list().collect()
    (expected,) = core.tags.list()
    assert (found["name"], found["version"], found["branch"], found["metadata"]) == (
        expected.name,
        expected.version,
        expected.branch,
        dict(expected.metadata),
    )
    assert lancetable.open_table(path, tag="first").version == 3
    with pytest.raises(ExistsError, match=r"LANCE_EXISTS.*'first'"):
        table.tags.create("first")


def test_a_branch_is_a_table_of_its_own(spark, table, path):
    side = table.branches.create("side", 2, metadata={"for": "audit"})
    assert side.count() == 5
    side.delete("id = 0")
    assert side.toDF().count() == 4
    assert table.count() == 10
    again = LanceTable.forPath(spark, path, branch="side")
    assert [row["operation"] for row in again.history(1).collect()] == ["Delete"]
    (found,) = table.branches.list().collect()
    assert (found["name"], found["parentBranch"], found["parentVersion"]) == ("side", None, 2)
    assert found["metadata"] == {"for": "audit"}
    with pytest.raises(InputError, match=r"LANCE_INPUT.*in use"):
        side.branches.delete("side")
    with pytest.raises(RefNotFoundError, match="LANCE_REF_NOT_FOUND"):
        LanceTable.forPath(spark, path, branch="none")
    assert table.branches.delete("side").name == "side"
    assert table.branches.list().collect() == []


def test_a_branch_is_brought_back_at_once(table, path, core):
    side = table.branches.create("side")
    side.delete("id < 2")
    side.update("id = 9", {"name": "'new'"})
    (done,) = table.branches.fastForward("side").collect()
    other = core.branches.create("side")
    other.delete("id < 2")
    other.update({"name": "'new'"}, where="id = 9")
    expected = core.branches.fast_forward("side")
    assert (done["version"], done["operation"], done["numFiles"]) == (
        expected.version,
        expected.operation,
        expected.files,
    )
    assert tuple(done["branchVersions"]) == expected.branch_versions
    assert rows(path) == rows(core.uri)
    table.delete("id = 5")
    side.delete("id = 6")
    with pytest.raises(ConflictError, match="LANCE_CONFLICT"):
        table.branches.fastForward("side")


def test_versions_of_a_branch_are_picked(table, path, core):
    for one in (table, core):
        side = one.branches.create("side")
        side.delete("id = 1")
        side.delete("id = 2")
        one.delete("id = 7")
    assert [tuple(row) for row in table.branches.cherryPick("side", 5).collect()] == [
        ("side", 5, 5)
    ]
    assert [tuple(one) for one in core.branches.cherry_pick("side", 5).picks] == [(5, 5)]
    assert rows(path) == rows(core.uri)
    assert {row[0] for row in rows(path)} == {0, 1, 3, 4, 5, 6, 8, 9}
    with pytest.raises(InputError, match="LANCE_INPUT"):
        table.branches.cherryPick("side", [5])


def test_parts_of_a_table_are_told_as_the_core_tells_them(table, path):
    table.delete("id = 3")
    table.tags.create("now")
    table.branches.create("side")
    inspect = lancetable.open_table(path).inspect
    names = ("versions", "fragments", "files", "deletions", "indices", "refs", "transactions")
    for name in names:
        expected = getattr(inspect, name)().to_pylist()
        frame = getattr(table.inspect, name)()
        assert frame.columns == getattr(inspect, name)().schema.names
        found = frame.toArrow().to_pylist()
        assert len(found) == len(expected)
        for row, wanted in zip(found, expected, strict=True):
            times = {key for key in wanted if key.endswith(("_at", "timestamp"))}
            assert {k: v for k, v in row.items() if k not in times} == {
                k: v for k, v in wanted.items() if k not in times
            }


def test_two_versions_are_compared(table, path):
    table.delete("id = 3")
    table.addColumns({"twice": "id * 2"})
    (found,) = table.diff(3).collect()
    expected = lancetable.open_table(path, version=3).diff(lancetable.open_table(path))
    assert (found["numRowsBefore"], found["numRowsAfter"]) == (10, 9)
    assert found["numRowsGone"] == expected.rows_gone == 1
    assert [tuple(row) for row in found["columns"]] == list(expected.columns)
    assert tuple(found["fragmentsChanged"]) == expected.fragments_changed
    assert [tuple(row) for row in found["files"]] == list(expected.files)
    assert table.diff(3, 3).collect()[0]["files"] == []


@pytest.mark.parametrize("level", ["metadata", "files", "data"])
def test_a_sound_table_has_no_problems(table, level):
    assert table.check(level).collect() == []
    (plan,) = table.repair(level).collect()
    assert (plan["isNeeded"], plan["losses"], plan["version"]) == (False, [], 3)
    with pytest.raises(InputError, match=r"LANCE_INPUT.*level"):
        table.check("all")


def test_damage_is_found_and_left_out(table, path, tmp_path):
    table.delete("id = 3")
    first = lancetable.open_table(path).inspect.files().to_pylist()[0]["path"]
    damaged = Path(path) / first
    damaged.write_bytes(damaged.read_bytes()[:-10])
    other = str(tmp_path / "other")
    shutil.copytree(path, other)
    journal = str(tmp_path / "journal.json")
    for level in ("files", "data"):
        found = [tuple(row) for row in table.check(level, journal=journal).collect()]
        expected = lancetable.check_table(path, level=level).problems
        assert [(row[0], row[1], row[2], row[3]) for row in found] == [
            (one.kind, one.path, one.message, one.consequence) for one in expected
        ]
        assert [row[5] for row in found] == [list(one.versions) for one in expected]
    assert len(table.check(allVersions=False).collect()) == 1
    (plan,) = table.repair().collect()
    assert (plan["isDryRun"], plan["isNeeded"], plan["numLostRows"]) == (True, True, 4)
    assert lancetable.open_table(path).version == 4
    (done,) = table.repair(dryRun=False).collect()
    assert (done["isDryRun"], done["version"]) == (False, 5)
    lancetable.open_table(other).maintenance.repair().execute()
    assert rows(path) == rows(other) == [(n, f"n{n}") for n in range(5, 10)]


def test_a_table_that_cannot_be_opened_is_rescued(spark, table, path):
    table.delete("id = 3")
    newest = max((Path(path) / "_versions").glob("*.manifest"), key=lambda one: one.stat().st_mtime)
    newest.write_bytes(b"nothing")
    with pytest.raises(CorruptError):
        LanceTable.forPath(spark, path)
    broken = LanceTable.forRescue(spark, path)
    assert {row["kind"] for row in broken.check().collect()} == {"manifest"}
    (told,) = broken.repair(dryRun=False).collect()
    assert [row["kind"] for row in told["losses"]] == ["version"]
    assert LanceTable.forPath(spark, path).count() == 10


def test_cleanup_has_the_options_of_the_core(table, path, core):
    for one in (table, core):
        one.delete("id = 3")
        one.tags.create("kept", 2)
    (told,) = table.vacuum(0, keepLast=2).collect()
    expected = core.maintenance.cleanup(older_than=timedelta(0), keep_last=2, dry_run=True)
    assert told["versions"] == [one.version for one in expected.removed_versions] == [1]
    assert told["numFilesByKind"] == {k: v.files for k, v in expected.removed.items()}
    assert [(row["version"], row["reason"]) for row in told["kept"]] == [
        (one.version, one.reason) for one in expected.kept_versions
    ]
    with pytest.raises(InputError, match="LANCE_INPUT"):
        table.vacuum(versions=[2])
    table.vacuum(versions=[1], dryRun=False)
    assert [info.version for info in lancetable.open_table(path).versions()] == [2, 3, 4]


def test_rows_get_ids_that_stay(table, path):
    assert table.enableStableRowIds() == 4
    before = {
        row["id"]: row["_rowid"]
        for row in lancetable.open_table(path).scan(with_row_id=True).to_arrow().to_pylist()
    }
    table.update("id = 3", {"name": "'new'"})
    (row,) = (
        lancetable.open_table(path).scan(where="id = 3", with_row_id=True).to_arrow().to_pylist()
    )
    assert row["_rowid"] == before[3]
