"""Data files of version 0.1: golden tables, and files made by hand."""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.file.legacy import LegacyFile, read_manifest_dictionary
from lancetable.format.manifest.codec import decode_manifest
from lancetable.format.proto import file_pb2
from lancetable.format.schema.model import BLOB_KEY, DictionaryPage, Field, Schema
from lancetable.format.schema.types import arrow_type
from lancetable.store import MemoryFile

GOLDEN = Path(__file__).parents[2] / "golden" / "file" / "0.1"
TABLES = sorted(path for path in GOLDEN.iterdir() if path.is_dir())


def open_golden(table: Path) -> LegacyFile:
    path = table / "_versions" / "1.manifest"
    content = path.read_bytes()
    manifest = decode_manifest(content, path.name)
    (fragment,) = manifest.fragments
    (data_file,) = fragment.files
    dictionaries = {
        field.id: read_manifest_dictionary(
            MemoryFile(content), field.dictionary, arrow_type(field).value_type
        )
        for field in manifest.schema.walk()
        if field.dictionary is not None and field.logical_type.startswith("dict")
    }
    file = MemoryFile((table / "data" / data_file.path).read_bytes())
    return LegacyFile.open(file, data_file.path, data_file.fields, manifest.schema, dictionaries)


def selections(rows: int) -> list[range | np.ndarray]:
    rng = np.random.default_rng(rows)
    ranges = [range(*sorted(rng.integers(0, rows + 1, 2).tolist())) for _ in range(3)]
    scattered = [
        np.sort(rng.choice(rows, count, replace=False)).astype(np.int64)
        for count in (1, 5, rows // 2)
    ]
    return [range(rows), *ranges, *scattered]


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_golden_tables_read_as_expected(table: Path) -> None:
    file = open_golden(table)
    expected = pa.ipc.open_file(table.with_suffix(".arrow")).read_all()
    assert file.rows == expected.num_rows
    for field in file.schema.fields:
        values = expected.column(field.name).to_pylist()
        for rows in selections(file.rows):
            (chunks,) = file.read([field], rows)
            for chunk in chunks:
                chunk.validate(full=True)
                assert chunk.type == arrow_type(field)
            got = [value for chunk in chunks for value in chunk.to_pylist()]
            assert repr(got) == repr([values[row] for row in rows])


def made_file(
    pages: Mapping[tuple[int, int], tuple[bytes, int]],
    batch_starts: list[int],
    *,
    ids: range,
    version: tuple[int, int] = (0, 1),
) -> bytes:
    """Return a file with pages by (field id, batch), each as (bytes, length)."""
    data = b"junk"
    places = {}
    for key, (content, length) in pages.items():
        places[key] = (len(data), length)
        data += content
    table = b"".join(
        struct.pack("<qq", *places.get((id_, batch), (0, 0)))
        for id_ in ids
        for batch in range(len(batch_starts) - 1)
    )
    metadata = file_pb2.Metadata(batch_offsets=batch_starts, page_table_position=len(data))
    message: bytes = metadata.SerializeToString()
    data += table
    return (
        data
        + struct.pack("<I", len(message))
        + message
        + struct.pack("<qHH4s", len(data), *version, b"LANC")
    )


NUMBERS = Field("n", 4, "int16")
FLAGS = Field("f", 6, "bool", nullable=False)
FIELDS = Schema((NUMBERS, FLAGS))
SOUND = made_file(
    {
        (4, 0): (np.array([1, 2, 3], "<i2").tobytes(), 3),
        (4, 1): (np.array([4], "<i2").tobytes(), 1),
        (4, 3): (np.array([5, 6], "<i2").tobytes(), 2),
        (6, 0): (b"\x05", 3),
        (6, 1): (b"\x00", 1),
        (6, 3): (b"\x03", 2),
    },
    [0, 3, 4, 4, 6],
    ids=range(4, 7),
)


def open_made(data: bytes, schema: Schema = FIELDS, ids: tuple[int, ...] = (4, 6)) -> LegacyFile:
    return LegacyFile.open(MemoryFile(data), "made.lance", ids, schema, {})


def values(file: LegacyFile, field: Field, rows: range | np.ndarray) -> list[object]:
    (chunks,) = file.read([field], rows)
    return [value for chunk in chunks for value in chunk.to_pylist()]


def test_batches_ids_between_and_empty_batches() -> None:
    file = open_made(SOUND)
    assert file.rows == 6
    assert values(file, NUMBERS, range(6)) == [1, 2, 3, 4, 5, 6]
    assert values(file, FLAGS, range(2, 5)) == [True, False, True]
    assert values(file, NUMBERS, np.array([0, 3, 5])) == [1, 4, 6]
    assert values(file, NUMBERS, range(4, 4)) == []


@pytest.mark.parametrize("version", [(0, 0), (0, 1), (0, 2)])
def test_all_numbers_of_the_version_are_read(version: tuple[int, int]) -> None:
    data = SOUND[:-8] + struct.pack("<HH", *version) + b"LANC"
    assert values(open_made(data), NUMBERS, range(2)) == [1, 2]


def test_fields_that_are_gone_keep_their_place_in_the_page_table() -> None:
    file = open_made(SOUND, ids=(-2, -2, 6))
    assert values(file, FLAGS, range(3)) == [True, False, True]


def test_rows_behind_the_last_are_refused() -> None:
    with pytest.raises(InputError, match="row 6"):
        open_made(SOUND).read([NUMBERS], range(2, 7))


@pytest.mark.parametrize("nullable", [True, False])
def test_empty_strings_are_null_in_nullable_fields(nullable: bool) -> None:
    positions = np.array([4, 6, 6, 7], "<i8").tobytes()
    field = Field("s", 0, "string", nullable)
    data = made_file({(9, 0): (b"abc", 0), (0, 0): (positions, 3)}, [0, 3], ids=range(1))
    file = open_made(data, Schema((field,)), (0,))
    assert values(file, field, range(3)) == ["ab", None if nullable else "", "c"]
    assert values(file, field, np.array([1, 2])) == [None if nullable else "", "c"]


def test_blobs_are_described_by_their_place() -> None:
    positions = np.array([4, 6, 6, 7], "<i8").tobytes()
    field = Field("b", 0, "large_binary", metadata={BLOB_KEY: "true"})
    data = made_file({(9, 0): (b"abc", 0), (0, 0): (positions, 3)}, [0, 3], ids=range(1))
    file = open_made(data, Schema((field,)), (0,))
    assert values(file, field, range(3)) == [
        {"position": 4, "size": 2},
        None,
        {"position": 6, "size": 1},
    ]


def test_dictionaries_of_numbers_and_texts_come_from_the_manifest_file() -> None:
    numbers = np.array([7, 9], "<i4").tobytes()
    texts = np.array([0, 1, 3], "<i8").tobytes()
    manifest = MemoryFile(b"abc" + numbers + texts)
    assert read_manifest_dictionary(manifest, DictionaryPage(3, 2), pa.int32()).to_pylist() == [
        7,
        9,
    ]
    assert read_manifest_dictionary(manifest, DictionaryPage(11, 2), pa.string()).to_pylist() == [
        "a",
        "bc",
    ]


@pytest.mark.parametrize("page", [(3, -1), (3, 1 << 60), (-4, 2), (1 << 62, 1)])
def test_dictionaries_outside_the_manifest_file_are_refused(page: tuple[int, int]) -> None:
    with pytest.raises(CorruptError):
        read_manifest_dictionary(MemoryFile(bytes(40)), DictionaryPage(*page), pa.string())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"LANC",
        SOUND[:-1],
        SOUND[:-16] + struct.pack("<qHH4s", -1, 0, 1, b"LANC"),
        SOUND[:-16] + struct.pack("<qHH4s", len(SOUND), 0, 1, b"LANC"),
        SOUND[:-16] + struct.pack("<qHH4s", 0, 0, 1, b"LANC"),
        made_file({}, [0, 5, 2], ids=range(4, 7)),
        made_file({}, [3, 5], ids=range(4, 7)),
        made_file({}, list(range(1000)), ids=range(0)),
    ],
)
def test_damaged_containers_are_refused_with_their_name(data: bytes) -> None:
    with pytest.raises(CorruptError, match=r"made\.lance"):
        open_made(data)


def test_files_of_later_versions_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"2\.1"):
        open_made(SOUND[:-8] + struct.pack("<HH", 2, 1) + b"LANC")


LISTS = Field("l", 0, "list", children=(Field("item", 1, "int8"),))
INDICES = Field("d", 0, "dict:string:int8:false")


@pytest.mark.parametrize(
    ("field", "pages"),
    [
        (Field("n", 0, "int64"), {(0, 0): (bytes(16), 2)}),
        (Field("n", 0, "int64"), {(0, 0): (bytes(16), 1 << 58)}),
        (Field("n", 0, "int64"), {}),
        (Field("s", 0, "string"), {(0, 0): (np.array([9, 5, 5, 5]).tobytes(), 3)}),
        (Field("s", 0, "string"), {(0, 0): (np.array([5, 5, 5, 1 << 40]).tobytes(), 3)}),
        (Field("s", 0, "string"), {(0, 0): (np.array([-8, 5, 5, 9]).tobytes(), 3)}),
        (LISTS, {(0, 0): (np.array([0, 1, 2, 9], "<i4").tobytes(), 3), (1, 0): (b"abc", 3)}),
        (LISTS, {(0, 0): (np.array([0, 3, 2, 3], "<i4").tobytes(), 3), (1, 0): (b"abc", 3)}),
        (INDICES, {(0, 0): (bytes([0, 1, 2]), 3)}),
    ],
)
def test_damaged_pages_are_refused(field: Field, pages) -> None:
    data = made_file(pages, [0, 3], ids=range(2))
    values_ = {0: pa.array(["a", "b"])}
    file = LegacyFile.open(MemoryFile(data), "made.lance", (0, 1), Schema((field,)), values_)
    for rows in (range(3), np.array([0, 2])):
        with pytest.raises(CorruptError, match=rf"made\.lance: field '{field.name}'"):
            file.read([field], rows)
