"""Scans of golden tables: the same rows whatever the way they are asked for."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancetable import open_table
from lancetable.errors import ExpressionError, InputError, SchemaError
from tests.same import assert_same_table

TABLES = ("delete_arrow", "nested", "add_columns", "multi_fragment", "nested_v01", "all_types")


def opened(golden, name):
    return open_table(str(golden / "table" / f"{name}.lance"))


@pytest.mark.parametrize("name", TABLES)
def test_the_schema_of_the_table_is_that_of_its_scan(golden, name):
    table = opened(golden, name)

    assert table.scan().to_arrow().schema.equals(table.schema, check_metadata=True)
    assert table.scan().schema.equals(table.schema, check_metadata=True)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("options", [{"batch_rows": 3}, {"batch_bytes": 1, "threads": 2}])
def test_batches_hold_the_rows_of_the_whole(golden, name, options):
    table = opened(golden, name)
    batches = list(table.scan(**options).to_batches())

    assert_same_table(pa.Table.from_batches(batches, table.schema), table.scan().to_arrow())
    if "batch_rows" in options:
        assert max(batch.num_rows for batch in batches) <= 3


@pytest.mark.parametrize("where", [None, "id >= 0"])
@pytest.mark.parametrize(
    ("limit", "offset"), [(0, 0), (7, 0), (None, 30), (9, 17), (500, 3), (5, 99)]
)
def test_limit_and_offset(golden, where, limit, offset):
    table = opened(golden, "delete_arrow")
    whole = table.scan().to_arrow()

    scan = table.scan(where=where, limit=limit, offset=offset)

    expected = whole.slice(offset, limit if limit is not None else len(whole))
    assert scan.to_arrow().equals(expected)
    assert scan.count() == len(expected)


@pytest.mark.parametrize(
    "where", ["id < 3", "id >= 0", "id < 0", "id % 2 = 0", "name IS NULL", "_rowaddr > 10"]
)
def test_a_predicate_keeps_the_rows_it_is_true_for(golden, where):
    table = opened(golden, "delete_arrow")
    whole = table.scan(columns=["id", "name", "x", "_rowaddr"]).to_arrow()
    tests = {
        "id < 3": pc.field("id") < 3,
        "id >= 0": pc.field("id") >= 0,
        "id < 0": pc.field("id") < 0,
        "id % 2 = 0": pc.field("id") == pc.multiply(pc.floor(pc.divide(pc.field("id"), 2)), 2),
        "name IS NULL": pc.field("name").is_null(),
        "_rowaddr > 10": pc.field("_rowaddr") > 10,
    }
    if where == "id % 2 = 0":
        expected = whole.filter(pa.array([row % 2 == 0 for row in whole["id"].to_pylist()]))
    else:
        expected = whole.filter(tests[where])

    found = table.scan(columns=["id", "name", "x", "_rowaddr"], where=where)

    assert found.to_arrow().equals(expected)
    assert found.count() == table.count(where) == len(expected)


def test_an_arrow_expression_filters_too(golden):
    table = opened(golden, "multi_fragment")

    found = table.scan(["id"], where=pc.field("id") > 97).to_arrow()

    assert found["id"].to_pylist() == [98, 99]


def test_columns_may_be_computed(golden):
    table = opened(golden, "multi_fragment")

    found = table.scan({"twice": "id * 2", "one": "1"}, where="id < 2", with_row_id=True).to_arrow()

    assert found.to_pylist() == [
        {"twice": 0, "one": 1, "_rowid": 0},
        {"twice": 2, "one": 1, "_rowid": 1},
    ]


def test_no_columns_still_have_rows(golden):
    table = opened(golden, "multi_fragment")

    assert table.scan([]).to_arrow().num_rows == 100
    assert table.scan([], where="id > 89").to_arrow().num_rows == 10


def test_struct_children_and_list_items_by_path(golden):
    table = opened(golden, "nested")
    whole = table.scan(["st"]).to_arrow()["st"].to_pylist()

    found = table.scan(["st.a", "st.inner.s", "st.ls.item.q"]).to_arrow()

    assert found["st.a"].to_pylist() == [row and row["a"] for row in whole]
    inner = [row and row["inner"] and row["inner"]["s"] for row in whole]
    assert found["st.inner.s"].to_pylist() == inner
    assert found["st"].to_pylist() == [
        row and {"ls": row["ls"] and [item and {"q": item["q"]} for item in row["ls"]]}
        for row in whole
    ]


def test_a_scan_is_an_arrow_stream(golden):
    table = opened(golden, "delete_arrow")
    scan = table.scan(where="id > 5")

    assert pa.table(scan).equals(scan.to_arrow())
    assert pa.RecordBatchReader.from_stream(scan).read_all().equals(scan.to_arrow())
    assert pa.schema(scan) == scan.schema
    assert sum(batch.num_rows for batch in scan) == scan.count()


def test_an_abandoned_stream_stops(golden):
    batches = opened(golden, "multi_fragment").scan(threads=2).to_batches()

    assert next(batches).num_rows > 0
    batches.close()

    assert list(batches) == []


def test_explain_names_the_stages(golden):
    text = opened(golden, "delete_arrow").scan(where="id > 5", limit=2).explain()

    assert "first read: id" in text
    assert "for the rows that pass: name, x" in text
    assert "limit: 2" in text


def test_mistakes_are_named(golden):
    table = opened(golden, "delete_arrow")
    with pytest.raises(SchemaError, match="did you mean 'name'"):
        table.scan(["nam"]).to_arrow()
    with pytest.raises(ExpressionError, match="nam"):
        table.scan(where="nam = 'x'").to_arrow()
    with pytest.raises(ExpressionError, match="true or false"):
        table.count("id + 1")


@pytest.mark.parametrize("wrong", ["5", 1.5, True])
def test_limits_and_offsets_are_whole_numbers(golden, wrong):
    table = opened(golden, "delete_arrow")
    with pytest.raises(InputError, match="limit must be a whole number"):
        table.scan(limit=wrong)
    with pytest.raises(InputError, match="offset must be a whole number"):
        table.scan(offset=wrong)
    assert table.scan(limit=np.int64(2)).to_arrow().num_rows == 2
