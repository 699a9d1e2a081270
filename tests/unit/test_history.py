"""What the versions of a table did, told by its history and by what it consists of."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.history.history import HistoryEntry
from lancetable.errors import CorruptError, InputError
from tests.acts import rows_from


def counts(entry: HistoryEntry) -> tuple[int | None, int | None, int | None]:
    effect = entry.effect
    return effect.rows_added, effect.rows_removed, effect.rows_updated


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> lt.Table:
    return lt.create_table(tmp_path / "t", rows_from(0, 10), stable_row_ids=request.param)


def test_the_first_version(table: lt.Table) -> None:
    (entry,) = table.history()
    assert (entry.version, entry.operation, counts(entry)) == (1, "Overwrite", (10, 0, 0))
    assert entry.timestamp == table.timestamp
    assert entry.writer is not None
    assert entry.writer.library == "lancetable"


def test_what_each_operation_did(table: lt.Table) -> None:
    table.append(rows_from(10, 2), commit=lt.CommitOptions("more", {"job": "7"}))
    table.delete("id < 3")
    table.update({"x": "0"}, where="id = 5")
    table.columns.add({"w": "id + 1"})
    table.columns.rename("w", "v")
    source = pa.table({"id": [5, 99], "x": pa.array([1, 2], pa.int32())})
    merge = table.merge(source, on="id").when_matched_update({"x": "source.x"})
    merge.when_not_matched_insert_all().execute()
    table.update({"x": "1"}, where="id > 9", mode="columns")
    table.columns.drop(["v"])
    table.config.update({"key": "value"})
    table.restore(2)
    table.truncate()
    told = [(one.operation, counts(one), one.effect.detail) for one in table.history()]
    assert told == [
        ("Delete", (0, 12, 0), ""),
        ("Restore", (None, None, None), "version 2"),
        ("UpdateConfig", (0, 0, 0), "+config.key"),
        ("Project", (0, 0, 0), "-v"),
        ("Update", (0, 0, 3), ""),
        ("Update", (1, 0, 1), ""),
        ("Project", (0, 0, 0), "w->v"),
        ("Merge", (0, 0, 0), "+w"),
        ("Update", (0, 0, 1), ""),
        ("Delete", (0, 3, 0), ""),
        ("Append", (2, 0, 0), ""),
        ("Overwrite", (10, 0, 0), ""),
    ]
    second, third = table.history()[-2], table.history()[-3]
    assert (second.message, second.properties) == ("more", {"job": "7"})
    assert third.effect.predicate == "id < 3"
    assert (third.effect.fragments_changed, third.effect.fragments_removed) == (1, 0)


def test_a_history_ends_at_the_version_of_the_handle(table: lt.Table) -> None:
    for number in range(3):
        table.append(rows_from(10 * number, 1))
    assert [one.version for one in table.history()] == [4, 3, 2, 1]
    assert [one.version for one in table.history(limit=2)] == [4, 3]
    table.checkout(2)
    assert [one.version for one in table.history()] == [2, 1]
    with pytest.raises(InputError, match="limit is -1"):
        table.history(limit=-1)


def test_tags_of_the_branch_are_told(table: lt.Table) -> None:
    table.tags.create("one")
    dev = table.branches.create("dev")
    dev.tags.create("two")
    dev.append(rows_from(20, 1))
    assert [one.tags for one in table.history()] == [("one",)]
    first = dev.history()[-1]
    assert (first.operation, first.tags) == ("Clone", ("two",))
    assert first.effect.detail.startswith("shallow, version 1 at ")


def test_what_was_cleaned_away_is_not_guessed(table: lt.Table) -> None:
    table.append(rows_from(10, 5))
    old = Path(table.uri) / table._snapshot.manifest_path
    table.delete("id = 3")
    old.unlink()
    last, first = table.history()
    assert (last.version, counts(last)) == (3, (0, None, 0))
    assert first.version == 1


def test_a_version_without_a_record(table: lt.Table) -> None:
    assert table.history()[0].uuid is not None
    path = Path(table.uri) / table._snapshot.manifest_path
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    with pytest.raises(CorruptError, match="ends in"):
        table.history()


def test_a_history_as_a_table(table: lt.Table) -> None:
    table.append(rows_from(10, 5), commit=lt.CommitOptions(properties={"a": "b"}))
    table.tags.create("now")
    found = table.history().to_arrow()
    assert found["version"].to_pylist() == [2, 1]
    assert found["rows_added"].to_pylist() == [5, 10]
    assert found["tags"].to_pylist() == [["now"], []]
    assert found["properties"].to_pylist() == [[("a", "b")], []]
    assert "Append       +5  [now]" in repr(table.history())


def test_what_a_table_consists_of(table: lt.Table) -> None:
    table.append(rows_from(10, 5))
    table.delete("id in (1, 2)")
    table.tags.create("now", metadata={"k": "v"})
    table.branches.create("dev")
    inspect = table.inspect
    assert inspect.versions()["operation"].to_pylist() == ["Overwrite", "Append", "Delete"]
    assert inspect.fragments()["rows"].to_pylist() == [8, 5]
    assert inspect.files()["kind"].to_pylist() == ["data", "deletion", "data"]
    assert sum(filter(None, inspect.files()["bytes"].to_pylist())) == table.size
    assert inspect.deletions()["deleted_rows"].to_pylist() == [2]
    assert inspect.indices().num_rows == 0
    assert inspect.refs()["name"].to_pylist() == ["now", "dev"]
    assert inspect.transactions()["operation"].to_pylist() == ["Delete", "Append", "Overwrite"]
    for path in inspect.files()["path"].to_pylist():
        assert (Path(table.uri) / path).exists()
    dev = lt.open_table(table.uri, branch="dev")
    assert set(dev.inspect.files()["base"].to_pylist()) == {table.uri}


def test_manifests_are_read_once_and_again_when_they_are_replaced(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1, 2, 3]})
    table.delete("id = 1")
    table.append({"id": [4]})
    history, versions = table.history(), table.versions()
    manifests = sorted((tmp_path / "t" / "_versions").glob("*.manifest"))
    kept = {path: (path.read_bytes(), path.stat()) for path in manifests}
    for path, (content, status) in kept.items():
        path.write_bytes(bytes(len(content)))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert table.history() == history
    assert table.versions() == versions
    with pytest.raises(lt.CorruptError):
        lt.open_table(tmp_path / "t")
    for path in kept:
        os.utime(path)
    with pytest.raises(lt.CorruptError):
        table.history()
    with pytest.raises(lt.CorruptError):
        table.versions()


def test_what_cannot_be_known_any_more_is_not_remembered(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1, 2, 3]})
    table.append({"id": [4]})
    table.delete("id < 3")
    assert [entry.effect.rows_removed for entry in table.history()] == [2, 0, 0]
    (tmp_path / "t" / "_versions" / f"{2**64 - 1 - 2:020d}.manifest").unlink()
    assert [entry.effect.rows_removed for entry in table.history()] == [None, 0]


def test_tags_are_told_as_they_are_now(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1]})
    assert table.history()[0].tags == ()
    table.tags.create("first")
    assert table.history()[0].tags == ("first",)
    table.tags.delete("first")
    assert table.history()[0].tags == ()
