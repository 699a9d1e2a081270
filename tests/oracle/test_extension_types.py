"""bfloat16 of pylance, nested in every way: each side reads what the other wrote."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.arrow import bfloat16_array

import lancetable as lt

pytestmark = pytest.mark.oracle


def shapes() -> dict[str, pa.Array]:
    flat = bfloat16_array([1.5, None, 3.0, -2.25])
    vectors = pa.FixedSizeListArray.from_arrays(bfloat16_array([0.5 * n for n in range(8)]), 2)
    return {
        "flat": flat,
        "vector": vectors,
        "matrix": pa.FixedSizeListArray.from_arrays(
            pa.FixedSizeListArray.from_arrays(bfloat16_array([1.0 * n for n in range(16)]), 2), 2
        ),
        "list": pa.ListArray.from_arrays([0, 1, 1, 3, 4], flat),
        "list_of_vectors": pa.ListArray.from_arrays([0, 1, 1, 3, 4], vectors),
        "struct": pa.StructArray.from_arrays([flat, vectors], ["h", "v"]),
        "list_of_structs": pa.ListArray.from_arrays(
            [0, 1, 1, 3, 4], pa.StructArray.from_arrays([flat], ["h"])
        ),
        "map": pa.MapArray.from_arrays([0, 1, 1, 3, 4], ["a", "b", "c", "d"], flat),
    }


CASES = [
    (shape, version)
    for shape in shapes()
    for version in ("2.0", "2.1", "2.2")
    if shape != "map" or version == "2.2"
]


def shown(table: pa.Table) -> tuple[list[pa.DataType], list[str]]:
    return table.schema.types, [str(row) for row in table.to_pylist()]


@pytest.mark.parametrize(("shape", "version"), CASES)
def test_bfloat16_goes_both_ways(shape: str, version: str, tmp_path: Path) -> None:
    data = pa.table({"c": shapes()[shape]})
    lt.create_table(tmp_path / "ours", data, storage_version=version).append(data)
    lance.write_dataset(data, tmp_path / "theirs", data_storage_version=version)
    lt.open_table(tmp_path / "theirs").append(data)
    expected = shown(pa.concat_tables([data, data]))
    for name in ("ours", "theirs"):
        assert shown(lance.dataset(tmp_path / name).to_table()) == expected
        assert shown(lt.open_table(tmp_path / name).scan().to_arrow()) == expected
