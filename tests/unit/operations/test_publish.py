"""Bringing a branch back: all of it as one version, or single versions replayed."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import (
    ConflictError,
    InputError,
    RefNotFoundError,
    StoreError,
    VersionNotFoundError,
)
from lancetable.operations.branch import copy_files as bringing
from lancetable.operations.branch.fast_forward import fast_forward

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
Change = Callable[[lt.Table], object]


def rows(*values: int) -> pa.Table:
    numbers = pa.array(values, pa.int64())
    return pa.table({"a": numbers, "s": [f"s{value}" for value in values]})


def merge(table: lt.Table) -> object:
    source = pa.table({"a": [3, 100, 555], "s": ["m", "n", "o"]})
    builder = table.merge(source, on="a").when_matched_update_all()
    return builder.when_not_matched_insert_all().execute()


CHANGES: dict[str, Change] = {
    "append": lambda t: t.append(rows(100, 101)),
    "append with a column": lambda t: t.append(
        rows(77).append_column("n", pa.array([1])), merge_schema=True
    ),
    "delete": lambda t: t.delete("a in (1, 12)"),
    "delete a fragment": lambda t: t.delete("a < 10"),
    "update": lambda t: t.update({"s": "'u'"}, where="a % 3 = 0 or a = 100"),
    "update columns": lambda t: t.update({"s": "'c'"}, where="a % 3 = 0", mode="columns"),
    "merge": merge,
    "add a column": lambda t: t.columns.add({f"n{t.version}": "a * 2"}),
    "rename": lambda t: t.columns.rename("s", "t"),
    "drop": lambda t: t.columns.drop(["s"]),
    "replace": lambda t: t.columns.replace({"s": "'r'"}),
}
SEQUENCES = [
    *((name,) for name in CHANGES),
    ("append", "update", "delete"),
    ("update", "append", "merge"),
    ("merge", "update columns", "delete a fragment"),
    ("add a column", "delete", "update columns"),
    ("append", "add a column", "update columns"),
    ("update", "add a column", "delete"),
]


def base(path: Path, *, stable: bool) -> lt.Table:
    table = lt.create_table(path, rows(*range(10)), stable_row_ids=stable)
    table.append(rows(*range(10, 20)))
    table.delete("a = 5")
    return table


def content(table: lt.Table, *columns: str) -> pa.Table:
    names = [*table.schema.names, *columns]
    return table.scan(names).to_arrow().sort_by("a").combine_chunks()


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def forget_branch(table: lt.Table, name: str) -> None:
    """Delete a branch and every trace of its folder."""
    table.branches.delete(name)
    shutil.rmtree(Path(table.uri) / "tree")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize(
    "names", [*SEQUENCES, ("delete", "compact"), ("append", "overwrite")], ids="+".join
)
def test_a_fast_forward_is_one_version(
    tmp_path: Path, names: tuple[str, ...], *, stable: bool
) -> None:
    more: dict[str, Change] = {
        **CHANGES,
        "compact": lambda t: t.compact(),
        "overwrite": lambda t: t.overwrite(pa.table({"a": [1], "z": ["q"]})),
    }
    table = base(tmp_path / "t", stable=stable)
    dev = table.branches.create("dev")
    for name in names:
        more[name](dev)
    expected = content(dev, *(["_rowid"] if stable else []))
    done = table.branches.fast_forward("dev", commit="audited")
    assert (done.version, table.version) == (4, 4)
    assert done.branch_versions == tuple(range(4, dev.version + 1))
    assert content(table, *(["_rowid"] if stable else [])) == expected
    assert table.history()[0].message == "audited"
    forget_branch(table, "dev")
    again = lt.open_table(table.uri)
    assert content(again, *(["_rowid"] if stable else [])) == expected
    if stable:
        lineage = again.scan(LINEAGE).to_arrow()
        assert max(lineage["_row_last_updated_at_version"].to_pylist()) <= 4
        again.append(again.head(1))
        ids = again.scan(["_rowid"]).to_arrow()["_rowid"].to_pylist()
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("names", SEQUENCES, ids="+".join)
def test_picking_equals_doing(tmp_path: Path, names: tuple[str, ...], *, stable: bool) -> None:
    table = base(tmp_path / "t", stable=stable)
    twin = base(tmp_path / "twin", stable=stable)
    dev = table.branches.create("dev")
    for name in names:
        CHANGES[name](dev)
        CHANGES[name](twin)
    done = table.branches.cherry_pick("dev")
    assert [one.version for one in done.picks] == list(range(4, 4 + len(names)))
    assert content(table, *LINEAGE[1:]) == content(twin, *LINEAGE[1:])
    if stable:
        assert content(table, "_rowid") == content(twin, "_rowid")
    forget_branch(table, "dev")
    assert content(lt.open_table(table.uri)) == content(twin)


ELSEWHERE: dict[str, Change] = {
    "appended": lambda t: t.append(rows(500)),
    "deleted others": lambda t: t.delete("a = 7"),
    "updated others": lambda t: t.update({"s": "'main'"}, where="a = 8"),
    "deleted the same": lambda t: t.delete("a in (3, 12)"),
    "renamed": lambda t: t.columns.rename("s", "other"),
    "compacted": lambda t: t.compact(),
}
REFUSED = {
    ("appended", "add a column"): "rows were added after the branch began",
    ("appended", "append with a column"): "rows were added after the branch began",
    ("appended", "merge"): "may have the inserted keys",
    ("deleted others", "delete a fragment"): "was deleted or changed after the branch began",
    ("deleted others", "update columns"): "another writer changed fragment 0",
    ("deleted others", "replace"): "another writer changed fragment 0",
    ("updated others", "delete a fragment"): "was deleted or changed after the branch began",
    ("updated others", "update columns"): "another writer changed fragment 0",
    ("updated others", "replace"): "another writer changed fragment 0",
    ("updated others", "merge"): "may have the inserted keys",
    ("updated others", "add a column"): "rows were added after the branch began",
    ("updated others", "append with a column"): "rows were added after the branch began",
    **{
        ("deleted the same", name): "was deleted or changed|another writer changed fragment"
        for name in ("delete", "delete a fragment", "update", "update columns", "merge", "replace")
    },
    **{
        ("renamed", name): "dropped or changed after|schema was changed|another writer"
        for name in CHANGES
        if name not in {"delete", "delete a fragment", "update columns", "replace"}
    },
    **{
        ("compacted", name): "not there any more|rows were added|another writer"
        for name in CHANGES
        if name not in {"append", "rename", "drop"}
    },
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("meanwhile", ELSEWHERE)
def test_picking_onto_a_history_that_moved_on(
    tmp_path: Path, meanwhile: str, name: str, *, stable: bool
) -> None:
    table = base(tmp_path / "t", stable=stable)
    dev = table.branches.create("dev")
    CHANGES[name](dev)
    ELSEWHERE[meanwhile](table)
    with pytest.raises(ConflictError, match=r"version is \d; cherry-pick"):
        table.branches.fast_forward("dev")
    before, files = content(table, *LINEAGE), files_below(Path(table.uri))
    words = REFUSED.get((meanwhile, name))
    if words is not None:
        with pytest.raises(ConflictError, match=words):
            table.branches.cherry_pick("dev")
        assert content(lt.open_table(table.uri), *LINEAGE) == before
        assert files_below(Path(table.uri)) == files
        return
    table.branches.cherry_pick("dev")
    after = content(table)
    # What the branch did to the rows it knew, and what the others did to theirs.
    old = {row["a"]: row for row in content(lt.open_table(table.uri, version=3)).to_pylist()}
    there = {row["a"]: row for row in content(dev).to_pylist()}
    mine = {row["a"]: row for row in before.select(["a"]).to_pylist()}
    expected = {a for a in mine if a in there or a not in old} | (there.keys() - old.keys())
    assert set(after["a"].to_pylist()) == expected


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    made = base(tmp_path / "t", stable=False)
    made.branches.create("dev").append(rows(50))
    return made


def test_nothing_to_bring(table: lt.Table) -> None:
    table.branches.create("empty")
    done = table.branches.fast_forward("empty")
    assert (done.version, done.branch_versions, table.version) == (3, (), 3)
    assert table.branches.cherry_pick("empty").picks == ()


def test_nothing_is_brought_twice(table: lt.Table) -> None:
    table.branches.cherry_pick("dev", 4)
    with pytest.raises(InputError, match="version 4 of branch 'dev' was brought here before"):
        table.branches.cherry_pick("dev")
    other = table.branches.create("other")
    other.append(rows(60))
    table.branches.fast_forward("other")
    with pytest.raises(InputError, match="version 5 of branch 'other' was brought here before"):
        table.branches.cherry_pick("other", [5])
    assert table.count("a in (50, 60)") == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.restore(3), "of the kind Restore"),
        (lambda t: t.overwrite(rows(1)), "of the kind Overwrite"),
        (lambda t: (t.append(rows(3)), t.compact()), "of the kind Rewrite"),
    ],
)
def test_what_cannot_be_replayed_is_refused(table: lt.Table, change, words) -> None:
    dev = lt.open_table(table.uri, branch="dev")
    change(dev)
    with pytest.raises(InputError, match=words):
        table.branches.cherry_pick("dev", dev.version)
    assert lt.open_table(table.uri).version == 3


def test_versions_before_one_that_fails_stay(table: lt.Table) -> None:
    dev = lt.open_table(table.uri, branch="dev")
    dev.restore(3)
    with pytest.raises(InputError, match=r"kind Restore.*picked before that: 4 as 4"):
        table.branches.cherry_pick("dev")
    assert lt.open_table(table.uri).count("a = 50") == 1


def test_settings_are_picked_but_not_forwarded(table: lt.Table) -> None:
    dev = lt.open_table(table.uri, branch="dev")
    dev.config.update({"k": "v"})
    with pytest.raises(InputError, match="changed the settings of the table"):
        table.branches.fast_forward("dev")
    table.branches.cherry_pick("dev")
    assert table.config == {"k": "v"}
    second = table.branches.create("second")
    second.config.update({"k": "w"})
    table.config.update({"k": "x"})
    with pytest.raises(ConflictError, match="setting 'k' was changed after"):
        table.branches.cherry_pick("second")


def test_what_is_named_wrongly(table: lt.Table) -> None:
    with pytest.raises(RefNotFoundError, match="no branch 'x'"):
        table.branches.fast_forward("x")
    with pytest.raises(VersionNotFoundError, match="branch 'dev' did not create version 3"):
        table.branches.cherry_pick("dev", 3)
    dev = lt.open_table(table.uri, branch="dev")
    sub = dev.branches.create("sub")
    sub.append(rows(70))
    with pytest.raises(InputError, match="was created from 'dev'"):
        table.branches.fast_forward("sub")
    dev.branches.fast_forward("sub")
    assert (dev.branch, dev.count("a = 70")) == ("dev", 1)
    table.branches.fast_forward("dev")
    assert table.count("a in (50, 70)") == 2


def test_a_failing_store_leaves_nothing(table: lt.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_below(Path(table.uri))

    def fail(*_: object) -> None:
        raise StoreError("no room")

    monkeypatch.setattr("lancetable.operations.branch.fast_forward.share_object", fail)
    with pytest.raises(StoreError, match="no room"):
        table.branches.fast_forward("dev")
    assert files_below(Path(table.uri)) == files
    assert bringing.bring([], table._snapshot.store, fail) == []


def test_a_writer_in_between_wins(table: lt.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    original = bringing.bring

    def slow(*arguments, **options):
        lt.open_table(table.uri).append(rows(99))
        return original(*arguments, **options)

    monkeypatch.setattr("lancetable.operations.branch.fast_forward.bring", slow)
    with pytest.raises(ConflictError, match="the commit is strict"):
        fast_forward(table._snapshot, "dev")
    assert lt.open_table(table.uri).count("a = 50") == 0
    # The write of the other one moved on; picking still works.
    table.branches.cherry_pick("dev")
    assert table.count("a in (50, 99)") == 2


@pytest.mark.parametrize("way", ["fast_forward", "cherry_pick"])
def test_of_several_who_publish_one_does(table: lt.Table, way: str) -> None:
    lt.open_table(table.uri, branch="dev").delete("a = 2")
    landed: list[bool] = []

    def publish() -> None:
        handle = lt.open_table(table.uri)
        try:
            getattr(handle.branches, way)("dev")
            landed.append(True)
        except (ConflictError, InputError):
            landed.append(False)

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(landed) == 4
    assert landed.count(True) == 1 or way == "cherry_pick"
    forget_branch(table, "dev")
    found = lt.open_table(table.uri)
    # Whoever lost removed only what was its own.
    assert found.scan().to_arrow().num_rows == found.count() == 19
    assert found.count("a = 50") == 1
