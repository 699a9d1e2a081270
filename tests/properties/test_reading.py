"""However rows are asked for, they are the rows of the whole table."""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from lancetable.file import DataFileHandle, FileReader
from lancetable.store import MemoryFile
from tests.fixtures_catalog import GOLDEN
from tests.same import assert_same_table
from tests.unmapped import CountingFile

TABLES = [
    "table/delete_arrow.lance",
    "table/stable_rowids.lance",
    "table/add_columns.lance",
    "table/nested.lance",
    "table/legacy_0_16_1_evolve.lance",
    "releases/pylance-0.19.2/nested_default.lance",
    "releases/pylance-0.39.0/prim_v2_2.lance",
    "releases/pylance-8.0.1/history.lance",
]
FILES = sorted(path for path in (GOLDEN / "file").glob("2*/*.lance") if "blob" not in path.name)
SYSTEM = ["_rowid", "_rowaddr", "_rowoffset"]


@cache
def table_of(name: str) -> tuple[lancetable.Table, pa.Table]:
    table = lancetable.open_table(str(GOLDEN / name))
    names = [*(f"`{name}`" for name in table.schema.names), *SYSTEM]
    return table, table.scan(names).to_arrow()


@settings(max_examples=60)
@given(st.sampled_from(TABLES), st.data())
def test_any_scan_is_a_part_of_the_whole(name: str, data: st.DataObject) -> None:
    table, whole = table_of(name)
    columns = data.draw(st.lists(st.sampled_from(whole.column_names), min_size=1, unique=True))
    offset = data.draw(st.integers(0, whole.num_rows + 3))
    limit = data.draw(st.none() | st.integers(0, whole.num_rows + 3))
    expected = whole.select(columns).slice(offset, limit)
    asked = [column if column in SYSTEM else f"`{column}`" for column in columns]
    options: dict[str, Any] = {
        "batch_rows": data.draw(st.integers(1, 500)),
        "batch_bytes": data.draw(st.sampled_from([1, 1000, 1 << 20])),
        "threads": data.draw(st.sampled_from([1, 2])),
    }
    scan = table.scan(asked, offset=offset, limit=limit, **options)
    assert scan.count() == expected.num_rows
    assert_same_table(scan.to_arrow(), expected)
    batches = list(scan.to_batches())
    assert all(0 < batch.num_rows <= options["batch_rows"] for batch in batches)
    assert_same_table(pa.Table.from_batches(batches, schema=scan.schema), expected)


@settings(max_examples=200)
@given(st.sampled_from(TABLES), st.data())
def test_any_rows_are_rows_of_the_whole(name: str, data: st.DataObject) -> None:
    table, whole = table_of(name)
    rows = data.draw(st.lists(st.integers(0, whole.num_rows - 1), max_size=30))
    names = [*(f"`{each}`" for each in table.schema.names), *SYSTEM]
    expected = whole.take(pa.array(rows, pa.int64()))
    assert_same_table(table.take(rows, columns=names), expected)
    for way, column in (("row_ids", "_rowid"), ("row_addresses", "_rowaddr")):
        numbers = expected.column(column).to_pylist()
        assert_same_table(table.take(**{way: numbers}, columns=names), expected)


@cache
def file_of(number: int) -> tuple[bytes, pa.Table]:
    content = FILES[number].read_bytes()
    return content, DataFileHandle(FileReader.open(MemoryFile(content), "x")).read()


@settings(max_examples=200)
@given(st.integers(0, len(FILES) - 1), st.booleans(), st.data())
def test_any_rows_of_a_file_are_rows_of_the_whole(
    number: int, is_near: bool, data: st.DataObject
) -> None:
    content, whole = file_of(number)
    file = MemoryFile(content) if is_near else CountingFile(content)
    reader = FileReader.open(file, "x")
    if not whole.num_rows:
        return
    rows: range | np.ndarray
    if data.draw(st.booleans()):
        start = data.draw(st.integers(0, whole.num_rows - 1))
        rows = range(start, data.draw(st.integers(start, whole.num_rows)))
    else:
        picked = data.draw(st.sets(st.integers(0, whole.num_rows - 1), max_size=40))
        rows = np.array(sorted(picked), np.int64)
    found = reader.read(reader.schema.fields, rows)
    expected = whole.take(pa.array(np.asarray(rows, np.int64)))
    for chunks, name in zip(found, whole.column_names, strict=True):
        assert sum(map(len, chunks)) == len(rows)
        made = pa.table({name: pa.chunked_array(chunks)})
        assert_same_table(made, expected.select([name]))
