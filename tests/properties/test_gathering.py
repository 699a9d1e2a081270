"""The compiled gather finds the rows that the NumPy kernels find, in sound and in damaged files."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from lancetable.errors import LanceTableError
from lancetable.file import FileReader
from lancetable.file.model import FileVersion
from lancetable.file.read import compiled_rows, reader
from lancetable.file.write.writer import FileWriteOptions, FileWriter
from lancetable.format.encoding.kernels.addressing import GATHER, Values
from lancetable.format.schema.types import schema_from_arrow
from lancetable.store import LocalStore, MemoryFile
from tests.same import DifferenceError, assert_same_table
from tests.strategies import ABILITIES, tables
from tests.unmapped import CountingFile

needs_gather = pytest.mark.skipif(GATHER is None, reason="there are no compiled kernels")

ROWS = 5_000


def written(table: pa.Table, version: str, folder: Path, page_bytes: int = 1 << 15) -> bytes:
    """Return the bytes of a data file with small pages."""
    store = LocalStore(str(folder))
    name = f"{random.getrandbits(64):x}.lance"
    file_version = FileVersion(*map(int, version.split(".")))
    options = FileWriteOptions(page_bytes=page_bytes)
    schema = schema_from_arrow(table.schema)
    writer = FileWriter(store.create(name), schema, file_version, options)
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()
    return store.read(name)


def rich_table() -> pa.Table:
    """Return one column for each way a page can hold values and levels."""
    rng = np.random.default_rng(5)

    def some(array: pa.Array, share: float = 0.2) -> pa.Array:
        return pa.compute.if_else(pa.array(rng.random(len(array)) < share), None, array)

    numbers = pa.array(rng.integers(0, 1 << 20, ROWS))
    texts = pa.array([f"user{number:x}" for number in rng.integers(0, 1 << 30, ROWS)])
    lengths = rng.integers(0, 5, ROWS)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    count = int(lengths.sum())
    items = some(pa.array(rng.integers(-5, 1 << 33, count)))
    words = some(pa.array([f"w{number}" for number in rng.integers(0, 1 << 20, count)]))
    is_gap = pa.array(rng.random(ROWS) < 0.1)
    lists = pa.ListArray.from_arrays(offsets, items, mask=is_gap)
    struct = pa.StructArray.from_arrays([some(numbers), texts], ["x", "y"], mask=is_gap)
    return pa.table(
        {
            "packed": numbers,
            "packed_nulls": some(numbers),
            "flat": pa.array(rng.standard_normal(ROWS)),
            "flat_nulls": some(pa.array(rng.standard_normal(ROWS))),
            "bits": pa.array(rng.random(ROWS) < 0.5),
            "bits_nulls": some(pa.array(rng.random(ROWS) < 0.5)),
            "text": texts,
            "text_nulls": some(texts),
            "umlauts": pa.array([f"ä{number}ö" for number in range(ROWS)]),
            "large": pa.array([f"l{number}" for number in range(ROWS)], pa.large_string()),
            "few": pa.array([f"value {number}" for number in rng.integers(0, 9, ROWS)]),
            "few_numbers": pa.array(rng.integers(0, 5, ROWS) * (1 << 50)),
            "constant": pa.array([7] * ROWS),
            "same": pa.array(["same"] * ROWS),
            "nothing": pa.nulls(ROWS, pa.int32()),
            "sorted": pa.array(np.sort(rng.integers(0, 40, ROWS))),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(rng.random(ROWS * 4, np.float32)), 4
            ),
            "lists": lists,
            "word_lists": pa.ListArray.from_arrays(offsets, words, mask=is_gap),
            "struct": struct,
            "struct_lists": pa.ListArray.from_arrays(
                pa.array(np.arange(ROWS + 1, dtype=np.int32)), struct
            ),
            "deep": pa.ListArray.from_arrays(
                pa.array((np.arange(ROWS // 2 + 1) * 2).astype(np.int32)), lists
            ).take(pa.array(np.arange(ROWS) // 2)),
        }
    )


def read(data: bytes, rows: np.ndarray, *, is_near: bool = True) -> pa.Table:
    """Read rows of all columns of a file."""
    opened = FileReader.open(MemoryFile(data) if is_near else CountingFile(data), "x")
    fields = opened.schema.fields
    found = opened.read(fields, rows)
    columns = [pa.chunked_array(chunks) for chunks in found]
    return pa.table(columns, names=[field.name for field in fields])


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_every_way_to_hold_values(version: str, tmp_path: Path) -> None:
    table = rich_table()
    data = written(table, version, tmp_path)
    rng = np.random.default_rng(1)
    for count in (1, 3, 40, 900):
        rows = np.sort(rng.choice(ROWS, count, replace=False))
        found = read(data, rows)
        found.validate(full=True)
        assert_same_table(found, table.take(pa.array(rows)))
        assert_same_table(found, read(data, rows, is_near=False))


@needs_gather
def test_pages_are_really_gathered(tmp_path: Path) -> None:
    data = written(rich_table(), "2.1", tmp_path)
    opened = FileReader.open(MemoryFile(data), "x")
    opened.read(opened.schema.fields, np.array([5, ROWS - 5]))
    codes = {
        field.name: {
            Values(record.kind)
            for made in opened.records(field) or ()
            for record in made.records
            if record.kind != Values.UNOPENED
        }
        for field in opened.schema.fields
    }
    assert codes["packed_nulls"] == {Values.PACKED}
    assert codes["flat_nulls"] == {Values.FLAT}
    assert codes["bits"] == {Values.BITS}
    assert codes["text"] == codes["word_lists"] == {Values.TEXT}
    assert codes["lists"] == {Values.PACKED}
    assert codes["sorted"] == {Values.RUNS}
    assert not [name for name, found in codes.items() if found != codes["nothing"] and -1 in found]


def test_rows_of_many_fragments_come_in_any_order(tmp_path: Path) -> None:
    table = rich_table()
    path = str(tmp_path / "table")
    made = lancetable.create_table(path, table.slice(0, 1000))
    for start in range(1000, ROWS, 1000):
        made.append(table.slice(start, 1000))
    opened = lancetable.open_table(path)
    rows = np.random.default_rng(2).integers(0, ROWS, 500)
    expected = table.take(pa.array(rows))
    assert_same_table(opened.take(rows.tolist()), expected)
    assert_same_table(opened.take(rows), expected)
    assert_same_table(opened.take([int(rows[0])]), expected.slice(0, 1))
    opened.delete("packed % 3 = 0")
    kept = opened.scan().to_arrow()
    rows = np.random.default_rng(3).integers(0, kept.num_rows, 200)
    assert_same_table(opened.take(rows.tolist()), kept.take(pa.array(rows)))


def test_threads_open_pages_at_the_same_time(tmp_path: Path) -> None:
    table = rich_table()
    path = str(tmp_path / "table")
    lancetable.create_table(path, table)
    opened = lancetable.open_table(path)

    def work(seed: int) -> bool:
        rows = np.random.default_rng(seed).integers(0, ROWS, 40)
        return bool(opened.take(rows.tolist()).equals(table.take(pa.array(rows))))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(12)))


@needs_gather
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_so_many_rows_that_threads_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    asked = []

    def chosen() -> int:
        asked.append(threads)
        return threads

    monkeypatch.setattr(compiled_rows, "free_threads", chosen)
    table = rich_table()
    opened = lancetable.create_table(str(tmp_path / "table"), table)
    rows = np.random.default_rng(threads).integers(0, ROWS, 20_000)
    assert_same_table(opened.take(rows.tolist()), table.take(pa.array(rows)))
    assert asked
    asked.clear()
    assert_same_table(opened.take([7]), table.slice(7, 1))
    assert not asked


@settings(max_examples=40)
@given(version=st.sampled_from(["2.1", "2.2"]), data=st.data())
def test_random_files(
    version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = data.draw(tables(ABILITIES[version], most_rows=800))
    if not table.num_rows:
        return
    folder = tmp_path_factory.mktemp("gather")
    content = written(table, version, folder, data.draw(st.sampled_from([2000, 1 << 20])))
    picked = data.draw(st.sets(st.integers(0, table.num_rows - 1), min_size=1, max_size=50))
    rows = np.array(sorted(picked), np.int64)
    assert_same_table(read(content, rows), read(content, rows, is_near=False))


@needs_gather
@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_never_give_what_the_reference_would_not(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = written(rich_table(), "2.1", tmp_path)
    chance = random.Random(seed)
    rows = np.array(sorted(chance.sample(range(ROWS), 60)))
    for _ in range(30):
        data = bytearray(sound)
        for _ in range(chance.choice([1, 4, 40])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        outcomes = []
        for library in (GATHER, None):
            monkeypatch.setattr(reader, "GATHER", library)
            try:
                outcomes.append(read(bytes(data), rows))
            except LanceTableError:
                outcomes.append(None)
        gathered, reference = outcomes
        # The reference looks at whole chunks, so it may complain where the gather need not.
        if gathered is not None and reference is not None:
            try:
                assert_same_table(gathered, reference)
            except DifferenceError as difference:
                pytest.fail(f"seed {seed}: {difference}")
