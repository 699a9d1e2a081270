"""Random tables that pylance writes, and then changes in random ways, are read equal."""

import os
import tempfile
from dataclasses import replace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import lancetable
from tests.oracle.refusals import is_refusal
from tests.oracle.test_random_files import quoted
from tests.same import assert_same_array, assert_same_table
from tests.strategies import ABILITIES, NAMES, tables

pytestmark = pytest.mark.oracle

EXAMPLES = 300
SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000")) // 3
ROW_COLUMNS = ["_rowid", "_rowaddr"]

# In whole tables pylance loses columns whose names hold a backtick.
TAME = tuple(name for name in NAMES if "`" not in name)

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "delete", "delete_range", "add_sql", "add_nulls", "update"]),
        st.integers(0, 1000),
    ),
    max_size=4,
)
plans = st.sampled_from(sorted(ABILITIES)).flatmap(
    lambda version: st.fixed_dictionaries(
        {
            "table": tables(replace(ABILITIES[version], names=TAME), most_rows=900),
            "version": st.just(version),
            "steps": steps,
            "rows_per_file": st.sampled_from([7, 100, 1_000_000]),
            "stable": st.booleans(),
            "seed": st.integers(0, 1000),
        }
    )
)


def with_id(table: pa.Table) -> pa.Table:
    """Return the table with a first column that numbers the rows."""
    numbers = pa.array(np.arange(table.num_rows), pa.int64())
    return table.add_column(0, pa.field("id", pa.int64()), numbers)


def build(plan: dict[str, Any], uri: str) -> Any:
    """Let pylance write a table and change it."""
    table = with_id(plan["table"])
    lance.write_dataset(
        table,
        uri,
        data_storage_version=plan["version"],
        max_rows_per_file=max(plan["rows_per_file"], table.num_rows // 12 + 1),
        enable_stable_row_ids=plan["stable"],
    )
    for number, (step, value) in enumerate(plan["steps"]):
        apply(lance.dataset(uri), table, step, value, number)
    return lance.dataset(uri)


def apply(dataset: Any, table: pa.Table, step: str, value: int, number: int) -> None:
    """Change the table in one way."""
    if step == "append":
        if [field.name for field in dataset.schema] == table.column_names:
            lance.write_dataset(table.slice(0, value), dataset.uri, mode="append")
    elif step == "delete":
        dataset.delete(f"id % {value % 7 + 2} = 0")
    elif step == "delete_range":
        dataset.delete(f"id >= {value} and id < {value + 50}")
    elif step == "add_sql":
        dataset.add_columns({f"added {number}": f"id * {value}"})
    elif step == "add_nulls":
        dataset.add_columns(pa.schema([pa.field(f"empty {number}", pa.list_(pa.int32()))]))
    else:
        dataset.update({"id": f"id + {value}"}, where=f"id % {value % 5 + 2} = 1")


def check(plan: dict[str, Any]) -> None:
    """Build a table and read it in every way."""
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t.lance"
        try:
            dataset = build(plan, uri)
            expected = dataset.to_table(with_row_id=True, with_row_address=True)
        except BaseException as cause:
            if is_refusal(cause):
                reject()
            raise
        compare(lancetable.open_table(uri), expected, plan["seed"])


def compare(table: lancetable.Table, expected: pa.Table, seed: int) -> None:
    """Compare by scan, by batches, by single and nested columns, and by single rows."""
    names = [name for name in expected.column_names if name not in ROW_COLUMNS]
    assert table.count() == expected.num_rows
    whole = table.scan(with_row_id=True, with_row_address=True).to_arrow()
    assert_same_table(whole, expected)
    chance = np.random.default_rng(seed)
    rows_each = int(chance.integers(1, 300))
    batches = list(table.scan(batch_rows=rows_each, batch_bytes=1 << 14).to_batches())
    assert all(0 < batch.num_rows <= rows_each for batch in batches)
    joined = pa.Table.from_batches(batches, schema=table.scan().schema)
    assert_same_table(joined, expected.select(names))
    if not expected.num_rows:
        return
    rows = chance.integers(0, expected.num_rows, 12)
    # A take of pyarrow would have to make one dictionary of several.
    picked = pa.concat_tables([expected.slice(row, 1) for row in rows.tolist()])
    wanted = [*(quoted((name,)) for name in names), *ROW_COLUMNS]
    assert_same_table(table.take(rows.tolist(), columns=wanted), picked)
    assert_same_table(table.take(rows.tolist()), picked.select(names))
    for way, column in (("row_ids", "_rowid"), ("row_addresses", "_rowaddr")):
        found = table.take(**{way: picked.column(column).to_pylist()}, columns=wanted)
        assert_same_table(found, picked)
    offset, limit = int(chance.integers(0, expected.num_rows)), int(chance.integers(0, 200))
    part = table.scan(offset=offset, limit=limit).to_arrow()
    assert_same_table(part, expected.select(names).slice(offset, limit))
    for name in names:
        _compare_children(table, expected.column(name), (name,), rows)


def _compare_children(
    table: lancetable.Table, column: pa.ChunkedArray, path: tuple[str, ...], rows: np.ndarray
) -> None:
    """Compare what lies inside a struct, asked for by its path; null where the struct is."""
    if not pa.types.is_struct(column.type) or _is_packed(table, path):
        return
    try:
        array = column.combine_chunks()
    except pa.ArrowInvalid:
        # Arrow does not join dictionaries that hold a null, as pylance gives them for 2.0 files.
        return
    for number in range(column.type.num_fields):
        inner = (*path, column.type.field(number).name)
        child = pc.struct_field(array, [number])
        found = table.scan([quoted(inner)]).to_arrow().column(0)
        assert_same_array(found, child, quoted(inner))
        some = table.take(rows.tolist(), columns=[quoted(inner)]).column(0)
        assert_same_array(some, child.take(pa.array(rows)), quoted(inner))


def _is_packed(table: lancetable.Table, path: tuple[str, ...]) -> bool:
    metadata = table.schema.field(path[0]).metadata or {}
    return b"lance-encoding:packed" in metadata


@settings(max_examples=EXAMPLES)
@given(plans)
def test_random_tables_read_equal(plan: dict[str, Any]) -> None:
    check(plan)


@pytest.mark.soak
@settings(max_examples=SOAK, derandomize=False)
@given(plans)
def test_random_tables_read_equal_at_length(plan: dict[str, Any]) -> None:
    check(plan)
