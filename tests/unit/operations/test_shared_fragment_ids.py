"""Tables whose fragments share an id: every read and every write means one fragment."""

import shutil
from datetime import timedelta

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ConflictError, UnsupportedError
from tests.manifests import edit_manifest, manifest_file, read_manifest, reorder_fragments

ROWS = [1, 2, 3, 4, 10, 20, 100, 101]


@pytest.fixture
def uri(golden, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(golden / "duplicate_fragment_ids/by-0.20.0.lance", path)
    return str(path)


def values(uri, column="a"):
    return sorted(lt.open_table(uri).scan().to_arrow()[column].to_pylist())


def stored_ids(uri):
    return [one.id for one in read_manifest(manifest_file(uri)).fragments]


def test_scan_take_and_count_give_every_row(uri):
    table = lt.open_table(uri)
    assert stored_ids(uri) == [0, 1, 1, 1]
    assert table.count() == 8
    rows = table.scan(columns=["a", "_rowaddr", "_rowid"]).to_arrow()
    assert sorted(rows["a"].to_pylist()) == ROWS
    assert len(set(rows["_rowaddr"].to_pylist())) == 8
    in_order = rows["a"].to_pylist()
    assert table.take(list(range(8)))["a"].to_pylist() == in_order
    addresses = rows["_rowaddr"].to_pylist()
    assert table.take(row_addresses=addresses[::-1])["a"].to_pylist() == in_order[::-1]
    assert table.take(row_ids=rows["_rowid"].to_pylist())["a"].to_pylist() == in_order


@pytest.mark.parametrize("gone", ROWS)
def test_delete_removes_one_row(uri, gone):
    assert lt.open_table(uri).delete(f"a = {gone}").rows == 1
    assert values(uri) == [one for one in ROWS if one != gone]
    assert stored_ids(uri) == sorted(set(stored_ids(uri)))
    assert lt.open_table(uri).maintenance.check(level="data", all_versions=False).is_ok


@pytest.mark.parametrize("changed", ROWS)
@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_update_changes_one_row(uri, changed, mode):
    lt.open_table(uri).update({"a": "a + 1000"}, f"a = {changed}", mode=mode)
    assert values(uri) == sorted(one + 1000 * (one == changed) for one in ROWS)
    assert len(set(stored_ids(uri))) == len(stored_ids(uri))


def test_merge_compaction_columns_and_append_keep_all_rows(uri):
    new = pa.table({"a": pa.array([10, 101, 7], pa.int64())})
    table = lt.open_table(uri)
    field = table.schema.field("a")
    merged = table.merge(new.cast(pa.schema([field])), on="a")
    merged.when_not_matched_insert_all().execute()
    assert values(uri) == sorted([*ROWS, 7])
    lt.open_table(uri).compact()
    assert values(uri) == sorted([*ROWS, 7])
    lt.open_table(uri).columns.add({"b": "a * 2"})
    assert values(uri, "b") == sorted(2 * one for one in (*ROWS, 7))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append(pa.table({"a": [7]})),
        lambda table: table.compact(),
        lambda table: table.columns.add({"b": "a * 2"}),
        lambda table: table.config.update({"key": "value"}),
        lambda table: table.columns.rename("a", "b"),
        lambda table: table.restore(3),
    ],
    ids=["append", "compact", "add", "config", "rename", "restore"],
)
def test_every_commit_gives_each_fragment_its_own_id(uri, change):
    table = lt.open_table(uri)
    change(table)
    ids = stored_ids(uri)
    assert ids == sorted(set(ids))
    assert read_manifest(manifest_file(uri)).max_fragment_id == max(ids)
    column = table.schema.names[0]
    assert set(values(uri, column)) >= set(ROWS)
    assert lt.open_table(uri).maintenance.check(level="data", all_versions=False).is_ok


def test_a_restored_version_takes_no_id_of_a_later_one(uri):
    table = lt.open_table(uri)
    table.append(pa.table({"a": [7]}, table.schema))
    later = set(stored_ids(uri))
    table.restore(3)
    assert values(uri) == ROWS
    assert len(later & set(stored_ids(uri))) == 2  # those that are unique in version 3 as well


def test_branches_and_clones_have_unique_ids(uri, tmp_path):
    table = lt.open_table(uri)
    branch = table.branches.create("b")
    branch.delete("a = 10")
    assert sorted(branch.scan().to_arrow()["a"].to_pylist()) == [one for one in ROWS if one != 10]
    table.branches.fast_forward("b")
    assert values(uri) == [one for one in ROWS if one != 10]
    for name, kind in (("c", True), ("d", False)):
        clone = lt.open_table(uri, version=3).clone(str(tmp_path / name), deep=kind)
        clone.delete("a = 100")
        assert sorted(clone.scan().to_arrow()["a"].to_pylist()) == [
            one for one in ROWS if one != 100
        ]


def test_check_names_the_id_and_repair_gives_new_ones(uri):
    table = lt.open_table(uri)
    (found,) = table.maintenance.check(level="metadata").problems
    assert found.kind == "fragment ids"
    assert found.versions == (3,)
    assert "id 1" in found.message
    plan = table.maintenance.repair()
    assert plan.is_needed
    assert plan.lost_rows == 0
    plan.execute()
    assert values(uri) == ROWS
    assert stored_ids(uri) == [0, 1, 2, 3]
    assert not lt.open_table(uri).maintenance.repair().is_needed


def with_deletions(uri):
    """Let two fragments with the id 1 have a deletion file each, of a row each."""
    table = lt.open_table(uri)
    table.delete("a in (3, 10)")
    stored = {one.files[0].path: one for one in read_manifest(manifest_file(uri)).fragments}

    def change(message):
        for one in message.fragments:
            own = stored.get(one.files[0].path)
            if own is not None and own.HasField("deletion_file"):
                name = f"{own.id}-{own.deletion_file.read_version}-{own.deletion_file.id}.arrow"
                folder = manifest_file(uri).parent.parent / "_deletions"
                shutil.copy(folder / name, folder / f"1-{name.partition('-')[2]}")
                one.deletion_file.CopyFrom(own.deletion_file)
                message.reader_feature_flags |= 1
                message.writer_feature_flags |= 1

    edit_manifest(uri, change, version=3)
    for name in ("4.manifest", "latest_version_hint.json"):
        (manifest_file(uri, 3).parent / name).unlink(missing_ok=True)


def test_deletion_files_are_found_by_the_stored_id(uri):
    with_deletions(uri)
    left = [one for one in ROWS if one not in (3, 10)]
    table = lt.open_table(uri)
    assert table.version == 3
    assert values(uri) == left
    assert (
        table.maintenance.check(level="data", all_versions=False).problems[0].kind == "fragment ids"
    )
    with pytest.raises(UnsupportedError, match=r"share the id 1.*repair_table"):
        table.append(pa.table({"a": [7]}, table.schema))
    with pytest.raises(UnsupportedError, match="share the id 1"):
        table.branches.create("b")
    table.maintenance.cleanup(older_than=timedelta(0))
    assert values(uri) == left
    table.maintenance.repair().execute()
    assert values(uri) == left
    assert lt.open_table(uri).maintenance.check(level="data", all_versions=False).is_ok


def test_a_delete_writes_a_deletion_file_of_the_new_name(uri):
    with_deletions(uri)
    lt.open_table(uri).delete("a in (4, 20)")
    assert values(uri) == [1, 2, 100, 101]
    assert len(set(stored_ids(uri))) == len(stored_ids(uri))
    assert lt.open_table(uri).maintenance.check(level="data", all_versions=False).is_ok


def test_a_change_of_another_writer_in_between_starts_the_work_anew(uri):
    """An append of an old release keeps the shared ids, and takes the next id for its own rows."""
    stale = lt.open_table(uri)
    other = lt.open_table(uri)
    other.append(pa.table({"a": [7]}, other.schema))

    def change(message):
        for one, id_ in zip(message.fragments, (0, 1, 1, 1, 2), strict=True):
            one.id = id_
        message.max_fragment_id = 2

    edit_manifest(uri, change)
    stale.delete("a = 10")
    assert values(uri) == sorted(one for one in (*ROWS, 7) if one != 10)


def test_a_prepared_change_is_refused_after_another_writer(uri):
    from lancetable.commit.committer import commit
    from lancetable.commit.transaction import Delete

    stale = lt.open_table(uri)._snapshot
    doomed = stale.manifest.fragments[2]
    other = lt.open_table(uri)
    other.append(pa.table({"a": [7]}, other.schema))

    def change(message):
        for one, id_ in zip(message.fragments, (0, 1, 1, 1, 2), strict=True):
            one.id = id_

    edit_manifest(uri, change)
    with pytest.raises(ConflictError, match="share ids"):
        commit(stale, Delete((), (doomed.id,)))


def test_changes_are_told_or_refused(uri):
    table = lt.open_table(uri)
    table.delete("a = 10")
    told = table.changes(1).to_arrow()
    kinds = told.select(["a", "_change_type", "_commit_version"]).to_pylist()
    assert {"a": 10, "_change_type": "delete", "_commit_version": 4} in kinds
    assert len(kinds) == 8
    table.restore(3)
    table.append(pa.table({"a": [7]}, table.schema))

    def change(message):
        for one, id_ in zip(message.fragments, (0, 1, 1, 1, 2), strict=True):
            one.id = id_

    edit_manifest(uri, change)
    with pytest.raises(UnsupportedError, match="share ids"):
        lt.open_table(uri).changes(5).to_arrow()


def test_a_too_low_largest_id_with_fragments_out_of_order_makes_no_second_one(tmp_path):
    uri = str(tmp_path / "t")
    table = lt.create_table(uri, pa.table({"a": [0]}))
    for number in range(1, 4):
        table.append(pa.table({"a": [number]}))

    def change(message):
        reorder_fragments(message, [3, 0, 1, 2])
        message.writer_version.library, message.writer_version.version = "lance", "0.20.0"
        message.max_fragment_id = 1

    edit_manifest(uri, change)
    lt.open_table(uri).append(pa.table({"a": [4]}))
    assert stored_ids(uri) == [0, 1, 2, 3, 4]
    assert values(uri) == [0, 1, 2, 3, 4]


def test_indices_forget_fragments_that_share_an_id(uri):
    from lancetable.commit.committer import commit
    from lancetable.commit.transaction import CreateIndex
    from lancetable.format.manifest import IndexSegment
    from lancetable.format.manifest.roaring import encode_bitmap

    named = IndexSegment("0" * 8 + "-0000-0000-0000-" + "0" * 12, "i", (0,), 2, encode_bitmap([0]))
    shared = named._replace(uuid="1" + named.uuid[1:], fragment_bitmap=encode_bitmap([0, 1]))
    commit(lt.open_table(uri)._snapshot, CreateIndex((named, shared)))

    def change(message):
        for one, id_ in zip(message.fragments, (0, 1, 1, 1), strict=True):
            one.id = id_
        message.max_fragment_id = 1

    edit_manifest(uri, change)
    table = lt.open_table(uri)
    assert [one.fragment_ids for one in table._snapshot.indices()] == [frozenset({0})] * 2
    table.append(pa.table({"a": [7]}, table.schema))
    assert stored_ids(uri) == [0, 1, 2, 3, 4]
    found = lt.open_table(uri)._snapshot.indices()
    assert [one.fragment_ids for one in found] == [frozenset({0})] * 2
