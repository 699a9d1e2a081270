"""Updating rows: by rows and by columns, with and without stable row ids."""

import datetime as dt

import pyarrow as pa
import pytest

import lancetable
from lancetable.commit.transaction import UpdateMode
from lancetable.errors import ExpressionError, InputError, SchemaError
from lancetable.operations.update import update, update_columns
from tests.unit.operations.everywhere import fail_everywhere

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("small", pa.int8()),
        pa.field("f", pa.float32()),
        pa.field("s", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("l", pa.list_(pa.int32())),
    ]
)


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    rows = [
        {"id": n, "small": n, "f": n / 2, "s": f"s{n}", "day": None, "l": [n] * (n % 3)}
        for n in range(10)
    ]
    made = lancetable.create_table(
        str(tmp_path / "t"),
        pa.Table.from_pylist(rows[:6], SCHEMA),
        stable_row_ids=request.param,
    )
    made.append(pa.Table.from_pylist(rows[6:], SCHEMA))
    made.delete("id in (2, 7)")
    return made


@pytest.fixture(params=["rows", "columns"])
def mode(request):
    return request.param


def rows(table):
    found = table.scan().to_arrow().to_pylist()
    return {row["id"]: row for row in found}


def test_old_values_are_seen(table, mode):
    before = rows(table)
    result = table.update({"s": "s || '!'", "f": "f + id", "id": "id + 100"}, "id >= 4", mode=mode)
    assert result.rows == 5
    after = rows(table)
    for id_, row in before.items():
        if id_ < 4:
            assert after[id_] == row
        else:
            wanted = row | {"s": row["s"] + "!", "f": row["f"] + id_, "id": id_ + 100}
            assert after[id_ + 100] == wanted


def test_all_rows(table, mode):
    assert table.update({"s": "null"}, mode=mode).rows == 8
    assert {row["s"] for row in rows(table).values()} == {None}


def test_without_a_match_there_is_no_version(table, mode):
    version = table.version
    assert table.update({"s": "'x'"}, "id > 100", mode=mode).version == version
    assert table.version == version


def test_values_are_cast_when_nothing_is_lost(table, mode):
    table.update({"small": "7", "f": "0.1", "day": "'2024-02-29'"}, "id = 1", mode=mode)
    row = rows(table)[1]
    assert (row["small"], str(row["day"])) == (7, "2024-02-29")
    assert row["f"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"small": "300"}, InputError),
        ({"small": "1.5"}, InputError),
        ({"f": "1e300"}, InputError),
        ({"id": "null"}, InputError),
        ({"day": "'no day'"}, InputError),
        ({"nope": "1"}, SchemaError),
        ({"s": "nope"}, ExpressionError),
        ({"l": "id"}, InputError),
        ({}, InputError),
    ],
)
def test_what_does_not_fit_changes_nothing(table, mode, values, error):
    store = table._snapshot.store
    before = {entry.path for entry in store.list("")}
    with pytest.raises(error):
        table.update(values, mode=mode)
    assert {entry.path for entry in store.list("")} == before


def test_rows_keep_their_ids(table, mode):
    if not table._snapshot.manifest.next_row_id:
        pytest.skip("no stable row ids")
    names = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    before = {row["id"]: row for row in table.scan(names).to_arrow().to_pylist()}
    table.update({"s": "'x'"}, "id % 3 = 0", mode=mode)
    for row in table.scan(names).to_arrow().to_pylist():
        old = before[row["id"]]
        assert row["_rowid"] == old["_rowid"]
        assert row["_row_created_at_version"] == old["_row_created_at_version"]
        changed = table.version if row["id"] % 3 == 0 else old["_row_last_updated_at_version"]
        assert row["_row_last_updated_at_version"] == changed


def test_columns_mode_writes_the_columns_only(table):
    table.update({"s": "'x'"}, "id = 1", mode="columns")
    operation = table._snapshot.transaction().operation
    assert operation.update_mode is UpdateMode.REWRITE_COLUMNS
    first = table.fragments[0]
    assert [-2 in file.fields for file in first.files] == [True, False]
    assert len(first.files[1].fields) == 1
    assert len(table.fragments[1].files) == 1


def test_other_rows_may_change_meanwhile(table):
    other = lancetable.open_table(table.uri)
    table.update({"s": "'a'"}, "id = 1")
    other.update({"s": "'b'"}, "id = 3")
    found = rows(lancetable.open_table(table.uri))
    assert (found[1]["s"], found[3]["s"], len(found)) == ("a", "b", 8)


def test_the_same_row_is_changed_twice(table, mode):
    other = lancetable.open_table(table.uri)
    table.update({"f": "f + 1"}, "id = 1", mode=mode)
    other.update({"f": "f + 1"}, "id = 1", mode=mode)
    assert rows(lancetable.open_table(table.uri))[1]["f"] == 2.5


@pytest.mark.parametrize("recipe", [update, update_columns])
def test_a_failure_leaves_nothing_behind(table, recipe):
    failures = fail_everywhere(table, lambda faulty: recipe(faulty, {"s": "'x'"}, "id in (1, 8)"))
    assert len(failures) > 5
    assert rows(lancetable.open_table(table.uri))[8]["s"] == "x"


VALUES = pa.schema(
    [
        ("v", pa.list_(pa.float32(), 2)),
        ("h", pa.list_(pa.float16(), 2)),
        ("li", pa.list_(pa.int32())),
        ("big", pa.large_list(pa.float32())),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("nested", pa.list_(pa.list_(pa.float32()))),
        ("t", pa.time64("us")),
        ("t32", pa.time32("s")),
        ("i", pa.int32()),
    ]
)


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("v", "[42.0, 43]", [42.0, 43.0]),
        ("v", "[1.5, NULL]", [1.5, None]),
        ("h", "[42.0, 43.5]", [42.0, 43.5]),
        ("li", "[1.0, 2]", [1, 2]),
        ("li", "[]", []),
        ("li", "make_array(i, 3)", [7, 3]),
        ("big", "[0.5]", [0.5]),
        ("nested", "[[1, 2], [0.5]]", [[1.0, 2.0], [0.5]]),
        ("st", "named_struct('b', 'q', 'a', 5)", {"a": 5, "b": "q"}),
        ("st", "named_struct('a', i)", {"a": 7, "b": None}),
        ("t", "'10:11:12.123456'", dt.time(10, 11, 12, 123456)),
        ("t32", "'1:02:03'", dt.time(1, 2, 3)),
        ("i", "i << 2 | 1", 29),
    ],
)
def test_constants_fit_the_column(tmp_path, column, text, value):
    made = lancetable.create_table(str(tmp_path / "t"), pa.Table.from_pylist([{"i": 7}], VALUES))
    made.update({column: text})
    assert made.scan().to_arrow()[column].to_pylist() == [value]
    assert made.scan().to_arrow().schema.equals(VALUES)


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("v", "[1.0]", "takes lists of 2 values"),
        ("v", "[1.0, 1e300]", "cannot hold 1e"),
        ("li", "[1.5]", "'li.item' of type int32 cannot take all values"),
        ("st", "named_struct('c', 1)", "cannot take values of"),
        ("t", "'25:00:00'", "'t' of type time64.us. cannot take all values"),
        ("t32", "'10:11:12.5'", "'t32' of type time32.s. cannot take all values"),
    ],
)
def test_constants_that_do_not_fit(tmp_path, column, text, message):
    made = lancetable.create_table(str(tmp_path / "t"), pa.Table.from_pylist([{"i": 7}], VALUES))
    with pytest.raises((InputError, SchemaError), match=message):
        made.update({column: text})
    assert made.version == 1
