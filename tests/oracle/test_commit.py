"""Versions made by this library, read and continued by the reference implementation."""

import shutil
import threading

import numpy as np
import pyarrow as pa
import pytest

from lancetable.commit import load
from lancetable.commit.committer import CommitOptions, commit, create
from lancetable.commit.transaction import (
    Append,
    CreateIndex,
    Delete,
    MapUpdate,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    UpdateBases,
    UpdateConfig,
)
from lancetable.format.manifest import BasePath
from lancetable.fragment.deletions import load_deletions, write_deletions
from lancetable.store import TableLocation

lance = pytest.importorskip("lance")
pytestmark = pytest.mark.oracle


def operation_of(root, version=None):
    made = load(TableLocation(str(root)), version=version).transaction()
    assert made is not None
    return made.operation


def rows(start, count):
    ids = list(range(start, start + count))
    return pa.table({"id": ids, "x": [i * 10 for i in ids], "s": [f"s{i}" for i in ids]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def stable(request):
    return request.param


@pytest.fixture
def root(tmp_path, stable):
    path = tmp_path / "t"
    lance.write_dataset(rows(0, 20), path, enable_stable_row_ids=stable, max_rows_per_file=10)
    return path


def scanned(dataset):
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    return dataset.to_table([*dataset.schema.names, *columns]).sort_by("_rowid")


def source(start):
    return pa.table({"id": [start, start + 1, 1000], "x": [7, 8, 9], "s": ["a", "b", "c"]})


def merge(dataset):
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(source(3))


STEPS = {
    "append": lambda d: lance.write_dataset(rows(50, 5), d.uri, mode="append"),
    "delete": lambda d: d.delete("id % 3 = 0"),
    "delete a fragment": lambda d: d.delete("id < 10"),
    "delete all": lambda d: d.delete("true"),
    "update": lambda d: d.update({"x": "x + 1"}, where="id in (2, 15)"),
    "merge": merge,
    "add a column": lambda d: d.add_columns({"y": "x * 2"}),
    "add nulls": lambda d: d.add_columns(pa.field("z", pa.float32())),
    "drop a column": lambda d: d.drop_columns(["x"]),
    "rename": lambda d: d.alter_columns({"path": "x", "name": "renamed"}),
    "cast": lambda d: d.alter_columns({"path": "x", "data_type": pa.int32()}),
    "overwrite": lambda d: lance.write_dataset(rows(7, 3), d.uri, mode="overwrite"),
    "configure": lambda d: d.update_config({"k": "v"}),
    "index": lambda d: d.create_scalar_index("id", "BTREE"),
    "compact": lambda d: d.optimize.compact_files(),
    "restore": lambda d: lance.dataset(d.uri, version=1).restore(),
}
STORIES = [
    ["append", "delete", "update", "merge", "compact", "append"],
    ["index", "update", "delete", "merge", "append", "compact", "delete a fragment"],
    ["add a column", "delete", "cast", "drop a column", "add nulls"],
    ["append", "rename", "configure", "overwrite", "index", "delete all"],
    ["append", "configure", "delete a fragment", "restore", "index", "add nulls", "overwrite"],
]


@pytest.mark.parametrize("story", STORIES, ids=" ".join)
def test_each_step_committed_by_us_is_the_same_table(tmp_path, root, story):
    """The reference implementation does the work; we commit its operation to a copy."""
    for number, step in enumerate(story):
        before = lance.dataset(root).version
        copy = tmp_path / f"copy{number}"
        shutil.copytree(root, copy)
        STEPS[step](lance.dataset(root))
        made = lance.dataset(root)
        for folder in ("data", "_deletions", "_indices"):
            source_folder = root / folder
            if source_folder.exists():
                shutil.copytree(source_folder, copy / folder, dirs_exist_ok=True)
        table = load(TableLocation(str(copy)))
        for version in range(before + 1, made.version + 1):
            operation = operation_of(root, version)
            table = commit(table, operation).snapshot
        ours = lance.dataset(copy)
        ours.validate()
        assert ours.version == made.version
        assert scanned(ours) == scanned(made), step
        assert ours.schema == made.schema
        assert ours.config() == made.config()
        found = {(i.name, tuple(i.segments[0].fragment_ids)) for i in ours.describe_indices()}
        expected = {(i.name, tuple(i.segments[0].fragment_ids)) for i in made.describe_indices()}
        assert found == expected
        if "id" in ours.schema.names and ours.count_rows():
            some = ours.to_table(["id"])["id"][0].as_py()
            assert ours.count_rows(f"id = {some}") == 1


def delete_by_us(root, fragment_index, offsets):
    table = load(TableLocation(str(root)))
    fragment = table.manifest.fragments[fragment_index]
    gone = np.array(offsets)
    if fragment.deletion_file is not None:
        old = load_deletions(table, fragment, fragment.deletion_file, fragment.physical_rows)
        gone = np.union1d(old.offsets, gone)
    made = write_deletions(table.store, fragment, gone, read_version=table.version)
    operation = Delete((fragment._replace(deletion_file=made.file),), (), "by us")
    return commit(table, operation, affected={fragment.id: np.array(offsets)}).snapshot


def test_both_change_one_table_in_turn(root):
    alive = set(range(20))
    for turn in range(4):
        lance.write_dataset(rows(100 + 10 * turn, 2), root, mode="append")
        alive |= {100 + 10 * turn, 101 + 10 * turn}
        delete_by_us(root, 0, [turn])
        alive.discard(turn)
        lance.dataset(root).delete(f"id = {10 + turn}")
        alive.discard(10 + turn)
        table = load(TableLocation(str(root)))
        commit(table, UpdateConfig(config=MapUpdate({"turn": str(turn)})))
        dataset = lance.dataset(root)
        dataset.validate()
        assert set(dataset.to_table()["id"].to_pylist()) == alive
        assert dataset.config()["turn"] == str(turn)
    assert lance.dataset(root).version == 1 + 4 * 4


@pytest.mark.parametrize("count", [1, 4_999, 5_000, 70_000])
def test_deletion_files_of_any_size(tmp_path, count):
    path = tmp_path / "t"
    lance.write_dataset(rows(0, 100_000), path)
    delete_by_us(path, 0, range(count))
    dataset = lance.dataset(path)
    dataset.validate()
    assert dataset.count_rows() == 100_000 - count
    assert dataset.to_table(["id"])["id"][0].as_py() == count
    (file,) = (path / "_deletions").iterdir()
    assert file.suffix == (".arrow" if count < 5_000 else ".bin")


def test_a_table_created_by_us(tmp_path, root, stable):
    """The files come from the reference implementation, everything else from us."""
    theirs = load(TableLocation(str(root)))
    path = tmp_path / "own"
    shutil.copytree(root / "data", path / "data")
    fragments = tuple(
        one._replace(row_ids=None, created_at=None, last_updated_at=None)
        for one in theirs.manifest.fragments
    )
    create(
        TableLocation(str(path)),
        Overwrite(fragments, theirs.manifest.schema, {"k": "v"}),
        options=CommitOptions("made by hand"),
        stable_row_ids=stable,
    )
    ours = lance.dataset(path)
    ours.validate()
    assert scanned(ours) == scanned(lance.dataset(root))
    assert ours.has_stable_row_ids == stable
    lance.write_dataset(rows(90, 3), path, mode="append")
    lance.dataset(path).update({"x": "0"}, where="id = 5")
    table = load(TableLocation(str(path)))
    table = commit(table, Restore(1)).snapshot
    assert scanned(lance.dataset(path))["id"].to_pylist() == list(range(20))
    lance.write_dataset(rows(200, 3), path, mode="append")
    lance.dataset(path).validate()
    assert max(one.id for one in load(TableLocation(str(path))).manifest.fragments) == 4


def test_operations_that_change_no_rows(tmp_path, root):
    table = load(TableLocation(str(root)))
    table = commit(table, ReserveFragments(5)).snapshot
    base = BasePath(0, "other", str(tmp_path / "other"), is_dataset_root=True)
    table = commit(table, UpdateBases((base,))).snapshot
    described = UpdateConfig(
        table_metadata=MapUpdate({"owner": "me"}),
        schema_metadata=MapUpdate({"about": "tests"}),
        field_metadata={1: MapUpdate({"unit": "m"})},
    )
    table = commit(table, described).snapshot
    fields = table.manifest.schema.fields
    turned = Project(type(table.manifest.schema)(fields[::-1]), preserves_nullability=True)
    table = commit(table, turned).snapshot
    table = commit(table, CreateIndex()).snapshot
    dataset = lance.dataset(root)
    dataset.validate()
    assert dataset.schema.names == ["s", "x", "id"]
    assert dataset.schema.metadata == {b"about": b"tests"}
    assert dataset.schema.field("x").metadata == {b"unit": b"m"}
    lance.write_dataset(rows(30, 2), root, mode="append")
    assert load(TableLocation(str(root))).manifest.fragments[-1].id == 7


def test_fragments_rewritten_by_them_are_committed_by_us(tmp_path):
    """Compaction is planned and done by them, committed by us after a commit of ours."""
    path = tmp_path / "t"
    lance.write_dataset(rows(0, 40), path, max_rows_per_file=10)
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    lance.dataset(path).optimize.compact_files()
    done = operation_of(path)
    assert isinstance(done, Rewrite)
    shutil.copytree(path / "data", copy / "data", dirs_exist_ok=True)
    table = load(TableLocation(str(copy)))
    appended = commit(table, Append((table.manifest.fragments[0],))).snapshot
    assert [one.id for one in appended.manifest.fragments] == [0, 1, 2, 3, 4]
    (group,) = done.groups
    renamed = tuple(one._replace(id=0) for one in group.new_fragments)
    rewrite = Rewrite((group._replace(new_fragments=renamed),))
    made = commit(table, rewrite).snapshot
    assert [one.id for one in made.manifest.fragments] == [4, 5]
    ours = lance.dataset(copy)
    ours.validate()
    assert ours.count_rows() == 50


def test_both_append_at_the_same_time(root):
    failed = []
    start = load(TableLocation(str(root)))
    fragment = start.manifest.fragments[0]._replace(
        row_ids=None, created_at=None, last_updated_at=None
    )

    def ours():
        table = load(TableLocation(str(root)))
        for _ in range(15):
            table = commit(table, Append((fragment,)), CommitOptions(attempts=200)).snapshot

    def theirs():
        for turn in range(15):
            lance.write_dataset(rows(1000 + turn, 1), root, mode="append")

    def guarded(work):
        try:
            work()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (ours, theirs, ours)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    dataset = lance.dataset(root)
    dataset.validate()
    assert dataset.version == 46
    assert dataset.count_rows() == 20 + 30 * 10 + 15
    if start.manifest.reader_flags & 2:
        ids = dataset.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
        assert len(set(ids)) == len(ids)
