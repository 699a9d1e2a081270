"""Payloads of blob columns go where their size says, and descriptors point at them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lancetable.errors import InputError, SchemaError, UnsupportedError
from lancetable.file import FileReader, FileVersion
from lancetable.file.model import V2_0, V2_1, V2_2
from lancetable.file.write.blobs import second_generation
from lancetable.file.write.writer import FileWriteOptions, FileWriter
from lancetable.format.schema.types import schema_from_arrow
from lancetable.store import LocalStore

BLOB = {"lance-encoding:blob": "true"}
LIMITS = {
    **BLOB,
    "lance-encoding:blob-inline-size-threshold": "10",
    "lance-encoding:blob-dedicated-size-threshold": "20",
    "lance-encoding:blob-pack-file-size-threshold": "25",
}
PAYLOADS = [b"abc", None, b"", b"x" * 100, b"y" * 65, None, b"z"]


def marked(name: str = "b", metadata: dict[str, str] | None = None) -> pa.Field:
    return pa.field(name, pa.large_binary(), metadata=metadata or BLOB)


class Draft:
    """Writes blobs and looks at what became of them."""

    def __init__(self, folder: Path, version: FileVersion) -> None:
        self.folder = folder
        self.store = LocalStore(str(folder))
        self.version = version

    def sidecar(self, blob_id: int) -> str:
        return f"x/{blob_id}.blob"

    def writer(self, schema: pa.Schema, *, has_sidecars: bool = True) -> FileWriter:
        if self.version == V2_2:
            schema = second_generation(schema)
        return FileWriter(
            self.store.create("x.lance"),
            schema_from_arrow(schema),
            self.version,
            FileWriteOptions(page_bytes=40),
            sidecars=(lambda n: self.store.create(self.sidecar(n))) if has_sidecars else None,
        )

    def write(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
        writer = self.writer(schema)
        for batch in batches:
            writer.write(batch)
        writer.finish()

    def descriptors(self) -> list[Any]:
        reader = FileReader.open(self.store.open("x.lance"), "x.lance")
        found: list[Any] = []
        for chunk in reader.read(reader.schema.fields, range(reader.rows))[0]:
            found += chunk.to_pylist()
        return found

    def payload(self, row: dict[str, Any] | None) -> bytes | None:
        """Return the bytes that a descriptor stands for."""
        if row is None or (row["size"] == 0 and row["position"] == 1):
            return None
        is_inline = row.get("kind", 0) == 0
        path = "x.lance" if is_inline else self.sidecar(row["blob_id"])
        start, size = row["position"], row["size"]
        if is_inline and size:
            assert start % 64 == 0
        return self.store.read(path)[start : start + size]


@pytest.fixture(params=[V2_0, V2_1, V2_2], ids=str)
def draft(request: pytest.FixtureRequest, tmp_path: Path) -> Draft:
    return Draft(tmp_path, request.param)


@pytest.fixture
def second(tmp_path: Path) -> Draft:
    return Draft(tmp_path, V2_2)


def batches(column: pa.Array, schema: pa.Schema, size: int) -> list[pa.RecordBatch]:
    made: list[pa.RecordBatch] = pa.table([column], schema=schema).to_batches(max_chunksize=size)
    return made


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_payloads_are_found_again(draft: Draft, type_: pa.DataType, size: int) -> None:
    schema = pa.schema([pa.field("b", type_, metadata=BLOB)])
    column = pa.array([b"skipped", *PAYLOADS], type_).slice(1)
    draft.write(batches(column, schema, size), schema)
    assert [draft.payload(row) for row in draft.descriptors()] == PAYLOADS


def test_only_nulls(draft: Draft) -> None:
    schema = pa.schema([marked()])
    draft.write(batches(pa.nulls(3, pa.large_binary()), schema, 2), schema)
    assert [draft.payload(row) for row in draft.descriptors()] == [None] * 3


def test_blobs_inside_structs(draft: Draft) -> None:
    schema = pa.schema([pa.field("s", pa.struct([marked(), pa.field("k", pa.int8())]))])
    rows: list[Any] = [{"b": payload, "k": 1} for payload in PAYLOADS]
    if draft.version != V2_0:
        rows.insert(2, None)
    draft.write(batches(pa.array(rows, schema[0].type), schema, 3), schema)
    found = draft.descriptors()
    restored = [None if row is None else {**row, "b": draft.payload(row["b"])} for row in found]
    assert restored == rows


def test_payloads_of_null_structs_are_not_stored(tmp_path: Path) -> None:
    draft = Draft(tmp_path, V2_1)
    schema = pa.schema([pa.field("s", pa.struct([marked()]))])
    hidden = pa.array([b"?" * 5000, b"seen"], pa.large_binary())
    structs = pa.StructArray.from_arrays(
        [hidden], fields=list(schema[0].type), mask=pa.array([True, False])
    )
    draft.write(batches(structs, schema, 2), schema)
    assert b"???" not in draft.store.read("x.lance")
    none, row = draft.descriptors()
    assert none is None
    assert draft.payload(row["b"]) == b"seen"


def test_blobs_inside_lists(draft: Draft) -> None:
    schema = pa.schema([pa.field("l", pa.list_(marked("item")))])
    rows = [[b"a", None], None, [], [b"", b"bcd"]]
    column = pa.array([[b"skipped"], *rows], schema[0].type).slice(1)
    if draft.version == V2_1:
        with pytest.raises(UnsupportedError, match="inside a list"):
            draft.write(batches(column, schema, 3), schema)
        return
    draft.write(batches(column, schema, 3), schema)
    found = draft.descriptors()
    assert [row and [draft.payload(item) for item in row] for row in found] == rows


def test_sizes_decide_about_the_place(second: Draft) -> None:
    schema = pa.schema([marked(metadata=LIMITS)])
    sizes = [10, 11, 12, 13, 20, 21, 0]
    rows = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    second.write(batches(pa.array(rows, pa.large_binary()), schema, 2), schema)
    found = second.descriptors()
    assert [second.payload(row) for row in found] == rows
    assert [row["kind"] for row in found] == [0, 1, 1, 1, 1, 2, 0]
    # A shared file is left when the next payload would make it longer than 25 bytes.
    assert [row["blob_id"] for row in found] == [0, 1, 1, 2, 3, 4, 0]
    assert [row["position"] for row in found][1:6] == [0, 11, 0, 0, 0]
    assert second.store.read(second.sidecar(4)) == rows[5]


def test_default_limits(second: Draft) -> None:
    schema = pa.schema([marked()])
    rows = [bytes(1 << 16), bytes((1 << 16) + 1), bytes(1 << 22), bytes((1 << 22) + 1)]
    second.write(batches(pa.array(rows, pa.large_binary()), schema, 9), schema)
    assert [row["kind"] for row in second.descriptors()] == [0, 1, 1, 2]


def test_references_are_stored_as_they_are(second: Draft) -> None:
    type_ = pa.struct(
        [
            ("data", pa.large_binary()),
            ("uri", pa.string()),
            ("position", pa.uint64()),
            ("size", pa.uint64()),
        ]
    )
    rows = [
        {"data": b"abc"},
        {"uri": "file:///a"},
        None,
        {"uri": "file:///b", "position": 3, "size": 4},
    ]
    schema = pa.schema([marked()])
    writer = second.writer(schema)
    writer.write(pa.record_batch([pa.array(rows, type_)], names=["b"]))
    writer.finish()
    inline, whole, none, part = second.descriptors()
    assert (inline["kind"], inline["size"]) == (0, 3)
    assert none is None
    external = {"kind": 3, "blob_id": 0}
    assert whole == {**external, "position": 0, "size": 0, "blob_uri": "file:///a"}
    assert part == {**external, "position": 3, "size": 4, "blob_uri": "file:///b"}


@pytest.mark.parametrize(
    ("row", "words"), [({"data": b"a", "uri": "u"}, "both"), ({"data": None}, "neither")]
)
def test_either_bytes_or_a_reference(second: Draft, row: dict[str, Any], words: str) -> None:
    type_ = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    writer = second.writer(pa.schema([marked()]))
    with pytest.raises(InputError, match=f"row 1 has {words}"):
        writer.write(pa.record_batch([pa.array([{"uri": "x"}, row], type_)], names=["b"]))


def test_other_types_are_refused(draft: Draft) -> None:
    writer = draft.writer(pa.schema([marked()]))
    with pytest.raises(SchemaError, match="takes binary"):
        writer.write(pa.record_batch({"b": [1, 2]}))


def test_large_blobs_need_side_files(second: Draft) -> None:
    writer = second.writer(pa.schema([marked()]), has_sidecars=False)
    with pytest.raises(InputError, match="needs a file beside the data file"):
        writer.write(pa.record_batch({"b": pa.array([bytes(70_000)], pa.large_binary())}))


def test_bad_limits_are_refused(second: Draft) -> None:
    field = marked(metadata={**BLOB, "lance-encoding:blob-inline-size-threshold": "many"})
    writer = second.writer(pa.schema([field]))
    with pytest.raises(InputError, match="is 'many'; use a number of bytes"):
        writer.write(pa.record_batch({"b": pa.array([b"x"], pa.large_binary())}))


def test_generations_belong_to_versions(tmp_path: Path) -> None:
    first, later = (
        schema_from_arrow(pa.schema([marked()])),
        second_generation(pa.schema([marked()])),
    )
    store = LocalStore(str(tmp_path))
    with pytest.raises(SchemaError, match="of the first generation"):
        FileWriter(store.create("a"), first, V2_2)
    with pytest.raises(SchemaError, match="of the second generation"):
        FileWriter(store.create("b"), schema_from_arrow(later), V2_1)
    with pytest.raises(SchemaError, match="of the second generation"):
        FileWriter(store.create("c"), schema_from_arrow(later), V2_0)


def test_aborting_removes_side_files(second: Draft) -> None:
    writer = second.writer(pa.schema([marked(metadata=LIMITS)]))
    rows = pa.array([bytes(15), bytes(30), b"x"], pa.large_binary())
    writer.write(pa.record_batch({"b": rows}))
    assert {entry.path for entry in second.store.list("x")} == {"x/1.blob", "x/2.blob"}
    writer.abort()
    assert list(second.store.list("")) == []
