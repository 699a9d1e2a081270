"""Files at the edges of the format, written by us, are read equal by pylance."""

import json
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance.fragment import FragmentMetadata

from lancetable.commit.versions import load
from lancetable.file.model import V2_0, V2_1, V2_2, FileVersion
from lancetable.file.read.payloads import sidecar_path
from lancetable.file.write.blobs import second_generation
from lancetable.file.write.writer import FileWriteOptions, FileWriter, WrittenFile
from lancetable.format.schema.types import schema_from_arrow
from lancetable.store import LocalStore, TableLocation
from tests.same import assert_same_table

pytestmark = pytest.mark.oracle

VERSIONS = [V2_0, V2_1, V2_2]
FSST = {"lance-encoding:compression": "fsst"}


def write(
    table: pa.Table, version: FileVersion, folder: Path, options: FileWriteOptions | None = None
) -> WrittenFile:
    """Write a table as the file ``x.lance`` of a folder."""
    store = LocalStore(str(folder))
    schema = second_generation(table.schema) if version == V2_2 else table.schema
    writer = FileWriter(
        store.create("x.lance"),
        schema_from_arrow(schema),
        version,
        options,
        sidecars=lambda blob_id: store.create(sidecar_path("x.lance", blob_id)),
    )
    for batch in table.to_batches(max_chunksize=300_000):
        writer.write(batch)
    return writer.finish()


def sparse_lists(rows: int, every: int) -> pa.Array:
    lengths = np.zeros(rows, np.int64)
    lengths[::every] = 3
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(np.arange(int(lengths.sum())) * 77))


def texts(rows: int, repeat: int = 1) -> list[str | None]:
    made = (f"https://example.com/{row * 7919 % 1000}/item?id={row}" for row in range(rows))
    return [None if row % 11 == 5 else text * (1 + row % repeat) for row, text in enumerate(made)]


def fsst_table() -> pa.Table:
    schema = pa.schema(
        [
            pa.field("narrow", pa.string(), metadata=FSST),
            pa.field("wide", pa.large_string(), metadata=FSST),
            pa.field("bytes", pa.binary(), metadata=FSST),
            pa.field("list", pa.list_(pa.field("item", pa.string(), metadata=FSST))),
        ]
    )
    narrow, wide = texts(20_000), texts(20_000, repeat=9)
    coded = [None if text is None else text.encode() for text in narrow]
    lists = [[text] * (row % 3) for row, text in enumerate(narrow)]
    return pa.table([narrow, wide, coded, lists], schema=schema)


CASES = {
    "sparse lists": lambda: pa.table({"l": sparse_lists(400_000, 1000)}),
    "one crowded row": lambda: pa.table(
        {"l": pa.array([[[3]], [[]] * 140_000 + [[1, 2]], None], pa.list_(pa.list_(pa.int32())))}
    ),
    "growing dictionary": lambda: pa.table(
        {
            "d": pa.chunked_array(
                [
                    pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), ["a", "b"]),
                    pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), ["c", "a"]),
                ]
            )
        }
    ),
    "unused dictionary items": lambda: pa.table(
        {
            "d": pa.DictionaryArray.from_arrays(
                pa.array([70, None, 3], pa.int32()), [str(number) for number in range(100)]
            )
        }
    ),
    "thousand columns": lambda: pa.table({f"c{n}": pa.array([n, None]) for n in range(1000)}),
    "no rows": lambda: pa.table({"a": pa.array([1], pa.int8()), "l": [["x"]]}).slice(1),
    "long strings": lambda: pa.table({"s": ["x" * 100_000, None, "", "y" * 40_000] * 5}),
    "vectors": lambda: pa.table(
        {"v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(768_000, dtype="f4")), 768)}
    ).slice(7, 900),
    "fsst": fsst_table,
}


def null_structs(rows: int, every: int) -> pa.Array:
    """Return structs that are mostly null, with children that never are."""
    text = pa.StructArray.from_arrays(
        [pa.array(["same"] * rows), pa.array(range(rows))],
        fields=[pa.field("s", pa.string(), nullable=False), pa.field("n", pa.int64())],
    )
    packed = pa.field("p", text.type, metadata={"lance-encoding:packed": "true"})
    fields = [pa.field("t", text.type, nullable=False), packed]
    mask = pa.array([row % every != 0 for row in range(rows)])
    return pa.StructArray.from_arrays([text, text], fields=fields, mask=mask)


@pytest.mark.parametrize("every", [3, 1000, 1 << 30])
@pytest.mark.parametrize("lead", [0, 1])
def test_what_is_inside_null_structs_is_null(every: int, lead: int, tmp_path: Path) -> None:
    structs = null_structs(5000, every).slice(lead)
    lists = pa.array([None if row % 7 else [] for row in range(len(structs))], pa.list_(pa.int8()))
    inner = pa.struct([pa.field("l", pa.list_(pa.int8()), nullable=False)])
    empty = pa.array([[]] * len(structs), pa.list_(inner))
    table = pa.table({"s": structs, "l": lists, "e": empty})
    write(table, V2_2, tmp_path)
    found = LanceFileReader(str(tmp_path / "x.lance")).read_all().to_table()
    assert_same_table(found, table)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("page_bytes", [1 << 23, 1 << 18])
def test_edges_are_read_equal(
    version: FileVersion, name: str, page_bytes: int, tmp_path: Path
) -> None:
    table = CASES[name]()
    write(table, version, tmp_path, FileWriteOptions(page_bytes=page_bytes))
    reader = LanceFileReader(str(tmp_path / "x.lance"))
    assert_same_table(reader.read_all().to_table(), table)
    if table.num_rows:
        rows = sorted({0, table.num_rows // 2, table.num_rows - 1})
        assert_same_table(reader.take_rows(rows).to_table(), table.take(rows))


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_structs_in_many_pages_are_scanned_as_a_table(version: FileVersion, tmp_path: Path) -> None:
    rows = [{"a": row, "b": [{"c": str(row)}] * (row % 3)} for row in range(5000)]
    table = pa.table({"s": pa.array(rows)})
    found = committed(table, version, tmp_path, FileWriteOptions(page_bytes=1 << 12))
    assert_same_table(found.to_table(), table)


def committed(
    table: pa.Table, version: FileVersion, folder: Path, options: FileWriteOptions | None = None
) -> Any:
    """Make pylance commit our file in place of its own and open the table."""
    uri = str(folder / "t.lance")
    theirs = lance.write_dataset(table, uri, data_storage_version=str(version))
    data = folder / "t.lance" / "data"
    written = write(table, version, folder, options)
    shutil.move(folder / "x.lance", data / "x.lance")
    if (folder / "x").exists():
        shutil.move(folder / "x", data / "x")
    metadata = theirs.get_fragments()[0].metadata.to_json()
    metadata["files"][0].update(
        path="x.lance",
        fields=list(written.fields),
        column_indices=list(written.column_indices),
        file_size_bytes=written.size,
    )
    fragment = FragmentMetadata.from_json(json.dumps(metadata))
    replaced = lance.LanceOperation.Overwrite(theirs.schema, [fragment])
    found = lance.LanceDataset.commit(uri, replaced, read_version=theirs.version)
    found.validate()
    return found


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_blobs_are_read_by_pylance(version: FileVersion, tmp_path: Path) -> None:
    blob = {"lance-encoding:blob": "true"}
    inner = pa.struct([pa.field("d", pa.large_binary(), metadata=blob), ("k", pa.int8())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            pa.field("b", pa.large_binary(), metadata=blob),
            pa.field("s", inner),
        ]
    )
    payloads = [b"abc", None, b"", bytes(70_000), b"z" * 5_000_000, None, b"q" * 11]
    structs = [{"d": payload, "k": 1} for payload in payloads]
    table = pa.table([range(7), payloads, structs], schema=schema)
    found = committed(table, version, tmp_path, FileWriteOptions(page_bytes=64))
    for column in ("b", "s.d"):
        files = found.take_blobs(column, indices=list(range(7)))
        assert [None if file is None else file.readall() for file in files] == payloads
    # A missing blob of 2.0 is a descriptor like any other.
    missing = found.to_table(columns=["b"]).column("b").null_count
    assert missing == (0 if version == V2_0 else 2)


def test_the_schema_with_blobs_is_that_of_pylance(tmp_path: Path) -> None:
    metadata = {"lance-encoding:blob": "true", "lance-encoding:blob-inline-size-threshold": "10"}
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata=metadata)])
    table = pa.table([[b"abc", None]], schema=schema)
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri, data_storage_version="2.2")
    mine = schema_from_arrow(second_generation(schema))
    assert load(TableLocation(uri)).manifest.schema.fields == mine.fields
