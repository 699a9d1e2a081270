"""Lists of fixed size of structs, and values without bytes: each side reads the other's."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import SchemaError, UnsupportedError

pytestmark = pytest.mark.oracle


def fixed(values: pa.Array, size: int, nulls: list[bool] | None = None) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(values, size, mask=nulls and pa.array(nulls))


PLAIN = pa.StructArray.from_arrays(
    [pa.array(range(8)), pa.array(range(8), pa.float32())], ["a", "b"]
)
TEXT = pa.StructArray.from_arrays(
    [pa.array([1, 2, None, 4, 5, 6, 7, 8]), pa.array([*"abcdefg", None])],
    ["a", "b"],
    mask=pa.array([False, True] + [False] * 6),
)
SHAPES = {
    "plain": fixed(PLAIN, 2),
    "null_lists": fixed(PLAIN, 2, [False, True, False, False]),
    "null_items": fixed(TEXT, 2),
    "nulls_everywhere": fixed(TEXT, 2, [False, False, True, False]),
    "in_struct": pa.StructArray.from_arrays(
        [fixed(TEXT, 2)], ["s"], mask=pa.array([False, True, False, False])
    ),
    "of_vectors": fixed(pa.StructArray.from_arrays([fixed(pa.array(range(16)), 2)], ["v"]), 2),
    "of_structs": fixed(pa.StructArray.from_arrays([PLAIN], ["v"]), 4),
    "twice": fixed(pa.StructArray.from_arrays([fixed(PLAIN, 2)], ["v"]), 2),
    "without_bytes": pa.array([b"", None, b""], pa.binary(0)),
    "lists_without_bytes": pa.array([[b""], [], None, [None, b""]], pa.list_(pa.binary(0))),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_both_read_both(shape: str, tmp_path: Path) -> None:
    data = pa.table({"c": SHAPES[shape]})
    ours = lt.create_table(tmp_path / "ours", data)
    lance.write_dataset(data, tmp_path / "theirs", data_storage_version="2.2")
    lt.open_table(tmp_path / "theirs").append(data)
    ours.append(data)
    ours.compact()
    twice = data["c"].to_pylist() * 2
    for name in ("ours", "theirs"):
        assert lance.dataset(tmp_path / name).to_table()["c"].to_pylist() == twice
        table = lt.open_table(tmp_path / name)
        assert table.scan().to_arrow()["c"].to_pylist() == twice
        last = len(twice) - 1
        assert table.take([last, 0])["c"].to_pylist() == [twice[last], twice[0]]


def test_many_lists_of_structs_beside_another_column(tmp_path: Path) -> None:
    count = 30_000
    items = pa.StructArray.from_arrays(
        [pa.array(range(3 * count)), pa.array([f"text {n % 777}" for n in range(3 * count)])],
        ["a", "b"],
    )
    data = pa.table({"id": range(count), "c": fixed(items, 3)})
    table = lt.create_table(tmp_path / "t", data)
    assert table.scan().to_arrow().equals(data)
    assert table.scan(where="id = 29999").to_arrow()["c"].to_pylist() == data["c"][-1:].to_pylist()
    # pylance reads columns of such lists only by themselves.
    assert lance.dataset(tmp_path / "t").to_table(["c"])["c"].to_pylist() == data["c"].to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("shape", ["plain", "without_bytes"])
def test_older_files_have_no_place_for_them(shape: str, version: str, tmp_path: Path) -> None:
    data = pa.table({"c": SHAPES[shape]})
    with pytest.raises(SchemaError, match=f"needs data files of version 2.2.*{version}"):
        lt.create_table(tmp_path / "t", data, storage_version=version)
    assert lt.create_table(tmp_path / "t", data).fragments[0].files[0].minor == 2


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_values_without_bytes_of_older_files_are_read(version: str, tmp_path: Path) -> None:
    """pylance writes such files and cannot read them."""
    for name in ("without_bytes", "lists_without_bytes"):
        data = pa.table({"c": SHAPES[name]})
        lance.write_dataset(data, tmp_path / name, data_storage_version=version)
        table = lt.open_table(tmp_path / name)
        assert table.scan().to_arrow()["c"].to_pylist() == data["c"].to_pylist()
        assert table.take([2, 1])["c"].to_pylist() == data["c"].take([2, 1]).to_pylist()


def test_lists_of_structs_of_2_0_are_read_and_never_null(tmp_path: Path) -> None:
    """pylance writes such files, of which the manifest names no column of the structs."""
    for name in ("plain", "null_lists", "of_vectors"):
        data = pa.table({"c": SHAPES[name]})
        lance.write_dataset(data, tmp_path / name, data_storage_version="2.0")
        found = lt.open_table(tmp_path / name).scan().to_arrow()
        assert found["c"].to_pylist() == data["c"].to_pylist()
    data = pa.table({"c": SHAPES["of_structs"]})
    lance.write_dataset(data, tmp_path / "deep", data_storage_version="2.0")
    with pytest.raises(UnsupportedError, match="packed struct"):
        lt.open_table(tmp_path / "deep").scan().to_arrow()


def test_a_slice_of_lists_of_structs(tmp_path: Path) -> None:
    part = pa.table({"c": SHAPES["nulls_everywhere"].slice(1, 2)})
    lt.create_table(tmp_path / "t", part)
    assert lance.dataset(tmp_path / "t").to_table()["c"].to_pylist() == part["c"].to_pylist()


LISTS = pa.StructArray.from_arrays([pa.array([[1], [], None, [2, 3]])], ["l"])


@pytest.mark.parametrize(
    "column",
    [
        fixed(LISTS, 2),
        pa.ListArray.from_arrays([0, 1, 4], fixed(TEXT, 2)),
        fixed(fixed(PLAIN, 2), 2),
    ],
    ids=["around lists", "inside lists", "of lists of fixed size"],
)
def test_what_no_reader_could_read_is_refused(column: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"use a list of structs|cannot store"):
        lt.create_table(tmp_path / "t", pa.table({"c": column}), storage_version="2.2")


def test_lists_inside_lists_of_fixed_size_are_not_called_corrupt(tmp_path: Path) -> None:
    data = pa.table({"c": fixed(LISTS, 2)})
    lance.write_dataset(data, tmp_path / "t", data_storage_version="2.2")
    with pytest.raises(UnsupportedError, match="inside lists of fixed size"):
        lt.open_table(tmp_path / "t").scan().to_arrow()
