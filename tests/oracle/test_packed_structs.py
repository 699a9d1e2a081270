"""Packed structs whose children were renamed, dropped or asked for one by one."""

import lance
import pyarrow as pa
import pytest

import lancetable as lt

pytestmark = pytest.mark.oracle

PACKED = {"packed": "true", "lance-encoding:packed": "true"}
TYPE = pa.struct([("x", pa.int32()), ("y", pa.int32()), ("z", pa.float64())])
ROWS = [{"x": number, "y": 100 + number, "z": number / 2} for number in range(6)]


def packed_table(path, version):
    schema = pa.schema([pa.field("s", TYPE, metadata=PACKED), pa.field("k", pa.int64())])
    data = pa.table({"s": pa.array(ROWS, TYPE), "k": list(range(6))}, schema)
    return lance.write_dataset(data, path, data_storage_version=version)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_single_children_are_those_that_were_asked_for(tmp_path, version):
    packed_table(tmp_path / "t", version)
    table = lt.open_table(tmp_path / "t")
    for name in ("x", "y", "z"):
        wanted = [row[name] for row in ROWS]
        assert table.scan(columns=[f"s.{name}"]).to_arrow()[f"s.{name}"].to_pylist() == wanted
        taken = table.take([4, 1], columns=[f"s.{name}", "k"])
        assert taken[f"s.{name}"].to_pylist() == [wanted[4], wanted[1]]
    both = table.scan(columns=["s.z", "s.x"]).to_arrow()
    assert both.to_pylist() == [{"s.z": row["z"], "s.x": row["x"]} for row in ROWS]
    assert table.scan(columns=["k"], where="s.y = 103").to_arrow()["k"].to_pylist() == [3]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_children_are_found_by_their_ids(tmp_path, version):
    dataset = packed_table(tmp_path / "t", version)
    for old, new in (("s.x", "q"), ("s.y", "x"), ("s.q", "y")):
        dataset.alter_columns({"path": old, "name": new})
    swapped = [{"y": row["x"], "x": row["y"], "z": row["z"]} for row in ROWS]
    table = lt.open_table(tmp_path / "t")
    check_rows(table, swapped)
    table.append(table.scan().to_arrow())
    check_rows(table, swapped * 2)
    assert table.compact().fragments_removed == 2
    check_rows(table, swapped * 2)
    assert lance.dataset(tmp_path / "t").to_table()["s"].to_pylist() == swapped * 2


def check_rows(table, rows):
    assert table.scan().to_arrow()["s"].to_pylist() == rows
    for name in ("x", "y"):
        found = table.scan(columns=[f"s.{name}"]).to_arrow()[f"s.{name}"].to_pylist()
        assert found == [row[name] for row in rows]
    found = table.scan(columns=["k"], where="s.x = 103").to_arrow()["k"].to_pylist()
    assert found == [3] * (len(rows) // len(ROWS))
