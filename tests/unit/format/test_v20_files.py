"""Whole 2.0 files: every row, ranges and scattered rows against what they were made of."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancetable.errors import CorruptError
from lancetable.file import FileReader
from lancetable.format.encoding.base import Column, Page, PageBuffer
from lancetable.format.encoding.v20.model import Flat, ItemList, NoNulls
from lancetable.format.encoding.v20.read import bytes_key, read_field
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type
from lancetable.store import MemoryFile
from tests.unit.format.serve import serve

GOLDEN = Path(__file__).parents[2] / "golden" / "file"
FILES = sorted(GOLDEN.glob("2.0*/*.lance"))


def expected_of(path: Path) -> pa.Table:
    beside = path.with_suffix(".arrow")
    place = beside if beside.exists() else GOLDEN / "expected" / beside.name
    return pa.ipc.open_file(place).read_all()


def storage(column: pa.ChunkedArray) -> list[object]:
    chunks = [
        chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk for chunk in column.chunks
    ]
    return [value for chunk in chunks for value in chunk.to_pylist()]


def selections(rows: int) -> list[range | np.ndarray]:
    rng = np.random.default_rng(rows)
    found: list[range | np.ndarray] = [range(rows)]
    if rows:
        found += [range(*sorted(rng.integers(0, rows + 1, 2).tolist())) for _ in range(3)]
        for count in (1, min(rows, 5), rows // 2):
            found.append(np.sort(rng.choice(rows, count, replace=False)).astype(np.int64))
    return found


def test_there_are_golden_files() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_files_read_as_expected(path: Path) -> None:
    reader = FileReader.open(MemoryFile(path.read_bytes()), path.name)
    expected = expected_of(path)
    assert reader.rows == expected.num_rows
    for field in reader.schema.fields:
        if field.is_blob:
            continue
        values = storage(expected.column(field.name))
        for rows in selections(reader.rows):
            (chunks,) = reader.read([field], rows)
            assert all(chunk.type == arrow_type(field) for chunk in chunks)
            for chunk in chunks:
                chunk.validate(full=True)
            got = [value for chunk in chunks for value in chunk.to_pylist()]
            # Texts compare NaN with itself.
            assert repr(got) == repr([values[row] for row in rows])


def test_blob_columns_describe_where_the_payloads_are() -> None:
    path = GOLDEN / "2.0" / "blob.lance"
    data = path.read_bytes()
    reader = FileReader.open(MemoryFile(data), path.name)
    (field,) = [field for field in reader.schema.fields if field.is_blob]
    (chunks,) = reader.read([field], range(reader.rows))
    found: list[bytes | None] = []
    for place in pa.chunked_array(chunks).to_pylist():
        start, size = place["position"], place["size"]
        found.append(None if (start, size) == (1, 0) else data[start : start + size])
    assert found == expected_of(path).column(field.name).to_pylist()


def test_pages_describe_themselves_as_the_fixtures_do() -> None:
    listed = json.loads((GOLDEN / "manifest.json").read_text())
    checked = 0
    for entry in listed:
        path = GOLDEN / "2.0" / f"{entry['case']}.lance"
        if entry["version"] != "2.0" or not path.exists() or "0.19" in entry["file"]:
            continue
        reader = FileReader.open(MemoryFile(path.read_bytes()), path.name)
        assert [page.encoding for page in reader.pages()] == [
            page["encoding"] for page in entry["pages"]
        ]
        checked += 1
    assert checked > 10


def test_part_of_a_struct_can_be_read() -> None:
    path = GOLDEN / "2.0" / "structs_nonnull.lance"
    reader = FileReader.open(MemoryFile(path.read_bytes()), path.name)
    struct = next(f for f in reader.schema.fields if f.logical_type == "struct")
    last = struct.children[-1]
    part = Field(struct.name, struct.id, "struct", struct.nullable, (last,))
    (chunks,) = reader.read([part], range(10, 20))
    values = expected_of(path).column(struct.name).to_pylist()[10:20]
    got = [value for chunk in chunks for value in chunk.to_pylist()]
    assert got == [{last.name: value[last.name]} for value in values]


def test_part_of_a_packed_struct_can_be_read() -> None:
    path = GOLDEN / "2.0" / "packed_struct_fsl.lance"
    reader = FileReader.open(MemoryFile(path.read_bytes()), path.name)
    (struct,) = reader.schema.fields
    last = struct.children[-1]
    part = Field(struct.name, struct.id, "struct", struct.nullable, (last,), struct.metadata)
    (chunks,) = reader.read([part], np.array([3, 200]))
    values = expected_of(path).column(struct.name).to_pylist()
    got = [value for chunk in chunks for value in chunk.to_pylist()]
    assert got == [{last.name: values[row][last.name]} for row in (3, 200)]


def list_column(ends: list[int], items: int, place: int) -> Page:
    encoding = ItemList(NoNulls(Flat(64, 0)), 100, items)
    return Page(len(ends), 0, (PageBuffer(place, 8 * len(ends)),), encoding)


@pytest.mark.parametrize("kind", ["string", "large_binary"])
def test_strings_of_the_first_writers_are_lists_of_bytes(kind: str) -> None:
    data = np.array([3, 103, 6], "<u8").tobytes() + b"foobar"
    field = Field("s", 5, kind)
    columns = {
        5: Column((list_column([3, 103, 6], 6, 0),), 3),
        bytes_key(5): Column((Page(6, 0, (PageBuffer(24, 6),), NoNulls(Flat(8, 0))),), 6),
    }
    expected = pa.array(["foo", None, "bar"], arrow_type(field)).to_pylist()
    for rows in (range(3), range(1, 3), np.array([0, 2])):
        (chunk,) = serve(read_field(field, columns, rows), data)
        chunk.validate(full=True)
        assert chunk.to_pylist() == [expected[row] for row in rows]


def test_lists_that_reach_beyond_their_items_are_refused() -> None:
    data = np.array([3, 6, 9], "<u8").tobytes() + bytes(6)
    field = Field("l", 0, "list", children=(Field("item", 1, "int8"),))
    items = Column((Page(6, 0, (PageBuffer(24, 6),), Flat(8, 0)),), 6)
    for claimed in (8, 9):
        columns = {0: Column((list_column([3, 6, 9], claimed, 0),), 3), 1: items}
        with pytest.raises(CorruptError):
            serve(read_field(field, columns, range(3)), data)


def test_fields_without_a_column_are_refused() -> None:
    with pytest.raises(CorruptError, match="no column"):
        serve(read_field(Field("x", 3, "int32"), {}, range(3)), b"")
