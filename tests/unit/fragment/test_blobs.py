"""Blob columns as files and as bytes."""

import io
import json

import pytest

from lancetable import open_table
from lancetable.errors import InputError, SchemaError
from lancetable.file.read.payloads import sidecar_path
from lancetable.fragment.blobs import BlobFile
from lancetable.store import MemoryFile

V1_AND_INLINE = ("blob_v1_2_0", "blob_v1_2_1", "blob_v2_from_v1_input")


@pytest.fixture
def blob():
    return BlobFile(MemoryFile(b"before-payload-after"), 7, 7)


def test_side_files_are_named_by_the_reversed_id():
    assert sidecar_path("data/abc.lance", 1) == f"data/abc/1{'0' * 31}.blob"
    assert sidecar_path("data/abc.lance", 2) == f"data/abc/01{'0' * 30}.blob"


def test_a_blob_reads_like_a_file(blob):
    assert blob.size() == 7
    assert blob.read(3) == b"pay"
    assert blob.tell() == 3
    assert blob.read() == b"load"
    assert blob.read() == b""
    assert blob.seek(-2, io.SEEK_END) == 5
    assert blob.readall() == b"ad"
    assert io.BufferedReader(blob).seekable()


def test_reading_into_a_buffer(blob):
    buffer = bytearray(5)
    blob.seek(4)

    assert blob.readinto(buffer) == 3
    assert bytes(buffer) == b"oad\0\0"


def test_a_position_before_the_start_is_refused(blob):
    with pytest.raises(InputError):
        blob.seek(-1)


def test_a_closed_blob_is_not_read(blob):
    blob.close()

    assert blob.closed
    with pytest.raises(ValueError, match="closed"):
        blob.read()


@pytest.mark.parametrize("name", V1_AND_INLINE)
def test_payloads_of_every_generation(golden, name):
    expected = json.loads((golden / "memwal" / "expected.json").read_text())[name]
    table = open_table(str(golden / "memwal" / name))

    blobs = table.blobs("b", range(table.count()))

    assert [None if blob is None else blob.size() for blob in blobs] == expected["payload_sizes"]
    read = [None if blob is None else blob.read() for blob in blobs]
    firsts = expected["payload_first_bytes"]
    assert [None if data is None else data[:5].decode() for data in read] == firsts
    assert table.scan(["b"], blobs="bytes").to_arrow()["b"].to_pylist() == read


def test_packed_and_dedicated_side_files(golden):
    table = open_table(str(golden / "memwal" / "blob_v2_small_thresholds"))

    blobs = table.blobs("b", [5, 4, 3, 1])

    read = [None if blob is None else blob.read() for blob in blobs]
    assert read == [b"Q" * 12, b"D" * 40, b"P" * 15, None]


def test_only_blob_columns_have_blobs(golden):
    table = open_table(str(golden / "memwal" / "blob_v1_2_1"))

    with pytest.raises(SchemaError, match="not a blob column"):
        table.blobs("id", [0])


def test_the_schema_says_binary_when_blobs_are_read(golden):
    table = open_table(str(golden / "memwal" / "blob_v1_2_1"))

    assert str(table.scan(["b"], blobs="bytes").schema.field("b").type) == "large_binary"
    assert str(table.scan(["b"]).schema.field("b").type) == "struct<position: uint64, size: uint64>"
