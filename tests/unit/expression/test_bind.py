"""Names are found and constants meet the column's type, or the error says why not."""

import datetime as dt
import decimal
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import ExpressionError
from lancetable.expression import (
    Cast,
    Column,
    bind,
    bind_predicate,
    columns,
    evaluate_mask,
    parse,
    to_sql,
    type_of,
)
from lancetable.expression.tree import walk

SCHEMA = pa.schema(
    [
        ("i8", pa.int8()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("dec", pa.decimal128(5, 2)),
        ("s", pa.string()),
        ("big", pa.large_string()),
        ("word", pa.dictionary(pa.int32(), pa.string())),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("ms")),
        ("tz", pa.timestamp("us", "Europe/Berlin")),
        ("st", pa.struct([("x", pa.int32()), ("Y", pa.struct([("z", pa.string())]))])),
        ("l", pa.list_(pa.int32())),
        ("a.b", pa.int64()),
        ("Name", pa.string()),
        ("twin", pa.int8()),
        ("TWIN", pa.int8()),
        ("j", pa.json_()),
        ("_rowid", pa.uint64()),
    ]
)


def bound(text):
    return bind(parse(text), SCHEMA)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("NAME", ("Name",)),
        ("`Name`", ("Name",)),
        ("ST.y.Z", ("st", "Y", "z")),
        ("`a.b`", ("a.b",)),
        ("a.b", ("a.b",)),
        ("twin", ("twin",)),
        ("_rowid", ("_rowid",)),
    ],
)
def test_a_name_is_found_exactly_or_by_the_only_one_that_differs_in_case(name, path):
    assert columns(bound(f"{name} IS NULL")) == {path}


@pytest.mark.parametrize(
    ("text", "words", "position"),
    [
        ("b and nam = 'x'", "no column 'nam' .at position 6.; did you mean Name", 6),
        ("Twin = 1", "could be any of twin, TWIN", 0),
        ("st.nope = 1", "no field of st 'nope'", 0),
        ("s.x = 1", "column s is of type string and has no field 'x'", 0),
        ("_rowaddr = 1", "no column '_rowaddr'", 0),
        ("s < 5", r"cannot compare s \(string\) and 5 \(int64\)", None),
        ("i8 = '5'", r"cannot compare i8 \(int8\) and '5' \(string\)", None),
        ("day = ts = 5", "cannot compare", None),
        ("s + 1 = 2", r"\+ is not defined for string and int64", None),
        ("i8 AND b", "i8 is of type int8, expected true or false", None),
        ("lower(i8) = 'x'", "lower takes text, but i8 is of type int8", 0),
        ("array_has(l, 'x')", "cannot look for string in list", 0),
        ("s LIKE 5", "LIKE compares text", None),
        ("day > 'tomorrow'", "cannot cast string to timestamp", None),
        ("-u64 = 1", "values of uint64 cannot be negated", None),
        ("l > l", "have no order", None),
        ("l['x'] = 1", "column l is of type list.* and has no field 'x'", 0),
    ],
)
def test_a_misfit_is_explained(text, words, position):
    with pytest.raises(ExpressionError, match=words) as found:
        bind_predicate(parse(text), SCHEMA)
    assert found.value.position == position


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("i8 < 5", "i8 < 5"),
        ("5 > i8", "i8 < 5"),
        ("i8 < 1000", "i8 >= -128"),
        ("i8 = 1000", "i8 < -128"),
        ("i8 <> 1000", "i8 >= -128"),
        ("i8 > -1000", "i8 >= -128"),
        ("i8 >= 0.5", "i8 > 0"),
        ("i8 < 0.5", "i8 <= 0"),
        ("i8 = 2.0", "i8 = 2"),
        ("i8 IS DISTINCT FROM 0.5", "TRUE"),
        ("i8 IN (1, 1.5, 900)", "i8 IN (1)"),
        ("u64 > -1", "u64 >= 0"),
        ("u64 = 18446744073709551615", "u64 = 18446744073709551615"),
        ("i8 < 'NaN'::double", "i8 >= -128"),
        ("dec = 1.25", "dec = 1.25"),
        ("dec > 1.2499", "dec > 1.24"),
        ("dec = 1e10", "dec < -999.99"),
        ("day > '2020-01-31'", "day > (DATE '2020-01-31')"),
        ("day >= timestamp '2020-01-31 00:00:01'", "day > (DATE '2020-01-31')"),
        ("day = timestamp '2020-01-31 00:00:01'", "day <> day"),
        ("NOT (i8 < 5 OR b)", "(i8 >= 5) AND (NOT b)"),
        ("i8 < 2 + 3", "i8 < 5"),
        ("b AND TRUE", "b"),
        ("b AND FALSE", "FALSE"),
        ("b OR 1 = 1", "TRUE"),
        ("i8 = NULL", "NULL"),
        ("i8 IS NOT DISTINCT FROM NULL", "i8 IS NULL"),
        ("lower('ABC') = s", "s = 'abc'"),
    ],
)
def test_constants_move_to_the_column(text, meaning):
    found = bind_predicate(parse(text), SCHEMA)
    assert to_sql(found).replace("DATE '2020-01-31'", "(DATE '2020-01-31')") == meaning
    assert not any(
        isinstance(node, Cast) and isinstance(node.operand, Column) for node in walk(found)
    )


NUMBERS = st.integers(-400, 400) | st.floats(-400, 400, allow_nan=False).map(lambda x: round(x, 3))
SMALL = pa.record_batch(
    {
        "i8": pa.array([-128, -1, 0, 1, 2, 127, None], pa.int8()),
        "u8": pa.array([0, 1, 2, 127, 128, 255, None], pa.uint8()),
        "dec": pa.array(
            [
                None if x is None else decimal.Decimal(x)
                for x in ("-99.99", "-1.00", "0.00", "0.50", "1.25", "99.99", None)
            ],
            pa.decimal128(4, 2),
        ),
    }
)


@given(
    column=st.sampled_from(["i8", "u8", "dec"]),
    op=st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    number=NUMBERS,
)
def test_a_comparison_with_any_number_is_exact(column, op, number):
    python = {"=": "==", "<>": "!="}.get(op, op)
    text = f"{column} {op} {number!r}"
    exact = decimal.Decimal(repr(number))
    values = [None if x is None else decimal.Decimal(x) for x in SMALL[column].to_pylist()]
    names = {"exact": exact}
    wanted = [x is not None and eval(f"x {python} exact", {"x": x, **names}) for x in values]
    found = evaluate_mask(bind_predicate(parse(text), SMALL.schema), SMALL)
    assert found.tolist() == wanted


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("i8 + 1", pa.int32()),
        ("i8 / 2", pa.int8()),
        ("i8 / 2.0", pa.float64()),
        ("f32 + 1", pa.float32()),
        ("u64 - 1", pa.int64()),
        ("coalesce(i8, 5)", pa.int8()),
        ("coalesce(i8, 500)", pa.int64()),
        ("big", pa.large_string()),
        ("word || 'x'", pa.string()),
        ("st.Y", pa.struct([("z", pa.string())])),
        ("l[1]", pa.int32()),
        ("day - day", pa.int64()),
        ("ts - ts", pa.duration("ms")),
        ("day + interval '1 month'", pa.date32()),
        ("CASE WHEN b THEN i8 ELSE 2.5 END", pa.float64()),
        ("json_extract(j, '$.a')", pa.string()),
        ("array_length(l)", pa.uint64()),
        ("date_trunc('day', tz)", pa.timestamp("us", "Europe/Berlin")),
    ],
)
def test_the_type_of_a_result(text, type_):
    assert type_of(bound(text), SCHEMA) == type_


def test_bound_expressions_travel():
    text = (
        "ts + interval '1 month' > to_timestamp('2020-01-01 00:00:00.123456789') AND i8 IN (1, 2)"
    )
    found = bound(text)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    batch = pa.RecordBatch.from_pylist([{"ts": dt.datetime(2020, 1, 1), "i8": 1}, {}], SCHEMA)  # noqa: DTZ001
    assert evaluate_mask(again, batch).tolist() == [True, False]


def test_the_clock_is_read_once():
    found = bound("now() = now() AND current_date <= now()")
    assert to_sql(found) == "TRUE"
