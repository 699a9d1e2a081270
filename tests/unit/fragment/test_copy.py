"""Pages that are copied: what can be copied, what cannot, and damaged files."""

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.fragment.write import copy


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "LEAST_PAGE_ROWS", 0)


def rows_of(first: int, count: int = 30) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "s": pa.array([f"text {number}" for number in numbers]),
            "n": pa.array([{"a": number, "b": [number] * (number % 3)} for number in numbers]),
            "d": pa.array([f"k{number % 3}" for number in numbers]).dictionary_encode(),
        }
    )


def make(path: Path, version: str = "2.1", fragments: int = 3, *, stable: bool = False) -> lt.Table:
    table = lt.create_table(path, rows_of(0), storage_version=version, stable_row_ids=stable)
    for number in range(1, fragments):
        table.append(rows_of(30 * number))
    return table


@pytest.mark.parametrize(("version", "copied"), [("2.0", 0), ("2.1", 1), ("2.2", 1)])
def test_versions(tmp_path: Path, version: str, copied: int) -> None:
    table = make(tmp_path / "t", version)
    before = table.scan().to_arrow()
    assert table.compact().fragments_copied == copied
    assert table.scan().to_arrow().equals(before)
    assert table.take([0, 45, 89]).equals(before.take([0, 45, 89]))


def test_row_ids_and_versions_of_copied_rows(tmp_path: Path) -> None:
    table = make(tmp_path / "t", stable=True)
    names = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = table.scan(names).to_arrow()
    assert table.compact().fragments_copied == 1
    assert table.scan(names).to_arrow().equals(before)


@pytest.mark.parametrize(
    ("change", "copied"),
    [
        (lambda table: table.delete("id = 40"), 0),
        (lambda table: table.columns.add({"w": "id + 1"}), 1),
        (lambda table: table.columns.add(pa.field("w", pa.int64())), 0),
        (lambda table: table.columns.drop(["s"]), 1),
        (lambda table: table.columns.drop(["n.a"]), 0),
        (lambda table: table.columns.rename("s", "t"), 1),
        (lambda table: table.columns.rename("n.a", "z"), 1),
        (lambda table: table.columns.reorder(["d", "n", "s", "id"]), 1),
        (lambda table: table.columns.cast("id", pa.int32()), 1),
        (lambda table: table.update({"s": "'x'"}, "id < 45", mode="columns"), 1),
        (lambda table: table.columns.set_nullable("id", nullable=False), 1),
    ],
    ids=["delete", "add", "add nulls", "drop", "drop a part", "rename", "rename a part", "reorder",
         "cast", "update columns", "forbid nulls"],
)  # fmt: skip
def test_changed_tables(tmp_path: Path, change: object, copied: int) -> None:
    table = make(tmp_path / "t")
    change(table)  # type: ignore[operator]
    before = table.scan().to_arrow()
    assert table.compact().fragments_copied == copied
    assert table.scan().to_arrow().equals(before)
    assert lt.open_table(table.uri).compact(copy_pages=False, sort_by=["id"]).rows == len(before)


def test_blobs_are_written_anew(tmp_path: Path) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    data = pa.table(
        [pa.array([b"x" * 100, None, b""], pa.large_binary())], schema=pa.schema([blob])
    )
    table = lt.create_table(tmp_path / "t", data)
    table.append(data)
    assert table.compact().fragments_copied == 0
    found = table.scan(blobs="bytes").to_arrow()["b"].to_pylist()
    assert found == [b"x" * 100, None, b""] * 2


def test_files_are_not_cut(tmp_path: Path) -> None:
    table = make(tmp_path / "t", fragments=7)
    done = table.compact(target_rows=100)
    assert done.fragments_copied == done.fragments_added == 2
    assert [one.physical_rows for one in table.fragments] == [120, 90]


def test_small_pages_are_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "LEAST_PAGE_ROWS", 31)
    assert make(tmp_path / "t").compact().fragments_copied == 0


def test_damaged_files_end_in_one_error_or_in_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    name = make(source).fragments[1].files[0].path
    good = (source / "data" / name).read_bytes()
    chance = random.Random(7)
    outcomes = set()
    for turn in range(150):
        data = bytearray(good)
        if turn % 5 == 0:
            data = data[: chance.randrange(len(data))]
        else:
            # Most of a small file is what stands behind the pages.
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data) // 2, len(data))] ^= 1 << chance.randrange(8)
        path = shutil.copytree(source, tmp_path / str(turn))
        (path / "data" / name).write_bytes(data)
        before = {one.name for one in (path / "data").iterdir()}
        try:
            lt.open_table(path).compact()
        except lt.LanceTableError as error:
            outcomes.add(type(error).__name__)
            assert {one.name for one in (path / "data").iterdir()} == before
        else:
            outcomes.add("done")
        shutil.rmtree(path)
    assert "CorruptError" in outcomes
