"""Tables whose blobs are in a blob dataset: read by row id, kept true by every write."""

import json
import pickle
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancetable as lt
from lancetable.errors import CorruptError, FileNotFoundInStoreError, UnsupportedError

RELEASES = ("by-0.23.2", "by-0.38.3")
Rows = list[dict[str, Any]]


@pytest.fixture(params=RELEASES)
def case(request: pytest.FixtureRequest, golden: Path, tmp_path: Path) -> tuple[Path, Rows]:
    """Return a copy of a table, and its rows."""
    folder = tmp_path / "table"
    shutil.copytree(golden / "blob_dataset" / request.param, folder)
    expected = json.loads((golden / "blob_dataset" / f"{request.param}.expected.json").read_text())
    for row in expected:
        row["image"] = None if row["image"] is None else bytes.fromhex(row["image"])
    return folder, expected


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def rows_of(table: lt.Table) -> Rows:
    found: Rows = table.scan().to_arrow().sort_by("id").to_pylist()
    return found


def test_scans_and_batches_give_the_blobs(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    assert rows_of(table) == expected
    assert table.scan(["image"]).to_arrow()["image"].to_pylist() == [
        row["image"] for row in expected
    ]
    streamed = pa.Table.from_batches(table.scan(batch_rows=3).to_batches())
    assert streamed.to_pylist() == expected
    assert pickle.loads(pickle.dumps(table)).scan().to_arrow().to_pylist() == expected


def test_predicates_on_and_beside_blobs(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    missing = [row for row in expected if row["image"] is None]
    assert table.scan(where="image IS NULL").to_arrow().to_pylist() == missing
    assert table.count("image IS NOT NULL") == len(expected) - len(missing)
    one = expected[5]
    assert table.scan(where=f"id = {one['id']}").to_arrow().to_pylist() == [one]
    value = pc.field("image") == pa.scalar(one["image"], pa.large_binary())
    assert table.scan(where=value).to_arrow().to_pylist() == [one]
    late = table.scan(["image"], where="id > 8").to_arrow()["image"].to_pylist()
    assert late == [row["image"] for row in expected if row["id"] > 8]


def test_takes_give_the_blobs(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    order = [7, 0, 15, 3, 7]
    assert table.take(order).to_pylist() == [expected[one] for one in order]
    assert table.take([4]).to_pylist() == [expected[4]]
    ids = table.scan(["id"], with_row_id=True, with_row_address=True).to_arrow()
    picked = ids.take(order)
    by_id = table.take(row_ids=picked["_rowid"].to_pylist())
    by_address = table.take(row_addresses=picked["_rowaddr"].to_pylist())
    assert by_id.to_pylist() == by_address.to_pylist() == [expected[one] for one in order]


def test_older_versions_have_their_own_blobs(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    first = lt.open_table(folder, version=1)
    known = {row["id"]: row["image"] for row in expected}
    found = first.scan().to_arrow().to_pylist()
    assert len(found) == 12
    assert all(row["image"] == known[row["id"]] for row in found if row["id"] in known)


def test_deletes_and_other_columns_keep_the_blobs(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    table.delete("id = 8")
    table.config.update({"a": "b"})
    table.tags.create("kept")
    table.columns.add({"more": "id * 2"})
    table.update({"s": "'x'"}, where="id = 9", mode="columns")
    table.columns.rename("image", "picture")
    table.columns.drop(["s"])
    left = [
        {"id": row["id"], "picture": row["image"], "more": row["id"] * 2}
        for row in expected
        if row["id"] != 8
    ]
    assert rows_of(lt.open_table(folder)) == left
    assert lt.open_table(folder).maintenance.check(level="data").is_ok


def test_rows_are_neither_added_nor_moved(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    new = pa.table({"id": [99], "image": pa.array([b"x"], pa.large_binary()), "s": ["new"]})
    before = files_in(folder)
    refused = [
        lambda: table.append(new),
        lambda: table.update({"s": "'x'"}, where="id = 1"),
        lambda: table.merge(new, on="id").when_not_matched_insert_all().execute(),
        table.compact,
    ]
    for write in refused:
        with pytest.raises(UnsupportedError, match=r"'image' in a blob dataset.*create_table"):
            write()
    assert files_in(folder) == before
    assert rows_of(lt.open_table(folder)) == expected


def test_a_new_table_holds_the_rows_and_can_be_written(
    case: tuple[Path, Rows], tmp_path: Path
) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    new = lt.create_table(tmp_path / "new", table.scan(), stable_row_ids=True)
    new.append([{"id": 99, "image": b"x", "s": "new"}])
    assert rows_of(new) == [*expected, {"id": 99, "image": b"x", "s": "new"}]
    assert not new.schema.field("image").metadata
    assert not (tmp_path / "new" / "_blobs").exists()


def test_an_overwrite_lets_the_blob_dataset_go_and_a_restore_brings_it_back(
    case: tuple[Path, Rows],
) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    version = table.version
    table.overwrite([{"id": 1, "image": b"x"}])
    table.append([{"id": 2, "image": b"y"}])
    assert [row["image"] for row in rows_of(table)] == [b"x", b"y"]
    table.restore(version)
    assert rows_of(table) == expected


def test_without_its_blob_columns_a_table_is_like_any_other(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    table.columns.drop(["image"])
    table.append([{"id": 99, "s": "new"}])
    table.compact()
    assert len(rows_of(table)) == len(expected) + 1


@pytest.mark.parametrize("deep", [True, False])
def test_clones_and_branches_have_the_blobs(
    case: tuple[Path, Rows], tmp_path: Path, *, deep: bool
) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    clone = table.clone(tmp_path / "clone", deep=deep)
    assert rows_of(clone) == expected
    again = clone.clone(tmp_path / "again", deep=True)
    table.branches.create("b")
    assert rows_of(lt.open_table(folder, branch="b")) == expected
    shutil.rmtree(folder)
    assert rows_of(again) == expected
    if deep:
        assert rows_of(clone) == expected
        assert clone.maintenance.check(level="data").is_ok
    else:
        with pytest.raises((FileNotFoundInStoreError, CorruptError)):
            rows_of(lt.open_table(tmp_path / "clone"))


def test_cleanup_leaves_the_blob_dataset_alone(case: tuple[Path, Rows]) -> None:
    folder, expected = case
    table = lt.open_table(folder)
    before = sorted((folder / "_blobs").rglob("*"))
    table.maintenance.cleanup(older_than=timedelta(0), unverified_after=timedelta(0))
    assert len(lt.open_table(folder).versions()) == 1
    assert sorted((folder / "_blobs").rglob("*")) == before
    assert rows_of(lt.open_table(folder)) == expected


def test_check_finds_what_is_missing_of_the_blob_dataset(case: tuple[Path, Rows]) -> None:
    folder, _ = case
    table = lt.open_table(folder)
    assert table.maintenance.check(level="data").is_ok
    file = next((folder / "_blobs" / "data").iterdir())
    content = file.read_bytes()
    file.unlink()
    found = table.maintenance.check(level="files", all_versions=False)
    assert [one.kind for one in found.problems] == ["blobs"]
    file.write_bytes(content)
    manifest = next((folder / "_blobs" / "_versions").glob("d*"))
    manifest.unlink()
    found = table.maintenance.check(level="files", all_versions=False)
    assert [one.kind for one in found.problems] == ["blobs"]
    with pytest.raises(FileNotFoundInStoreError, match="_blobs"):
        rows_of(lt.open_table(folder))
    assert lt.open_table(folder).scan(["id"]).to_arrow().num_rows


def test_a_version_that_lacks_rows_is_damaged_not_null(case: tuple[Path, Rows]) -> None:
    folder, _ = case
    blobs = folder / "_blobs" / "_versions"
    detached = next(blobs.glob("d*"))
    first = (blobs / "1.manifest").read_bytes()
    # A manifest of the first twelve rows under the name of the version with all of them.
    version = int(detached.stem[1:])
    from lancetable.format.manifest.codec import decode_manifest, encode_manifest

    short = decode_manifest(first, "here")._replace(version=version)
    detached.write_bytes(
        encode_manifest(short, "here", index_section=None, transaction=None).content
    )
    table = lt.open_table(folder)
    with pytest.raises(CorruptError, match="row with the id 12"):
        rows_of(table)
    problems = table.maintenance.check(level="files", all_versions=False).problems
    assert any(one.kind == "blobs" and "fragment 1" in one.message for one in problems)
