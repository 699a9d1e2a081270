"""Rows with blobs, documents, dictionaries and maps move and change like any others."""

import json

import lance
import lance.blob
import pyarrow as pa
import pytest

import lancetable

pytestmark = pytest.mark.oracle

PAYLOADS = [None if n == 3 else b"x" * n * 30_000 for n in range(6)]


def blob_table(version):
    if version == "2.2":
        return pa.table(
            {"id": range(6), "blob": lance.blob.blob_array(PAYLOADS)},
            schema=pa.schema([("id", pa.int64()), lance.blob.blob_field("blob")]),
        )
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([("id", pa.int64()), field])
    return pa.table({"id": range(6), "blob": PAYLOADS}, schema=schema)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_blobs_move_with_their_rows(tmp_path, version):
    uri = str(tmp_path / "t")
    lance.write_dataset(blob_table(version), uri, data_storage_version=version, max_rows_per_file=4)
    table = lancetable.open_table(uri)
    table.update({"id": "id + 100"}, "id >= 2")
    table.merge({"id": [1]}, on="id").when_matched_update({"id": "id + 7"}).execute()
    source = pa.table({"id": [0, 50], "blob": pa.array([b"new", b"ins"], pa.large_binary())})
    upsert = table.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all()
    upsert.execute()
    dataset = lance.dataset(uri)
    dataset.validate()
    wanted = {0: b"new", 8: PAYLOADS[1], 50: b"ins"}
    wanted |= {n + 100: PAYLOADS[n] for n in range(2, 6)}
    ours = table.scan(blobs="bytes").to_arrow().to_pylist()
    theirs = dataset.scanner(blob_handling="all_binary").to_table().to_pylist()
    assert {row["id"]: row["blob"] for row in ours} == wanted
    assert {row["id"]: row["blob"] for row in theirs} == wanted


def test_documents_dictionaries_and_maps(tmp_path):
    uri = str(tmp_path / "t")
    maps = pa.map_(pa.string(), pa.int64())
    data = pa.table(
        {
            "id": range(4),
            "j": pa.array([json.dumps({"a": n}) for n in range(4)], pa.json_()),
            "d": pa.array(["x", "y", "x", None]).dictionary_encode(),
            "m": pa.array([[("k", n)] for n in range(4)], maps),
        }
    )
    lance.write_dataset(data, uri, data_storage_version="2.2")
    table = lancetable.open_table(uri)
    table.update({"id": "id + 100"}, "id >= 2")
    table.update({"d": "'zz'", "j": "'[1]'"}, "id = 1")
    table.update({"d": "'ww'"}, "id = 0", mode="columns")
    documents = pa.table({"id": [0], "j": pa.array(['{"b":1}'], pa.json_())})
    table.merge(documents, on="id").when_matched_update_all().execute()
    by_text = pa.table({"d": ["zz"], "m": pa.array([[("q", 5)]], maps)})
    table.merge(by_text, on="d").when_matched_update_all().execute()
    dataset = lance.dataset(uri)
    dataset.validate()
    rows = dataset.to_table().to_pylist()
    assert table.scan().to_arrow().to_pylist() == rows
    assert {row["id"]: (row["j"], row["d"], row["m"]) for row in rows} == {
        0: ('{"b":1}', "ww", [("k", 0)]),
        1: ("[1]", "zz", [("q", 5)]),
        102: ('{"a":2}', "x", [("k", 2)]),
        103: ('{"a":3}', None, [("k", 3)]),
    }
