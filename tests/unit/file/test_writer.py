"""Data files that we write are read back equal; what they cannot hold is refused."""

import decimal
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lancetable.errors import InputError, SchemaError, UnsupportedError
from lancetable.file import DataFileHandle, FileReader, FileVersion
from lancetable.file.model import V2_0, V2_1, V2_2
from lancetable.file.write.writer import FileWriteOptions, FileWriter, WrittenFile
from lancetable.format.schema.types import schema_from_arrow
from lancetable.store import LocalStore
from tests.same import assert_same_table

VERSIONS = [V2_0, V2_1, V2_2]
NEW_VERSIONS = [V2_1, V2_2]
SMALL = FileWriteOptions(page_bytes=1 << 10)
MOMENT = 1_700_000_000


class Draft:
    """Writes tables as files below a folder and opens them again."""

    def __init__(self, folder: Path, version: FileVersion) -> None:
        self.store = LocalStore(str(folder))
        self.path = folder / "x.lance"
        self.version = version

    def writer(self, schema: pa.Schema, options: FileWriteOptions | None = None) -> FileWriter:
        file = self.store.create("x.lance")
        return FileWriter(file, schema_from_arrow(schema), self.version, options)

    def write(self, table: pa.Table, options: FileWriteOptions | None = None) -> WrittenFile:
        writer = self.writer(table.schema, options)
        for batch in table.to_batches():
            writer.write(batch)
        return writer.finish()

    def open(self) -> DataFileHandle:
        return DataFileHandle(FileReader.open(self.store.open("x.lance"), "x.lance"))


@pytest.fixture(params=VERSIONS, ids=str)
def draft(request: pytest.FixtureRequest, tmp_path: Path) -> Draft:
    return Draft(tmp_path, request.param)


@pytest.fixture(params=NEW_VERSIONS, ids=str)
def new_draft(request: pytest.FixtureRequest, tmp_path: Path) -> Draft:
    return Draft(tmp_path, request.param)


def every_type(rows: int) -> pa.Table:
    """Return a column of each type, with nulls."""
    numbers = [None if row % 7 == 3 else row % 100 for row in range(rows)]
    bits = [None if value is None else value % 3 == 0 for value in numbers]
    columns = {
        **{
            str(type_): pa.array(numbers, pa.int64()).cast(type_)
            for type_ in (
                pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float32(), pa.float64(),
                pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.duration("us"), pa.time64("ns"),
                pa.date64(), pa.string(), pa.large_string(),
            )
        },
        "half": pa.array([None if v is None else np.float16(v) for v in numbers], pa.float16()),
        "date32": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "time32": pa.array(numbers, pa.int32()).cast(pa.time32("ms")),
        "binary": pa.array([None if v is None else bytes(v % 5) for v in numbers]),
        "wide": pa.array([None if v is None else decimal.Decimal(v) for v in numbers],
                         pa.decimal256(60, 5)),
        "odd": pa.array([None if v is None else bytes([v] * 7) for v in numbers], pa.binary(7)),
        "bool": pa.array(bits),
        "nothing": pa.nulls(rows),
        "missing": pa.nulls(rows, pa.int16()),
        "dictionary": pa.array(numbers, pa.int64()).cast(pa.string()).dictionary_encode(),
        "vector": pa.array([None if v is None else [v, None, 1.5] for v in numbers],
                           pa.list_(pa.float32(), 3)),
        "bits": pa.array([None if v is None else [True, None, v > 50] for v in numbers],
                         pa.list_(pa.bool_(), 3)),
        "matrix": pa.array([None if v is None else [[v, 1], [2, None]] for v in numbers],
                           pa.list_(pa.list_(pa.int8(), 2), 2)),
        "list": pa.array([None if v is None else [str(v)] * (v % 4) for v in numbers]),
        "lists": pa.array([None if v is None else [[v] * (v % 3), None, []] for v in numbers],
                          pa.large_list(pa.list_(pa.int16()))),
        "struct": pa.array([{"a": v, "b": [{"c": v}] * ((v or 0) % 3)} for v in numbers]),
    }  # fmt: skip
    return pa.table(columns)


def test_every_type_comes_back(draft: Draft) -> None:
    table = every_type(3000)
    written = draft.write(table)
    assert written.rows == 3000
    assert written.size == draft.path.stat().st_size
    assert_same_table(draft.open().read(), table)


def test_slices_of_every_type_come_back_from_small_pages(draft: Draft) -> None:
    table = pa.concat_tables(
        every_type(1500).slice(start, length) for start, length in ((3, 70), (1001, 1), (9, 1200))
    )
    draft.write(table, SMALL)
    handle = draft.open()
    assert_same_table(handle.read(), table)
    assert max(page.page for page in handle.pages()) > 0
    rows = [0, 69, 70, 71, 500, 1270]
    assert_same_table(handle.take(rows), table.take(rows))


def test_structs_may_be_null_from_2_1_on(new_draft: Draft) -> None:
    rows = [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}, {"a": 4, "b": []}] * 300
    table = pa.table({"s": pa.array(rows)})
    new_draft.write(table, SMALL)
    assert_same_table(new_draft.open().read(), table)


def test_nothing_but_nulls_takes_little_room(new_draft: Draft) -> None:
    rows = 50_000
    structs = pa.nulls(rows, pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]))
    lists = pa.array([None if row % 100 else [] for row in range(rows)], pa.list_(pa.int8()))
    table = pa.table({"s": structs, "l": lists, "n": pa.nulls(rows, pa.float64())})
    size = new_draft.write(table).size
    assert_same_table(new_draft.open().read(), table)
    if new_draft.version == V2_2:
        assert size < 12_000


def test_maps_are_written_in_2_2(tmp_path: Path) -> None:
    rows = [[("a", 1), ("b", None)], None, [], [("c", 3)]] * 200
    table = pa.table({"m": pa.array(rows, pa.map_(pa.string(), pa.int32()))}).slice(1)
    draft = Draft(tmp_path, V2_2)
    draft.write(table, SMALL)
    assert_same_table(draft.open().read(), table)


def test_2_0_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    draft = Draft(tmp_path, V2_0)
    structs = pa.table({"s": pa.array([{"a": 1}, None])})
    with pytest.raises(InputError, match="do not store which structs are null"):
        draft.write(structs)
    draft.path.unlink()
    nested = pa.schema([("s", pa.struct([("m", pa.map_(pa.string(), pa.int8()))]))])
    with pytest.raises(SchemaError, match="needs a table of file version 2"):
        draft.writer(nested)


def test_other_versions_are_not_written(tmp_path: Path) -> None:
    draft = Draft(tmp_path, FileVersion(2, 3))
    with pytest.raises(UnsupportedError, match=re.escape("versions 2.0, 2.1, 2.2 can")):
        draft.writer(pa.schema([("a", pa.int8())]))


def test_columns_of_the_file_are_named_by_field(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "s": [{"x": 1, "l": [[2]]}]})
    old = Draft(tmp_path / "old", V2_0)
    new = Draft(tmp_path / "new", V2_1)
    # Ids: a 0, s 1, s.x 2, s.l 3, its item 4, the item of that 5.
    assert old.write(table)[:2] == ((0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5))
    assert new.write(table)[:2] == ((0, 2, 5), (0, 1, 2))


def test_structs_of_2_0_have_one_page(tmp_path: Path) -> None:
    rows = 4000
    table = pa.table({"s": pa.array([{"a": row} for row in range(rows)])})
    draft = Draft(tmp_path, V2_0)
    draft.write(table, SMALL)
    pages = draft.open().pages()
    assert [(page.page, page.rows) for page in pages if page.field == "s"] == [(0, rows)]
    assert len([page for page in pages if page.field == "s.a"]) > 10


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(draft: Draft, rows: int) -> None:
    table = every_type(10).slice(4, rows)
    draft.write(table)
    assert draft.open().rows == rows
    assert_same_table(draft.open().read(), table)


def test_empty_batches_and_chunks(draft: Draft) -> None:
    schema = pa.schema([("a", pa.int32()), ("l", pa.list_(pa.string()))])
    table = pa.table([[1, None, 3], [["x"], None, []]], schema=schema)
    writer = draft.writer(schema)
    for part in (table.slice(0, 0), table.slice(0, 2), table.slice(2, 0), table.slice(2)):
        for batch in part.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]:
            writer.write(batch)
    assert writer.finish().rows == 3
    assert_same_table(draft.open().read(), table)


def test_dictionaries_that_differ_stay_apart_when_they_must(draft: Draft) -> None:
    def part(name: str) -> pa.RecordBatch:
        indices = pa.array([*range(100), None], pa.int8())
        items = pa.array([f"{name}{number}" for number in range(100)])
        return pa.record_batch({"d": pa.DictionaryArray.from_arrays(indices, items)})

    table = pa.Table.from_batches([part("a"), part("b"), part("c")])
    draft.write(table)
    handle = draft.open()
    assert [page.rows for page in handle.pages()] == [101, 101, 101]
    assert_same_table(handle.read(), table)


def test_dictionaries_that_grow_share_a_page(draft: Draft) -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int32()), ["a", "b"])
    second = pa.DictionaryArray.from_arrays(pa.array([2, 0], pa.int32()), ["a", "b", "c"])
    table = pa.table({"d": pa.chunked_array([first, second])})
    draft.write(table)
    handle = draft.open()
    assert [page.rows for page in handle.pages()] == [5]
    assert_same_table(handle.read(), table)


def test_unused_items_of_a_dictionary_are_left_out(draft: Draft) -> None:
    items = pa.array([f"{number:0100}" for number in range(10_000)])
    indices = pa.array([4000, None, 7, 4000], pa.int16())
    table = pa.table({"d": pa.DictionaryArray.from_arrays(indices, items)})
    assert draft.write(table).size < 2000
    assert_same_table(draft.open().read(), table)


def test_null_items_of_a_dictionary_are_nulls(draft: Draft) -> None:
    indices = pa.array([0, 1, 2, None, 1], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["x", None, "z"]))
    draft.write(pa.table({"d": column}))
    read = draft.open().read().column("d").combine_chunks().dictionary_decode()
    assert read.to_pylist() == ["x", None, "z", None, None]


def test_nulls_without_a_free_index_are_refused_in_2_0(tmp_path: Path) -> None:
    indices = pa.array([*range(128), None], pa.int8())
    items = pa.array([str(number) for number in range(128)])
    table = pa.table({"d": pa.DictionaryArray.from_arrays(indices, items)})
    with pytest.raises(InputError, match="does not fit int8 indices"):
        Draft(tmp_path, V2_0).write(table)


def test_large_batches_become_pages(draft: Draft) -> None:
    table = pa.table(
        {"a": np.arange(100_000) * 7919, "s": pa.array(np.arange(100_000)).cast("str")}
    )
    draft.write(table, FileWriteOptions(page_bytes=1 << 16))
    handle = draft.open()
    assert max(page.rows for page in handle.pages()) <= 10_000
    assert_same_table(handle.read(), table)


def test_all_columns_together_hold_little(draft: Draft) -> None:
    schema = pa.schema([(f"c{number}", pa.int64()) for number in range(50)])
    options = FileWriteOptions(pending_bytes=1 << 16)
    writer = draft.writer(schema, options)
    batch = pa.record_batch([pa.array(range(100))] * 50, schema=schema)
    for _ in range(20):
        writer.write(batch)
        assert writer.bytes_pending <= options.pending_bytes
    assert writer.bytes_written > 0
    writer.finish()
    assert_same_table(draft.open().read(), pa.Table.from_batches([batch] * 20))


def test_mostly_empty_lists_are_split_into_pages(new_draft: Draft) -> None:
    lengths = np.zeros(400_000, np.int32)
    lengths[::1000] = 3
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32(), mask=None)
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.arange(1200) * 12345, pa.int64()))
    table = pa.table({"l": lists})
    new_draft.write(table)
    pages = new_draft.open().pages()
    assert len(pages) > 5
    assert all(page.encoding.startswith("miniblock") for page in pages)
    assert_same_table(new_draft.open().read(), table)


def test_a_row_with_too_many_levels_is_zipped(new_draft: Draft) -> None:
    inner: list[list[int]] = [[]] * 70_000 + [[1, 2]] + [[]] * 70_000 + [[5]]
    table = pa.table({"l": pa.array([[[3]], inner, None], pa.list_(pa.list_(pa.int32())))})
    new_draft.write(table)
    assert any(page.encoding.startswith("fullzip") for page in new_draft.open().pages())
    assert_same_table(new_draft.open().read(), table)


def test_json_is_checked_and_stored_in_binary_form(draft: Draft) -> None:
    texts = ['{"b":1,"a":[true,null]}', None, "3"]
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))
    draft.write(pa.table({"j": column}))
    assert draft.open().read().column("j").to_pylist() == ['{"a":[true,null],"b":1}', None, "3"]


def test_nulls_are_refused_where_there_must_be_none(draft: Draft) -> None:
    schema = pa.schema([pa.field("a", pa.int8(), nullable=False)])
    writer = draft.writer(schema)
    batch = pa.record_batch([pa.array([1, None, 3], pa.int8())], names=["a"])
    with pytest.raises(InputError, match="column 'a' must not be null, the data holds 1 nulls"):
        writer.write(batch)


def test_other_columns_are_refused(draft: Draft) -> None:
    writer = draft.writer(pa.schema([("a", pa.int8())]))
    with pytest.raises(SchemaError, match="a batch of 2 columns"):
        writer.write(pa.record_batch({"a": [1], "b": [2]}))
    with pytest.raises(SchemaError, match="column 'a' has type int8, the data has string"):
        writer.write(pa.record_batch({"a": ["x"]}))


def test_bad_knobs_are_refused_with_the_good_ones(draft: Draft) -> None:
    field = pa.field("a", pa.string(), metadata={"lance-encoding:compression": "gzip"})
    with pytest.raises(InputError, match="use one of zstd, lz4, fsst, none"):
        draft.writer(pa.schema([field]))


@pytest.mark.parametrize("compression", ["zstd", "lz4", "fsst", "none"])
def test_strings_are_compressed_as_asked(draft: Draft, compression: str) -> None:
    texts = [f"https://example.com/{number % 50}/{number}" for number in range(4000)]
    metadata = {"lance-encoding:compression": compression}
    schema = pa.schema([pa.field("s", pa.string(), metadata=metadata)])
    table = pa.table([[None if n % 9 == 4 else text for n, text in enumerate(texts)]], schema)
    draft.write(table, FileWriteOptions(page_bytes=1 << 16))
    handle = draft.open()
    assert_same_table(handle.read(), table)
    named = {page.encoding for page in handle.pages()}
    assert all((compression in text) == (compression != "none") for text in named)


def test_aborting_leaves_nothing(draft: Draft) -> None:
    writer = draft.writer(pa.schema([("a", pa.int64())]), FileWriteOptions(page_bytes=8))
    writer.write(pa.record_batch({"a": [1, 2, 3]}))
    assert draft.path.exists()
    writer.abort()
    assert not draft.path.exists()


def buffers(path: Path) -> Iterator[int]:
    reader = FileReader.open(LocalStore(str(path.parent)).open(path.name), path.name)
    for number in range(reader._footer.columns):
        for page in reader._column(number).pages:
            yield from (buffer.position for buffer in page.buffers)


def test_buffers_start_on_boundaries(draft: Draft) -> None:
    draft.write(every_type(300), SMALL)
    positions = list(buffers(draft.path))
    assert positions
    assert all(position % 64 == 0 for position in positions)
