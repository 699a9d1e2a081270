"""How columns are marked as blobs and packed structs: both libraries take a spelling the same."""

import lance
import pyarrow as pa
import pytest

import lancetable

pytestmark = pytest.mark.oracle

STRUCT = pa.struct([("x", pa.int32()), ("y", pa.int32())])
PAYLOADS = [b"x" * 10, None, b"y"]
STRUCTS = [{"x": 1, "y": 2}, {"x": 3, "y": 4}]


def blobs(spelling):
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": spelling})
    return pa.table([pa.array(PAYLOADS, pa.large_binary())], schema=pa.schema([field]))


def packed(spelling):
    field = pa.field("a", STRUCT, metadata={"lance-encoding:packed": spelling})
    return pa.table([pa.array(STRUCTS, STRUCT)], schema=pa.schema([field]))


@pytest.mark.parametrize("spelling", ["true", "TRUE", "false", "no", ""])
def test_blobs_that_the_reference_writes(tmp_path, spelling):
    uri = str(tmp_path / "t")
    lance.write_dataset(blobs(spelling), uri, data_storage_version="2.1")
    table = lancetable.open_table(uri)
    assert table.scan().to_arrow().to_pylist() == lance.dataset(uri).to_table().to_pylist()
    found = table.scan(blobs="bytes").to_arrow().column("b").to_pylist()
    assert found == PAYLOADS


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("spelling", ["true", "TRUE", "false"])
def test_blobs_that_we_write(tmp_path, spelling, version):
    uri = str(tmp_path / "t")
    lancetable.create_table(uri, blobs(spelling), storage_version=version)
    dataset = lance.dataset(uri)
    found = dataset.scanner(blob_handling="all_binary").to_table().column("b").to_pylist()
    assert found == PAYLOADS
    dataset.validate()
    is_blob = not pa.types.is_large_binary(dataset.to_table().schema.field("b").type)
    assert is_blob == (spelling != "false")


@pytest.mark.parametrize("spelling", ["true", "TRUE", "True", "false", "maybe"])
def test_packed_structs_that_the_reference_writes(tmp_path, spelling):
    uri = str(tmp_path / "t")
    lance.write_dataset(packed(spelling), uri, data_storage_version="2.1")
    table = lancetable.open_table(uri)
    assert table.scan().to_arrow().to_pylist() == [{"a": value} for value in STRUCTS]
    table.append(pa.table({"a": pa.array(STRUCTS, STRUCT)}))
    assert lance.dataset(uri).to_table().column("a").to_pylist() == STRUCTS * 2


@pytest.mark.parametrize("spelling", ["true", "TRUE", "false"])
def test_packed_structs_that_we_write(tmp_path, spelling):
    uri = str(tmp_path / "t")
    table = lancetable.create_table(uri, packed(spelling), storage_version="2.1")
    assert lance.dataset(uri).to_table().column("a").to_pylist() == STRUCTS
    columns = len(table.fragments[0].files[0].column_indices)
    assert (columns == 1) == (spelling != "false")
