"""Tags, branches and clones, made by one library and read, changed and removed by the other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancetable as lt

lance = pytest.importorskip("lance")
pytestmark = pytest.mark.oracle

COLUMNS = ["a", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int64())})


def same(table: lt.Table, dataset: Any) -> None:
    assert (table.version, table.count()) == (dataset.version, dataset.count_rows())
    ours = table.scan(COLUMNS).to_arrow()
    assert ours == dataset.to_table(columns=COLUMNS).select(COLUMNS)


def made_by_us(path: Path, *, stable: bool) -> None:
    table = lt.create_table(path, rows(1, 2, 3), stable_row_ids=stable)
    table.append(rows(4, 5))
    table.delete("a = 2")


def made_by_pylance(path: Path, *, stable: bool) -> None:
    dataset = lance.write_dataset(rows(1, 2, 3), path, enable_stable_row_ids=stable)
    dataset = lance.write_dataset(rows(4, 5), dataset, mode="append")
    dataset.delete("a = 2")


MAKERS = [made_by_us, made_by_pylance]
Maker = Callable[..., None]


def change_by_both(table: lt.Table, reopen: Callable[[], Any]) -> None:
    """Let both libraries write in turns, comparing after each step."""
    table.append(rows(10, 11))
    same(table, reopen())
    reopen().delete("a = 1")
    same(table.refresh(), reopen())
    table.update({"a": "a + 100"}, where="a = 10")
    same(table, reopen())
    lance.write_dataset(rows(20), reopen(), mode="append")
    reopen().update({"a": "a + 200"}, where="a = 3")
    same(table.refresh(), reopen())
    table.delete("a > 200")
    same(table, reopen())


@pytest.mark.parametrize("maker", MAKERS)
def test_tags(tmp_path: Path, maker: Maker) -> None:
    path = tmp_path / "t"
    maker(path, stable=False)
    table, dataset = lt.open_table(path), lance.dataset(path)
    table.tags.create("ours", 1, metadata={"k": "v"})
    dataset.tags.create("theirs", 2)
    dataset.tags.replace_metadata("theirs", {"x": "y"})
    seen = dataset.tags.list()
    for name, tag in table.tags.items():
        assert seen[name]["version"] == tag.version
        assert seen[name]["metadata"] == tag.metadata
        assert seen[name]["manifest_size"] == tag.manifest_size
        assert seen[name]["created_at"] == tag.created_at
        same(lt.open_table(path, tag=name), lance.dataset(path, version=name))
    dataset.tags.update("ours", 3)
    table.tags.move("theirs", 1)
    assert {name: tag.version for name, tag in table.tags.items()} == {"ours": 3, "theirs": 1}
    assert lance.dataset(path).tags.get_version("theirs") == 1
    assert table.tags["ours"].metadata == {"k": "v"}
    dataset.tags.delete("ours")
    table.tags.delete("theirs")
    assert not table.tags
    assert not dataset.tags.list()


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("creator", ["ours", "theirs"])
@pytest.mark.parametrize("maker", MAKERS)
def test_branches(tmp_path: Path, maker: Maker, creator: str, *, stable: bool) -> None:
    path = tmp_path / "t"
    maker(path, stable=stable)
    if creator == "ours":
        lt.open_table(path).branches.create("team/dev", 2)
    else:
        lance.dataset(path).create_branch("team/dev", 2)
    table = lt.open_table(path, branch="team/dev")

    def reopen() -> Any:
        return lance.dataset(path).checkout_version(("team/dev", None))

    same(table, reopen())
    change_by_both(table, reopen)
    # A branch of the branch, by the other library.
    if creator == "ours":
        reopen().create_branch("below")
    else:
        table.branches.create("below")
    below = lt.open_table(path, branch="below")
    below.append(rows(99))
    same(below, lance.dataset(path).checkout_version(("below", None)))
    listed = lance.dataset(path).branches.list()
    for name, info in table.branches.items():
        assert listed[name]["parent_branch"] == info.parent_branch
        assert listed[name]["parent_version"] == info.parent_version
        assert tuple(listed[name]["branch_identifier"]) == info.identifier
    # Each removes what the other made.
    main = lt.open_table(path)
    if creator == "ours":
        main.branches.delete("below")
        lance.dataset(path).branches.delete("team/dev")
    else:
        lance.dataset(path).branches.delete("below")
        main.branches.delete("team/dev")
    assert not main.branches
    assert not lance.dataset(path).branches.list()
    same(main, lance.dataset(path))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("cloner", ["ours", "theirs"])
@pytest.mark.parametrize("maker", MAKERS)
def test_clones(tmp_path: Path, maker: Maker, cloner: str, *, deep: bool, stable: bool) -> None:
    path, to = tmp_path / "t", tmp_path / "c"
    maker(path, stable=stable)
    if cloner == "ours":
        lt.open_table(path).clone(to, deep=deep)
    else:
        dataset = lance.dataset(path)
        (dataset.deep_clone if deep else dataset.shallow_clone)(str(to), 3)
    clone = lt.open_table(to)
    same(clone, lance.dataset(to))
    assert clone.scan(COLUMNS).to_arrow() == lt.open_table(path).scan(COLUMNS).to_arrow()
    change_by_both(clone, lambda: lance.dataset(to))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("maker", MAKERS)
def test_restore_across_changes_of_the_schema(
    tmp_path: Path, maker: Maker, *, stable: bool
) -> None:
    path = tmp_path / "t"
    maker(path, stable=stable)
    table = lt.open_table(path)
    table.columns.add({"b": "a * 2"})
    table.columns.rename("b", "c")
    table.columns.cast("a", pa.int32())
    before = table.version
    table.restore(3)
    assert table.schema.names == ["a"]
    assert table.schema.field("a").type == pa.int64()
    same(table, lance.dataset(path))
    lance.write_dataset(rows(50), path, mode="append")
    same(table.refresh(), lance.dataset(path))
    lance.dataset(path, version=before).restore()
    table.refresh()
    assert table.schema.names == ["a", "c"]
    same(table, lance.dataset(path))
    table.append(pa.table({"a": pa.array([7], pa.int32()), "c": [14]}))
    same(table, lance.dataset(path))


PUBLISHED = {
    "append": lambda t: t.append(rows(30, 31)),
    "delete": lambda t: t.delete("a in (1, 30)"),
    "update": lambda t: t.update({"a": "a + 1000"}, where="a > 4"),
    "update columns": lambda t: t.update({"a": "a + 2000"}, where="a = 3", mode="columns"),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("way", ["fast_forward", "cherry_pick"])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_a_branch_that_comes_back(tmp_path: Path, writer: str, way: str, *, stable: bool) -> None:
    path = tmp_path / "t"
    made_by_pylance(path, stable=stable)
    table = lt.open_table(path)
    branch = table.branches.create("dev")
    if writer == "ours":
        for change in PUBLISHED.values():
            change(branch)
    else:
        dev = lance.dataset(path).checkout_version(("dev", None))
        dev = lance.write_dataset(rows(30, 31), dev, mode="append")
        dev.delete("a in (1, 30)")
        dev.update({"a": "a + 1000"}, where="a > 4")
        upsert = dev.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
        upsert.execute(rows(3, 77))
    branch.refresh()
    getattr(table.branches, way)("dev")
    wanted = sorted(branch.scan(["a"]).to_arrow()["a"].to_pylist())
    assert sorted(table.scan(["a"]).to_arrow()["a"].to_pylist()) == wanted
    same(table, lance.dataset(path))
    lance.dataset(path).branches.delete("dev")
    same(lt.open_table(path), lance.dataset(path))
    change_by_both(table, lambda: lance.dataset(path))


@pytest.mark.parametrize("stable", [False, True])
def test_detached_versions(tmp_path: Path, *, stable: bool) -> None:
    path = tmp_path / "t"
    made_by_us(path, stable=stable)
    table = lt.open_table(path)
    apart = lt.CommitOptions(detached=True)
    made = table.append(rows(8), commit=apart)
    table.delete("a = 1", commit=apart)
    same(table, lance.dataset(path, version=table.version))
    assert made.version >= 1 << 63
    with pytest.raises(lt.InputError, match="is detached"):
        table.append(rows(9))
    dataset = lance.dataset(path)
    pieces = lance.fragment.write_fragments(rows(11), dataset)
    operation = lance.LanceOperation.Append(pieces)
    theirs = lance.LanceDataset.commit(dataset, operation, read_version=3, detached=True)
    same(lt.open_table(path, version=theirs.version), theirs)
    assert table.refresh().version == 3
    assert lance.dataset(path).version == 3


@pytest.mark.parametrize("maker", MAKERS)
def test_row_ids_given_afterwards(tmp_path: Path, maker: Maker) -> None:
    path = tmp_path / "t"
    maker(path, stable=False)
    lance.dataset(path).create_scalar_index("a", "BTREE")
    table = lt.open_table(path)
    stale = lance.dataset(path)
    table.maintenance.enable_stable_row_ids()
    same(table, lance.dataset(path))
    # A writer that has not heard of it adds rows.
    lance.write_dataset(rows(6, 7), stale, mode="append")
    same(table.refresh(), lance.dataset(path))
    before = dict(zip(*lance.dataset(path).to_table(columns=["a", "_rowid"]), strict=True))
    assert lance.dataset(path).to_table(filter="a = 4")["a"].to_pylist() == [4]
    change_by_both(table, lambda: lance.dataset(path))
    lance.dataset(path).optimize.compact_files()
    same(table.refresh(), lance.dataset(path))
    after = dict(zip(*lance.dataset(path).to_table(columns=["a", "_rowid"]), strict=True))
    assert {a: after[a] for a in before if a in after} == {
        a: before[a] for a in before if a in after
    }
    assert lance.dataset(path).to_table(filter="a = 4")["a"].to_pylist() == [4]
    with pytest.raises(OSError, match="stable row ids were enabled after it"):
        lance.dataset(path, version=2).restore()
    with pytest.raises(lt.InputError, match="version 2 cannot be restored"):
        table.restore(2)
    table.restore(table.version - 1)
    same(table, lance.dataset(path))


@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_several_bases(tmp_path: Path, writer: str) -> None:
    path, one, two = tmp_path / "t", tmp_path / "one", tmp_path / "two"
    options: Any = {"max_rows_per_file": 2, "target_bases": ("one", "two")}
    if writer == "ours":
        lt.create_table(path, rows(*range(10)), bases={"one": one, "two": two}, **options)
    else:
        bases = [lance.DatasetBasePath(str(one), "one"), lance.DatasetBasePath(str(two), "two")]
        lance.write_dataset(
            rows(*range(10)),
            path,
            max_rows_per_file=2,
            initial_bases=bases,
            target_bases=["one", "two"],
        )
    table = lt.open_table(path)
    same(table, lance.dataset(path))
    table.append(rows(20, 21, 22), **options)
    lance.write_dataset(rows(30), path, mode="append", target_bases=["two"])
    same(table.refresh(), lance.dataset(path))
    table.bases.add({"three": tmp_path / "three"})
    lance.write_dataset(rows(40), path, mode="append", target_bases=["three"])
    change_by_both(table.refresh(), lambda: lance.dataset(path))


def test_row_ids_in_hidden_columns(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = lt.create_table(path, rows(*range(3000)), stable_row_ids=True)
    table.config.update(
        {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "100"}
    )
    table.update({"a": "a + 10000"}, where="a % 3 = 0 or a % 7 = 1")
    same(table, lance.dataset(path))
    lance.dataset(path).update({"a": "a + 10000"}, where="a % 5 = 0")
    lance.dataset(path).delete("a % 11 = 0")
    same(table.refresh(), lance.dataset(path))
    table.update({"a": "a + 50000"}, where="a % 2 = 0")
    same(table, lance.dataset(path))
    lance.dataset(path).optimize.compact_files()
    same(table.refresh(), lance.dataset(path))
