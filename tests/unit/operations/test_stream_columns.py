"""New columns from batches that follow the row order."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable as lt
from lancetable.operations.columns.stream import add_streamed_columns
from tests.unit.operations.everywhere import fail_everywhere

SCHEMA = pa.schema([("twice", pa.int64()), ("word", pa.string())])


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> lt.Table:
    """Return a table of four fragments, one of which is gone, with deleted rows."""
    made = lt.create_table(
        tmp_path / "t",
        pa.table({"id": range(100)}),
        max_rows_per_file=30,
        stable_row_ids=request.param,
    )
    made.delete("id % 7 = 0 or (id >= 30 and id < 60)")
    return made


def ids(table: lt.Table) -> list[int]:
    found: list[int] = table.scan(["id"]).to_arrow()["id"].to_pylist()
    return found


def batches(numbers: list[int], size: int = 9) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(numbers), size):
        part = numbers[first : first + size]
        yield pa.record_batch([[2 * n for n in part], [f"w{n}" for n in part]], schema=SCHEMA)


def reader(numbers: list[int], size: int = 9) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(numbers, size))


def files(table: lt.Table) -> set[str]:
    return {one.name for one in (Path(table.uri) / "data").iterdir()}


def check(table: lt.Table) -> None:
    for row in table.scan().to_arrow().to_pylist():
        assert row == {"id": row["id"], "twice": 2 * row["id"], "word": f"w{row['id']}"}


@pytest.mark.parametrize("size", [1, 9, 1000])
def test_values_follow_the_live_rows(table: lt.Table, size: int) -> None:
    live = ids(table)
    done = table.columns.add(reader(live, size))
    assert done.columns == ("twice", "word")
    assert ids(table) == live
    check(table)
    assert [len(one.files) for one in table.fragments] == [2, 2, 2]
    past = table.scan(with_row_id=True, include_deleted=True, where="_rowid IS NULL").to_arrow()
    assert past["twice"].null_count == past.num_rows == 11


def test_iterators_and_scans(table: lt.Table) -> None:
    table.columns.add(batches(ids(table)))
    check(table)
    table.columns.add(table.scan({"half": "id / 2"}))
    found = table.scan(["id", "half"]).to_arrow().to_pylist()
    assert all(row["half"] == row["id"] // 2 for row in found)


@pytest.mark.parametrize("change", [-1, -40, -59, 1, 30])
def test_other_numbers_of_rows_are_refused(table: lt.Table, change: int) -> None:
    live = ids(table)
    before, version = files(table), table.version
    given_rows = live[:change] if change < 0 else live + list(range(change))
    text = f"has {59 + change} rows, the table has 59" if change < 0 else "which has 59"
    with pytest.raises(lt.InputError, match=text):
        table.columns.add(reader(given_rows))
    assert files(table) == before
    assert lt.open_table(table.uri).version == version
    assert ids(table) == live


def test_a_stream_that_fails_leaves_nothing(table: lt.Table) -> None:
    before = files(table)

    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(ids(table)[:40])
        raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="the model is gone"):
        table.columns.add(broken())
    assert files(table) == before


def test_what_is_no_stream_is_refused(table: lt.Table) -> None:
    wrong: list[Any] = [reader(ids(table)).read_all(), [1, 2], "x"]
    for data in wrong:
        with pytest.raises(lt.InputError, match="on="):
            table.columns.add(data)
    with pytest.raises(lt.SchemaError, match="'id'"):
        table.columns.add(iter([pa.record_batch({"id": ids(table)})]))
    with pytest.raises(lt.InputError, match="empty"):
        table.columns.add(iter([]))
    with pytest.raises(lt.InputError, match="no columns"):
        table.columns.add(pa.RecordBatchReader.from_batches(pa.schema([]), iter([])))


def test_a_table_without_rows(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", schema=pa.schema([("id", pa.int64())]))
    table.columns.add(reader([]))
    assert table.schema.names == ["id", "twice", "word"]
    with pytest.raises(lt.InputError, match="more rows than the table, which has 0"):
        table.columns.add(table_of_one())


def table_of_one() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"more": [1]})


def test_rows_that_others_delete_meanwhile(table: lt.Table) -> None:
    live = ids(table)
    lt.open_table(table.uri).delete("id < 10 or id > 95")
    table.columns.add(reader(live))
    check(table)
    assert ids(table) == [n for n in live if 10 <= n <= 95]


def test_rows_that_others_add_or_move_meanwhile(table: lt.Table) -> None:
    live = ids(table)
    other = lt.open_table(table.uri)
    for change in (
        lambda: other.append(pa.table({"id": [1000]})),
        lambda: other.update({"id": "id"}, "id = 1"),
        lambda: other.columns.add({"more": "id"}),
        other.compact,
    ):
        table.refresh()
        live = ids(table)
        other.refresh()
        change()
        before = files(table)
        with pytest.raises(lt.ConflictError, match="another writer"):
            table.columns.add(reader(live))
        assert files(table) == before


def test_a_failing_store_leaves_nothing_behind(table: lt.Table) -> None:
    live = ids(table)
    change = lambda snapshot: add_streamed_columns(snapshot, reader(live))  # noqa: E731
    assert len(fail_everywhere(table, change)) > 5
    check(table.refresh())


def test_only_a_part_of_the_stream_is_in_memory(tmp_path: Path) -> None:
    rows, width = 1_000, 128  # a mebibyte for each batch
    table = lt.create_table(tmp_path / "t", pa.table({"id": range(150 * rows)}))
    before, seen = pa.total_allocated_bytes(), []

    def vectors() -> Iterator[pa.RecordBatch]:
        for number in range(150):
            values = pa.repeat(pa.scalar(float(number)), rows * width)
            seen.append(pa.total_allocated_bytes() - before)
            yield pa.record_batch({"v": pa.FixedSizeListArray.from_arrays(values, width)})

    table.columns.add(vectors())
    assert max(seen) < 80 * 2**20
    (last,) = table.take([150 * rows - 1], columns=["v"])["v"].to_pylist()
    assert last == [149.0] * width


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6), fragment_rows=st.integers(7, 40))
def test_batches_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], fragment_rows: int
) -> None:
    table = lt.create_table(
        tmp_path_factory.mktemp("t") / "t",
        pa.table({"id": range(sum(sizes) + 1)}),
        max_rows_per_file=fragment_rows,
    )
    table.delete(f"id % 5 = {len(sizes) % 5} and id > 0")
    live = ids(table)

    def cut() -> Iterator[pa.RecordBatch]:
        first = 0
        for size in [*sizes, len(live)]:
            yield from batches(live[first : first + size], 100)
            first += size

    table.columns.add(pa.RecordBatchReader.from_batches(SCHEMA, cut()))
    check(table)
