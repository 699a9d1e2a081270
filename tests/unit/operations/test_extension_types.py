"""Extension types of users, nested and without a hash, through every kind of write."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt


class Half(pa.ExtensionType):  # type: ignore[misc]
    """An extension type that has no hash, as that of pylance for bfloat16."""

    def __init__(self) -> None:
        super().__init__(pa.binary(2), "lance.bfloat16")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> "Half":
        del storage_type, serialized
        return cls()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Half)

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Register the type for one test, in place of pylance's when that is imported."""
    with suppress(pa.ArrowKeyError):
        pa.unregister_extension_type("lance.bfloat16")
    pa.register_extension_type(Half())
    yield
    pa.unregister_extension_type("lance.bfloat16")
    pylance = sys.modules.get("lance.arrow")
    if pylance is not None:
        pa.register_extension_type(pylance.BFloat16Type())


def halves(*values: bytes | None) -> pa.Array:
    return pa.ExtensionArray.from_storage(Half(), pa.array(values, pa.binary(2)))


def shapes() -> dict[str, pa.Array]:
    """Return four rows of each shape in which the type may stand."""
    flat = halves(b"ab", None, b"cd", b"ef")
    eight = halves(*(bytes([one, 1]) for one in range(8)))
    vectors = pa.FixedSizeListArray.from_arrays(eight, 2)
    return {
        "flat": flat,
        "vector": vectors,
        "matrix": pa.FixedSizeListArray.from_arrays(
            pa.FixedSizeListArray.from_arrays(halves(*[b"xy"] * 16), 2), 2
        ),
        "list": pa.ListArray.from_arrays([0, 1, 1, 3, 4], flat),
        "large_list": pa.LargeListArray.from_arrays([0, 1, 1, 3, 4], flat),
        "list_of_vectors": pa.ListArray.from_arrays([0, 1, 1, 3, 4], vectors),
        "struct": pa.StructArray.from_arrays([flat, vectors], ["h", "v"]),
        "list_of_structs": pa.ListArray.from_arrays(
            [0, 1, 1, 3, 4], pa.StructArray.from_arrays([flat], ["h"])
        ),
    }


def storage(array: pa.Array | pa.ChunkedArray) -> list[object]:
    return [str(value) for value in array.to_pylist()]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("shape", shapes())
def test_nested_extension_types_come_back(shape: str, version: str, tmp_path: Path) -> None:
    data = pa.table({"id": [0, 1, 2, 3], "c": shapes()[shape]})
    table = lt.create_table(tmp_path / "t", data, storage_version=version)
    assert table.schema.field("c").type == data.schema.field("c").type
    for found in (table.scan().to_arrow(), table.take([0, 1, 2, 3])):
        assert found.schema.types == data.schema.types
        assert storage(found["c"]) == storage(data["c"])
    picked = table.scan(where="id >= 2").to_arrow()
    assert storage(picked["c"]) == storage(data["c"])[2:]
    assert table.count("c IS NULL") == data["c"].null_count


@pytest.mark.parametrize("shape", shapes())
def test_writes_keep_nested_extension_types(shape: str, tmp_path: Path) -> None:
    column = shapes()[shape]
    data = pa.table({"id": [0, 1, 2, 3], "c": column})
    table = lt.create_table(tmp_path / "t", data)
    table.append(pa.table({"c": column, "id": [4, 5, 6, 7]}))
    table.update({"id": "id + 100"}, where="id = 1")
    changes = pa.table({"id": [2, 8], "c": column.slice(0, 2)})
    table.merge(changes, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    table.delete("id = 3")
    table.compact()
    found = table.scan().to_arrow().sort_by("id")
    expected = column.take(pa.array([0, 0, 0, 1, 2, 3, 1, 1]))
    assert found["id"].to_pylist() == [0, 2, 4, 5, 6, 7, 8, 101]
    assert found.schema.field("c").type == column.type
    assert storage(found["c"]) == storage(expected)


def test_a_column_is_added_and_replaced_with_its_extension_type(tmp_path: Path) -> None:
    column = shapes()["vector"]
    table = lt.create_table(tmp_path / "t", pa.table({"id": [0, 1, 2, 3]}))
    table.columns.add(pa.table({"id": [0, 1, 2, 3], "v": column}), on=["id"])
    reversed_ = pa.table({"id": [3, 2, 1, 0], "v": column.take(pa.array([3, 2, 1, 0]))})
    table.columns.replace(reversed_, on=["id"])
    assert storage(table.scan(["v"]).to_arrow()["v"]) == storage(column)
    assert table.schema.field("v").type == column.type
    copied = lt.create_table(tmp_path / "copy", table.scan())
    assert copied.schema.field("v").type == column.type


def test_without_the_registered_type_the_storage_is_given(tmp_path: Path) -> None:
    data = pa.table({"v": shapes()["vector"], "l": shapes()["list"]})
    lt.create_table(tmp_path / "t", data)
    pa.unregister_extension_type("lance.bfloat16")
    try:
        found = lt.open_table(tmp_path / "t").scan().to_arrow()
        assert found.schema.field("v").type == pa.list_(pa.binary(2), 2)
        again = lt.create_table(tmp_path / "u", found)
        assert again.scan().to_arrow() == found
    finally:
        pa.register_extension_type(Half())
    assert lt.open_table(tmp_path / "u").schema.field("v").type == data.schema.field("v").type
