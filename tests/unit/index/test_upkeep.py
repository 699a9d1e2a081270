"""Cleanup, check and repair know the files of indices."""

import os
import shutil
import time
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.committer import commit
from lancetable.commit.transaction import CreateIndex
from lancetable.index.files import SegmentFiles
from tests.unit.index.test_geometry import point

NOW = {"older_than": timedelta(0), "unverified_after": timedelta(0)}


@pytest.fixture
def table(tmp_path):
    data = {"id": range(60), "tag": [f"t{i % 4}" for i in range(60)]}
    made = lt.create_table(tmp_path / "t", pa.table(data), max_rows_per_file=20)
    made.indices.create("id", "btree")
    made.indices.create("tag", "bitmap")
    return made


def folders(table):
    return {one.parent.name for one in (table_path(table) / "_indices").glob("*/*")}


def table_path(table):
    return Path(table.uri)


def named(table):
    return {one.uuid for one in table._snapshot.indices()}


def test_files_of_replaced_segments_go_with_their_versions(table):
    old = named(table)
    table.indices.optimize(mode="rebuild")
    assert folders(table) == old | named(table)
    done = table.maintenance.cleanup(older_than=timedelta(0))
    assert folders(table) == named(table)
    assert done.removed["index"].files == 3


@pytest.mark.parametrize("keeper", ["tag", "branch", "clone", "keep_last"])
def test_files_stay_while_a_version_needs_them(table, keeper, tmp_path):
    old = named(table)
    version = table.version
    options: dict[str, Any] = {}
    match keeper:
        case "tag":
            table.tags.create("kept", version)
        case "branch":
            table.branches.create("side")
        case "clone":
            options["clones"] = [table.clone(tmp_path / "clone").uri]
        case _:
            options["keep_last"] = 10
    table.indices.optimize(mode="rebuild")
    table.maintenance.cleanup(**{**NOW, **options})
    assert old <= folders(table)
    where = "id = 33"
    match keeper:
        case "tag":
            seen = lt.open_table(table.uri, tag="kept")
        case "branch":
            seen = lt.open_table(table.uri, branch="side")
        case "clone":
            seen = lt.open_table(options["clones"][0])
        case _:
            seen = lt.open_table(table.uri, version=version)
    assert "index id_idx" in seen.scan(where=where).explain()
    assert seen.scan(where=where).to_arrow()["id"].to_pylist() == [33]


def test_files_of_a_killed_build_go_when_they_are_old(table):
    lost = table_path(table) / "_indices" / "11111111-2222-3333-4444-555555555555"
    lost.mkdir()
    (lost / "page_data.lance").write_bytes(b"half")
    assert "index" not in table.maintenance.cleanup().removed
    assert lost.exists()
    before = time.time() - 8 * 24 * 3600
    os.utime(lost / "page_data.lance", (before, before))
    assert table.maintenance.cleanup().removed["index"].files == 1
    assert folders(table) == named(table)


@pytest.mark.parametrize("damage", ["missing", "cut", "other size"])
def test_damage_is_found_and_dropped(table, damage):
    (segment,) = (one for one in table._snapshot.indices() if one.name == "id_idx")
    folder = table_path(table) / "_indices" / segment.uuid
    file = folder / "page_lookup.lance"
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    else:
        file.write_bytes(file.read_bytes() + b"LANC")
    found = table.maintenance.check()
    assert [(one.kind, one.path.endswith("page_lookup.lance")) for one in found.problems] == [
        ("index", True)
    ]
    scan = table.scan(where="id = 33")
    assert scan.to_arrow()["id"].to_pylist() == [33]
    assert "not used: id_idx, " in scan.explain()
    plan = table.maintenance.repair()
    assert [one.kind for one in plan.losses] == ["index"]
    plan.execute()
    assert list(table.refresh().indices) == ["tag_idx"]
    assert table.maintenance.check(all_versions=False).is_ok
    assert table.count() == 60


def test_an_optimization_builds_damaged_segments_again(table, caplog):
    table.append(pa.table({"id": [100], "tag": ["t9"]}))
    for segment in table._snapshot.indices():
        shutil.rmtree(table_path(table) / "_indices" / segment.uuid)
    done = table.indices.optimize(mode="merge")
    assert done.segments_added == 2
    assert "built from data" in caplog.text
    assert table.maintenance.check(all_versions=False).is_ok
    assert "index id_idx" in table.scan(where="id = 100").explain()
    assert table.count("tag = 't1'") == 15


KINDS: dict[str, Any] = {
    "a": "btree",
    "b": "bitmap",
    "z": lt.ZoneMap(rows_per_zone=16),
    "f": lt.BloomFilter(items=16),
    "l": "label_list",
    "w": "ngram",
    "g": lt.RTree(page_size=8),
}


def every_kind(path, *, stable):
    """Return a table with an index of each kind, whose rows moved."""
    n = 200
    data = {
        "id": range(n),
        "a": [None if i % 11 == 0 else i * 0.5 if i % 5 else float("nan") for i in range(n)],
        "b": [None if i % 13 == 0 else i % 3 for i in range(n)],
        "z": pa.array([None if i % 17 == 0 else i for i in range(n)], pa.int64()),
        "f": [f"f{i % 50}" for i in range(n)],
        "l": [None if i % 7 == 0 else [f"x{i % 5}", None] for i in range(n)],
        "w": [f"word {i}" for i in range(n)],
        "g": [point(i % 9, i % 11) for i in range(n)],
    }
    made = lt.create_table(path, pa.table(data), max_rows_per_file=40, stable_row_ids=stable)
    for column, kind in KINDS.items():
        made.indices.create(column, kind)
    made.delete("id in (3, 60, 61)")
    made.update({"a": "7.25", "b": "1", "f": "'f1'"}, "id < 20")
    made.compact(deleted_share=0, where="id < 100")
    made.indices.optimize(mode="append")
    return made


@pytest.mark.parametrize("level", ["data", "indices"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_segments_are_compared_with_the_rows(tmp_path, level, stable):
    table = every_kind(tmp_path / "t", stable=stable)
    assert table.maintenance.check(level=level).is_ok
    other = every_kind(tmp_path / "other", stable=stable)
    other.update({"a": "a + 1", "b": "b + 1", "z": "z + 1000", "f": "'other'"}, mode="columns")
    other.update({"l": "['y']", "w": "'none'", "g": "null"}, mode="columns")
    other.indices.optimize(mode="rebuild")
    ours, theirs = table._snapshot, other._snapshot
    lies = {one.name: one for one in theirs.indices()}
    changed = []
    for one in ours.indices():
        if one.name in lies and one.files:
            lie, uuid = lies[one.name], str(uuid4())
            folders = (tmp_path / "other" / "_indices", tmp_path / "t" / "_indices")
            shutil.copytree(folders[0] / lie.uuid, folders[1] / uuid)
            changed.append((one, one._replace(uuid=uuid, files=lie.files, details=lie.details)))
    old, new = zip(*changed, strict=True)
    commit(ours, CreateIndex(new, old))
    table.refresh()
    problems = table.maintenance.check(level=level, all_versions=False).problems
    found = {one.message.split("'")[1] for one in problems if one.kind == "index rows"}
    geometries = {"g_idx"} if find_spec("shapely") else set()
    assert found >= {"a_idx", "b_idx", "z_idx", "f_idx", "l_idx", "w_idx"} | geometries
    table.maintenance.repair(level).execute()
    table.refresh()
    assert table.maintenance.check(level=level, all_versions=False).is_ok
    assert not {"a_idx", "w_idx"} & set(table.indices)


def test_an_index_is_read_ahead(tmp_path, monkeypatch):
    table = every_kind(tmp_path / "t", stable=False)
    table.indices.create("id", "btree")
    where = {
        "a": "a = 7.25",
        "b": "b = 1",
        "f": "f = 'f1'",
        "l": "array_has(l, 'x1')",
        "w": "contains(w, 'word 12')",
        "z": "z = 33",
        "id": "id in (1, 7, 190)",
    }
    for name in table.indices:
        if not name.startswith("__"):
            table.indices.prewarm(name)
    read = []
    real = SegmentFiles.read

    def counted(self, name, *args):
        read.append(name)
        return real(self, name, *args)

    monkeypatch.setattr(SegmentFiles, "read", counted)
    for text in where.values():
        scan = table.scan(["id"], where=text)
        assert "index " in scan.explain()
        assert scan.to_arrow() == table.scan(["id"], where=text, use_indices=False).to_arrow()
    assert not read
    with pytest.raises(lt.IndexNotFoundError):
        table.indices.prewarm("nothing")


def test_segments_of_a_clone_are_read_where_that_is_allowed(table, tmp_path):
    clone = table.clone(tmp_path / "clone")
    assert clone.inspect.indices()["base"].to_pylist() == [table.uri] * 2
    assert "index id_idx" in clone.scan(where="id = 33").explain()
    clone.delete("id in (1, 21, 41)")
    clone.compact(deleted_share=0, copy_pages=False)
    assert {one.files[0].base_id for one in clone.fragments} == {None}
    confined = lt.open_table(clone.uri, storage_options={"confine": "root"})
    scan = confined.scan(["id"], where="id = 33")
    assert scan.to_arrow()["id"].to_pylist() == [33]
    assert "not used: id_idx, " in scan.explain()
    (kind,) = {one.kind for one in confined.maintenance.check(all_versions=False).problems}
    assert kind == "index"
    again = lt.open_table(clone.uri)
    assert "index id_idx" in again.scan(where="id = 33").explain()
    assert again.maintenance.check(level="indices", all_versions=False).is_ok


def test_coverage_is_part_of_a_check(table):
    table.append(pa.table({"id": range(100, 140), "tag": ["t"] * 40}))
    assert table.maintenance.check().coverage == {"id_idx": 0.6, "tag_idx": 0.6}
    table.compact(deleted_share=0)
    assert table.maintenance.check().coverage == {"id_idx": 0.6, "tag_idx": 0.6}
