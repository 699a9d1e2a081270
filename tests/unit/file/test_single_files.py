"""Single files without a table: payloads of blobs, global buffers, late metadata."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ExistsError, InputError, SchemaError
from lancetable.file import create_file, open_file

VERSIONS = ("2.0", "2.1", "2.2")
BLOBS = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_buffers_and_metadata_come_back(version: str, tmp_path: Path) -> None:
    path = tmp_path / "one.lance"
    data = pa.table({"id": range(1000), "t": [f"text {n}" for n in range(1000)]})
    with create_file(path, data.schema, version=version) as writer:
        writer.write(data.slice(0, 400))
        first = writer.add_global_buffer(b"first")
        writer.write(data.slice(400).select(["t", "id"]).to_batches()[0])
        second = writer.add_global_buffer(b"")
        third = writer.add_global_buffer(bytes(range(256)) * 100)
        writer.add_schema_metadata("late", "said")
        writer.add_schema_metadata("late", "better")
    assert (first, second, third) == (1, 2, 3)
    assert writer.rows == writer.close() == 1000
    file = open_file(path)
    assert (file.version, file.rows, file.global_buffers) == (version, 1000, 4)
    assert file.schema.metadata == {b"late": b"better"}
    assert file.read().cast(data.schema) == data
    assert file.read_global_buffer(first) == b"first"
    assert file.read_global_buffer(second) == b""
    assert file.read_global_buffer(third) == bytes(range(256)) * 100
    with pytest.raises(InputError, match="no global buffer 4, the last is 3"):
        file.read_global_buffer(4)
    with pytest.raises(InputError, match="closed"):
        writer.add_global_buffer(b"late")


@pytest.mark.parametrize("version", VERSIONS)
def test_payloads_of_blobs_are_read_with_the_rows(version: str, tmp_path: Path) -> None:
    payloads = [b"abc", None, b"", b"x" * 100_000, b"y" * 5_000_000]
    if version != "2.2":
        payloads[2] = b"."
    data = pa.table(
        [pa.array(range(5)), pa.array(payloads, pa.large_binary())],
        schema=pa.schema([pa.field("id", pa.int64()), BLOBS]),
    )
    path = tmp_path / "one.lance"
    with create_file(path, data.schema, version=version) as writer:
        writer.write(_as_written(data, version))
    file = open_file(path)
    found = file.read(blobs="bytes")
    assert found.schema.field("b").type == pa.large_binary()
    assert found["b"].to_pylist() == payloads
    assert file.take([4, 0], ["b"], blobs="bytes")["b"].to_pylist() == [payloads[4], payloads[0]]
    assert pa.types.is_struct(file.read().schema.field("b").type)
    with pytest.raises(InputError, match="'descriptions' or 'bytes'"):
        file.read(blobs="files")  # type: ignore[arg-type]


def _as_written(data: pa.Table, version: str) -> pa.Table:
    """Return blobs as the second generation takes them: a struct of data and uri."""
    if version != "2.2":
        return data
    column = data["b"].combine_chunks()
    parts = pa.StructArray.from_arrays(
        [column, pa.nulls(len(column), pa.string())], ["data", "uri"], mask=column.is_null()
    )
    return pa.table({"id": data["id"], "b": parts})


@pytest.mark.parametrize("name", ["blob_v1_2_0", "blob_v1_2_1", "blob_v2_small_thresholds"])
def test_files_of_golden_tables_give_the_bytes_of_their_tables(name: str, golden: Path) -> None:
    table = lt.open_table(golden / "memwal" / name)
    expected = table.scan(blobs="bytes").to_arrow()
    path = golden / "memwal" / name / "data" / table.fragments[0].files[0].path
    rows = table.fragments[0].physical_rows
    found = open_file(path).read(blobs="bytes")
    assert found.to_pylist() == expected.slice(0, rows).to_pylist()
    assert json.dumps(found.schema.names) == json.dumps(expected.schema.names)


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "one.lance"
    schema = pa.schema({"id": pa.int64()})
    with pytest.raises(SchemaError, match="the file has"), create_file(path, schema) as writer:
        writer.write(pa.table({"other": [1]}))
    assert not path.exists()
    with pytest.raises(SchemaError):
        create_file(path, pa.schema({"m": pa.map_(pa.string(), pa.int32())}), version="2.0")
    with pytest.raises(InputError, match=r"1\.7"):
        create_file(path, schema, version="1.7")
    assert not path.exists()
    create_file(path, schema).close()
    with pytest.raises(ExistsError, match=r"one\.lance"):
        create_file(path, schema)
    assert open_file(path).rows == 0
