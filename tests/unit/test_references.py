"""Tags, branches and clones through the handle: what they do, and what they refuse."""

import json
import shutil
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.branch.branching import create_branch
from lancetable.errors import (
    ExistsError,
    FileNotFoundInStoreError,
    InputError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lancetable.store.sqlite import SqliteManifests


def numbers(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def values_of(table: lt.Table) -> list[int]:
    return sorted(table.scan(["a"]).to_arrow()["a"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    made = lt.create_table(tmp_path / "t", numbers(1, 2, 3))
    made.append(numbers(4))
    return made


def files_below(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_a_tag_is_created_moved_described_and_deleted(table: lt.Table) -> None:
    made = table.tags.create("v1", 1, metadata={"who": "me"})
    assert (made.version, table.tags["v1"]) == (1, made)
    assert values_of(lt.open_table(table.uri, tag="v1")) == [1, 2, 3]
    moved = table.tags.move("v1")
    assert (moved.before.version, moved.after.version) == (1, 2)
    assert moved.after.metadata == {"who": "me"}
    assert moved.after.created_at == made.created_at
    assert table.tags.describe("v1", {"x": "y"}).metadata == {"x": "y"}
    assert [tag.name for tag in table.tags.list()] == ["v1"] == list(table.tags)
    assert table.tags.delete("v1").version == 2
    assert not table.tags


def test_a_tag_of_a_branch(table: lt.Table) -> None:
    dev = table.branches.create("dev")
    dev.append(numbers(9))
    dev.tags.create("ready")
    assert table.tags["ready"].branch == "dev"
    table.tags.create("begin", branch="dev", version=2)
    assert values_of(lt.open_table(table.uri, tag="ready")) == [1, 2, 3, 4, 9]
    assert values_of(lt.open_table(table.uri, tag="begin")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda t: t.tags.create("v1", 1), ExistsError, "tag 'v1' exists already, on version 2"),
        (lambda t: t.tags.create("a b"), InputError, "not a valid tag name"),
        (lambda t: t.tags.create("new", 7), VersionNotFoundError, "version 7"),
        (lambda t: t.tags.create("new", branch="none"), RefNotFoundError, "no branch 'none'"),
        (lambda t: t.tags.move("v2"), RefNotFoundError, "no tag 'v2'"),
        (lambda t: t.tags.move("v1", 9), VersionNotFoundError, "version 9"),
        (lambda t: t.tags.delete("v2"), RefNotFoundError, "no tag 'v2'"),
        (lambda t: t.tags.delete("../x"), InputError, "not a valid tag name"),
        (lambda t: t.branches.create("main"), InputError, "not a valid branch name"),
        (lambda t: t.branches.create("a/../b"), InputError, "not a valid branch name"),
        (lambda t: t.branches.create("dev"), ExistsError, "branch 'dev' exists already"),
        (lambda t: t.branches.create("x", 9), VersionNotFoundError, "version 9"),
        (lambda t: t.branches.create("x", tag="v9"), RefNotFoundError, "no tag 'v9'"),
        (lambda t: t.branches.delete("x"), RefNotFoundError, "no branch 'x'"),
        (lambda t: t.branches.delete("dev"), InputError, "in use: branch 'dev/sub' starts from"),
        (lambda t: t.branches.delete("dev/sub"), InputError, "in use: tag 'audit' names"),
        (lambda t: t.checkout(branch="dev").branches.delete("dev"), InputError, "is in use"),
        (lambda t: lt.open_table(t.uri, branch="nope"), RefNotFoundError, "no branch 'nope'"),
    ],
)
def test_what_is_refused_changes_nothing(table: lt.Table, act, error, words) -> None:
    table.tags.create("v1")
    table.branches.create("dev").branches.create("dev/sub").tags.create("audit")
    before = files_below(Path(table.uri))
    with pytest.raises(error, match=words):
        act(table)
    assert files_below(Path(table.uri)) == before


def test_a_branch_has_a_history_of_its_own(table: lt.Table) -> None:
    dev = table.branches.create("dev", 1, metadata={"why": "test"})
    assert (dev.branch, dev.version) == ("dev", 1)
    dev.append(numbers(8))
    dev.delete("a = 1")
    table.append(numbers(5))
    assert values_of(dev) == [2, 3, 8]
    assert values_of(table) == [1, 2, 3, 4, 5]
    again = lt.open_table(table.uri, branch="dev")
    assert (again.version, values_of(again)) == (3, [2, 3, 8])
    info = table.branches["dev"]
    assert (info.parent_branch, info.parent_version, info.metadata) == (None, 1, {"why": "test"})
    assert table.branches.describe("dev", {}).metadata == {}


def test_a_branch_of_a_branch_and_of_a_tag(table: lt.Table) -> None:
    table.tags.create("first", 1)
    dev = table.branches.create("dev", tag="first")
    dev.append(numbers(7))
    deep = table.branches.create("deep/er", branch="dev")
    assert values_of(deep) == [1, 2, 3, 7]
    info = table.branches["deep/er"]
    assert (info.parent_branch, info.parent_version) == ("dev", 2)
    assert info.identifier[:1] == table.branches["dev"].identifier
    deep.update({"a": "a * 10"})
    assert values_of(deep) == [10, 20, 30, 70]
    assert values_of(dev) == [1, 2, 3, 7]


def test_deleting_a_branch_keeps_those_in_folders_below(table: lt.Table) -> None:
    table.branches.create("a").append(numbers(1))
    table.branches.create("a/b").append(numbers(2))
    gone = table.branches.delete("a")
    assert gone is not None
    assert gone.name == "a"
    assert list(table.branches) == ["a/b"]
    assert values_of(lt.open_table(table.uri, branch="a/b")) == [1, 2, 2, 3, 4]
    table.branches.create("a")
    assert values_of(lt.open_table(table.uri, branch="a")) == [1, 2, 3, 4]


def test_a_branch_whose_creator_died_is_finished_or_removed(table: lt.Table) -> None:
    record = Path(table.uri) / "_refs/branches/dev.json"
    table.branches.create("dev")
    record.unlink()
    assert list(table.branches) == []
    table.branches.create("dev")
    assert json.loads(record.read_text())["parentVersion"] == 2
    record.unlink()
    with pytest.raises(ExistsError, match="versions that no branch names"):
        table.branches.create("dev", 1)
    assert table.branches.delete("dev") is None
    assert table.branches.create("dev", 1).version == 1


def test_one_of_many_creates_a_tag_and_a_branch(table: lt.Table) -> None:
    results: list[object] = []

    def create(kind: str, version: int) -> None:
        try:
            getattr(lt.open_table(table.uri), kind).create("x", version)
            results.append(kind)
        except ExistsError:
            results.append(None)

    threads = [
        threading.Thread(target=create, args=(kind, version))
        for kind in ("tags", "branches")
        for version in (1, 2, 1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one for one in results if isinstance(one, str)) == ["branches", "tags"]
    info = table.branches["x"]
    opened = lt.open_table(table.uri, branch="x")
    assert opened.version == info.parent_version


def test_a_version_that_is_cleaned_away_meanwhile_gets_no_name(table: lt.Table) -> None:
    old = lt.open_table(table.uri, version=1)
    (Path(table.uri) / old._snapshot.manifest_path).rename(Path(table.uri) / "gone")
    with pytest.raises((VersionNotFoundError, FileNotFoundInStoreError)):
        old.tags.create("late")
    with pytest.raises((VersionNotFoundError, FileNotFoundInStoreError)):
        create_branch(old._snapshot, "late")
    assert not table.tags
    assert not table.branches


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("stable", [False, True])
def test_a_clone(tmp_path: Path, *, deep: bool, stable: bool) -> None:
    table = lt.create_table(tmp_path / "t", numbers(1, 2, 3), stable_row_ids=stable)
    table.append(numbers(4, 5))
    table.delete("a in (2, 4)")
    table.columns.add({"b": "a * 2"})
    clone = table.clone(tmp_path / "c", deep=deep)
    assert clone.version == table.version
    columns = ["a", "b", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    assert clone.scan(columns).to_arrow() == table.scan(columns).to_arrow()
    clone.append(pa.table({"a": [9], "b": [18]}))
    clone.delete("a = 1")
    clone.update({"b": "0"}, where="a = 3")
    table.append(pa.table({"a": [7], "b": [7]}))
    again = lt.open_table(tmp_path / "c")
    assert values_of(again) == [3, 5, 9]
    assert values_of(lt.open_table(tmp_path / "c", version=clone.version - 3)) == [1, 3, 5]
    shutil.rmtree(tmp_path / "t")
    if deep:
        assert values_of(lt.open_table(tmp_path / "c")) == [3, 5, 9]
    else:
        with pytest.raises(FileNotFoundInStoreError, match=r"from .*/t, to which a clone"):
            values_of(lt.open_table(tmp_path / "c"))
        assert lt.open_table(tmp_path / "c").count() == 3


def test_a_clone_of_a_branch_and_of_a_clone(table: lt.Table, tmp_path: Path) -> None:
    dev = table.branches.create("dev")
    dev.append(numbers(9))
    first = dev.clone(tmp_path / "first")
    first.append(numbers(10))
    second = first.clone(tmp_path / "second")
    third = second.clone(tmp_path / "third", deep=True)
    assert values_of(second) == values_of(third) == [1, 2, 3, 4, 9, 10]
    assert second.branch is None
    shutil.rmtree(tmp_path / "t")
    assert values_of(third) == [1, 2, 3, 4, 9, 10]


def test_a_clone_needs_an_empty_place_and_a_whole_source(table: lt.Table, tmp_path: Path) -> None:
    lt.create_table(tmp_path / "other", numbers(1))
    with pytest.raises(ExistsError, match="there is a table already"):
        table.clone(tmp_path / "other")
    next((Path(table.uri) / "data").iterdir()).unlink()
    with pytest.raises(FileNotFoundInStoreError, match="no such file"):
        lt.open_table(table.uri).clone(tmp_path / "broken", deep=True)
    assert not files_below(tmp_path / "broken")


@pytest.mark.parametrize("kind", ["manifest store", "lock"])
def test_branches_where_others_decide_who_was_first(tmp_path: Path, kind: str) -> None:
    means: dict[str, Any] = {"commit_lock": lambda _: nullcontext()}
    if kind == "manifest store":
        means = {"manifest_store": SqliteManifests(str(tmp_path / "m.db"))}
    table = lt.create_table(tmp_path / "t", numbers(1, 2), **means)
    for _ in range(2):
        dev = table.branches.create("dev")
        dev.append(numbers(3))
        assert values_of(lt.open_table(table.uri, branch="dev", **means))[-1] == 3
        table.branches.delete("dev")
    dev = table.branches.create("dev")
    dev.append(numbers(4))
    table.branches.fast_forward("dev")
    table.tags.create("now")
    assert values_of(lt.open_table(table.uri, tag="now", **means)) == [1, 2, 4]
    clone = table.clone(tmp_path / "c", deep=True)
    clone.append(numbers(5))
    assert values_of(lt.open_table(tmp_path / "c")) == [1, 2, 4, 5]


@pytest.mark.parametrize("name", ["zz", "", None, 5, [], b"main"])
def test_a_name_that_is_not_there_is_an_error_of_both_worlds(tmp_path: Path, name: Any) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1]})
    table.tags.create("v1")
    for named in (table.tags, table.branches):
        with pytest.raises(lt.RefNotFoundError, match="there are: "):
            named[name]
        with pytest.raises(KeyError):
            named[name]
        assert name not in named
        assert named.get(name, "nothing") == "nothing"


@pytest.mark.parametrize("seconds", ["a", 1.5, -1, True, 2**70, []])
def test_a_hold_counts_seconds(tmp_path: Path, seconds: Any) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1]})
    with pytest.raises(lt.InputError, match="the seconds of a lease"), table.hold(seconds=seconds):
        pass


@pytest.mark.parametrize("uri", [None, 5, b"x", "", [], object()])
def test_a_clone_needs_an_address(tmp_path: Path, uri: Any) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1]})
    with pytest.raises(lt.InputError, match="give an address or a path for the clone"):
        table.clone(uri)


@pytest.mark.parametrize("version", ["a", 1.5, True, [], -1, 2**70, None])
def test_changes_start_from_a_version(tmp_path: Path, version: Any) -> None:
    table = lt.create_table(tmp_path / "t", {"id": [1]})
    table.append({"id": [2]})
    with pytest.raises(lt.LanceTableError):
        table.changes(version, 2).to_arrow()
    if version is not None:
        with pytest.raises(lt.LanceTableError):
            table.changes(1, version).to_arrow()
