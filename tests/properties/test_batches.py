"""Rows that compiled code hands over as a whole are those that the NumPy kernels find."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from lancetable.errors import LanceTableError
from lancetable.file.read import compiled_rows
from lancetable.format.encoding.gather import FlatTake
from lancetable.format.encoding.kernels.addressing import GATHER
from lancetable.fragment import readers
from tests.properties.test_gathering import ROWS, rich_table
from tests.same import assert_same_table
from tests.strategies import ABILITIES, tables

pytestmark = pytest.mark.skipif(GATHER is None, reason="there are no compiled kernels")

NESTED = ["lists", "word_lists", "struct", "struct_lists", "deep"]


def flat_table() -> pa.Table:
    """Return one column for each way a page can hold values without lists and structs."""
    return rich_table().drop_columns(NESTED)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Count the batches: which of the attempts gave one."""
    found: list[bool] = []
    make = FlatTake._batch

    def counted(self: FlatTake, *arguments: Any) -> pa.RecordBatch | None:
        batch = make(self, *arguments)
        found.append(batch is not None)
        return batch

    monkeypatch.setattr(FlatTake, "_batch", counted)
    return found


def in_fragments(folder: Path, table: pa.Table, rows: int = 1000) -> lancetable.Table:
    """Write a table with several fragments and open it anew."""
    made = lancetable.create_table(str(folder), table.slice(0, rows))
    for start in range(rows, table.num_rows, rows):
        made.append(table.slice(start, rows))
    return lancetable.open_table(str(folder))


def test_every_way_to_hold_values(tmp_path: Path, taken: list[bool]) -> None:
    table = flat_table()
    opened = in_fragments(tmp_path / "table", table)
    opened.take(list(range(0, ROWS, 7)))
    taken.clear()
    for count in (1, 2, 7, 8, 9, 65, 900):
        rows = np.random.default_rng(count).integers(0, ROWS, count)
        found = opened.take(rows.tolist())
        found.validate(full=True)
        assert_same_table(found, table.take(pa.array(rows)))
        assert found.schema.equals(opened.schema, check_metadata=True)
    # A column of nulls alone has pages of a shape of its own.
    assert not any(taken)
    without = table.drop_columns(["nothing"])
    opened.take(list(range(0, ROWS, 7)), columns=without.column_names)
    taken.clear()
    for count in (1, 2, 7, 8, 9, 65, 900):
        rows = np.random.default_rng(count).integers(0, ROWS, count)
        found = opened.take(rows.tolist(), columns=without.column_names)
        found.validate(full=True)
        assert_same_table(found, without.take(pa.array(rows)))
    assert taken == [True] * 7


def test_deleted_rows_and_other_names_of_rows(tmp_path: Path, taken: list[bool]) -> None:
    opened = in_fragments(tmp_path / "table", flat_table().drop_columns(["nothing"]))
    opened.delete("packed % 3 = 0")
    whole = opened.scan(with_row_id=True, with_row_address=True).to_arrow()
    kept = whole.drop_columns(["_rowid", "_rowaddr"])
    opened.take(list(range(0, kept.num_rows, 7)))
    taken.clear()
    for count in (1, 9, 900):
        rows = np.random.default_rng(count).integers(0, kept.num_rows, count)
        expected = kept.take(pa.array(rows))
        named = whole.take(pa.array(rows))
        assert_same_table(opened.take(rows.tolist()), expected)
        assert_same_table(opened.take(rows), expected)
        assert_same_table(opened.take(row_ids=named["_rowid"]), expected)
        assert_same_table(opened.take(row_addresses=named["_rowaddr"].to_numpy()), expected)
    assert taken == [True] * 12


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_so_many_rows_that_threads_share_them(
    tmp_path: Path, taken: list[bool], monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(compiled_rows, "free_threads", lambda: threads)
    table = flat_table().drop_columns(["nothing"])
    opened = in_fragments(tmp_path / "table", table)
    opened.take([0, 1000, 2000, 3000, 4000])
    rows = np.random.default_rng(4).integers(0, ROWS, 20_000)
    opened.take(rows.tolist())
    taken.clear()
    expected = table.take(pa.array(rows))

    def take(_: int) -> bool:
        return bool(opened.take(rows.tolist()).equals(expected))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(take, range(9)))
    assert taken == [True] * 9


def test_parts_of_a_result_outlive_it(tmp_path: Path) -> None:
    table = flat_table().drop_columns(["nothing"])
    opened = in_fragments(tmp_path / "table", table)
    rows = [5, ROWS - 1, 5, 77]
    opened.take(rows)
    parts = []
    for found in [opened.take(rows) for _ in range(50)]:
        parts += [column.chunk(0) for column in found.columns]
        parts.append(found["vector"].chunk(0).values)
    del opened
    expected = table.take(rows)
    wholes = [column.combine_chunks() for column in expected.columns]
    wholes.append(expected["vector"].combine_chunks().values)
    for number, part in enumerate(parts):
        assert part.equals(wholes[number % len(wholes)])


def test_a_missing_column_is_null(tmp_path: Path) -> None:
    table = pa.table({"a": range(100)})
    made = lancetable.create_table(str(tmp_path / "table"), table)
    made.columns.add(pa.schema({"b": pa.int64()}))
    made.append(pa.table({"a": [100], "b": [7]}))
    opened = lancetable.open_table(made.uri)
    for _ in range(2):
        assert opened.take([100, 3]).to_pylist() == [{"a": 100, "b": 7}, {"a": 3, "b": None}]
        assert opened.take([100]).to_pylist() == [{"a": 100, "b": 7}]


@pytest.mark.parametrize("rows", [[-1], [100], [0, 100], [1 << 63], ["1"], [1.0], [None], [True]])
def test_what_is_no_row_is_told(rows: list[object], tmp_path: Path) -> None:
    made = lancetable.create_table(str(tmp_path / "table"), pa.table({"a": range(100)}))
    made.take([0])
    with pytest.raises(LanceTableError):
        made.take(rows)
    assert made.take([]).num_rows == 0


@settings(max_examples=40)
@given(version=st.sampled_from(["2.1", "2.2"]), data=st.data())
def test_random_tables(
    version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = data.draw(tables(ABILITIES[version], most_rows=800))
    if not table.num_rows:
        return
    folder = tmp_path_factory.mktemp("batches") / "table"
    made = lancetable.create_table(str(folder), table, storage_version=version)
    picked = data.draw(st.lists(st.integers(0, table.num_rows - 1), min_size=1, max_size=50))
    whole = made.scan().to_arrow()
    for _ in range(2):
        assert_same_table(made.take(picked), whole.take(picked))


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_never_give_what_the_reference_would_not(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "table"
    lancetable.create_table(str(folder), flat_table().drop_columns(["nothing"]))
    (path,) = (folder / "data").iterdir()
    sound = path.read_bytes()
    chance = random.Random(seed)
    rows = chance.sample(range(ROWS), 60)
    for _ in range(30):
        data = bytearray(sound)
        for _ in range(chance.choice([1, 4, 40])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        # A new file each time: bytes that are mapped must not change.
        path.unlink()
        path.write_bytes(data)
        outcomes = []
        for library in (GATHER, None):
            monkeypatch.setattr(readers, "GATHER", library)
            opened = lancetable.open_table(str(folder))
            try:
                # The first opens pages, the second finds them open.
                outcomes.append([opened.take(rows) for _ in range(2)][1])
            except LanceTableError:
                outcomes.append(None)
        gathered, reference = outcomes
        # The reference looks at whole chunks, so it may complain where the gather need not.
        if gathered is not None and reference is not None:
            gathered.validate(full=True)
            assert_same_table(gathered, reference)
