"""Names of Arrow types, and the casts that use them."""

import datetime as dt

import pyarrow as pa
import pytest

from lancetable.errors import ExpressionError
from lancetable.expression import bind, evaluate, parse, to_sql
from lancetable.expression.arrow_types import arrow_type_name, parse_arrow_type

NAMED = {
    "Int32": pa.int32(),
    "Float16": pa.float16(),
    "LargeUtf8": pa.large_string(),
    "Time32(Second)": pa.time32("s"),
    "Time64(Nanosecond)": pa.time64("ns"),
    "Duration(Millisecond)": pa.duration("ms"),
    "Timestamp(Microsecond, None)": pa.timestamp("us"),
    'Timestamp(Nanosecond, Some("+09:00"))': pa.timestamp("ns", "+09:00"),
    "Decimal128(10, -2)": pa.decimal128(10, -2),
    "Decimal256(70, 2)": pa.decimal256(70, 2),
    "FixedSizeBinary(4)": pa.binary(4),
    "List(Int32)": pa.list_(pa.int32()),
    "LargeList(List(Utf8))": pa.large_list(pa.list_(pa.string())),
    "FixedSizeList(2, Float32)": pa.list_(pa.float32(), 2),
    "Dictionary(Int8, Utf8)": pa.dictionary(pa.int8(), pa.string()),
}


@pytest.mark.parametrize(("name", "type_"), NAMED.items())
def test_names_go_both_ways(name, type_):
    assert parse_arrow_type(name) == type_
    assert arrow_type_name(type_) == name


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("Timestamp(ns)", pa.timestamp("ns")),
        ('Timestamp(µs, "UTC")', pa.timestamp("us", "UTC")),
        (" FixedSizeList( 2 x Float32 ) ", pa.list_(pa.float32(), 2)),
    ],
)
def test_other_spellings(name, type_):
    assert parse_arrow_type(name) == type_


@pytest.mark.parametrize(
    "name",
    [
        "",
        "int32",
        "Int32)",
        "List(",
        "List()",
        "Time64(Second)",
        "Timestamp(Day)",
        "Decimal128(99, 0)",
        "FixedSizeList(x, Int8)",
        "Int32 Int32",
        "Timestamp(ns, ",
        "💥",
    ],
)
def test_what_is_no_type(name):
    assert parse_arrow_type(name) is None
    with pytest.raises(ExpressionError, match="is not an Arrow type; write it like"):
        parse(f"arrow_cast(a, '{name}')")


BATCH = pa.record_batch({"i": pa.array([1, None], pa.int32()), "s": ["01:02:03.5", "x"]})


@pytest.mark.parametrize(
    ("text", "type_", "first"),
    [
        ("arrow_cast(i, 'Float16')", pa.float16(), 1.0),
        ("arrow_cast(i, 'LargeUtf8')", pa.large_string(), "1"),
        ("arrow_cast([1.0, 2.0], 'FixedSizeList(2, Float32)')", pa.list_(pa.float32(), 2), [1, 2]),
        (
            "arrow_try_cast(s, 'Time64(Microsecond)')",
            pa.time64("us"),
            dt.time(1, 2, 3, 500_000),
        ),
        ("arrow_cast(i, 'Float16') + 1", pa.float32(), 2.0),
    ],
)
def test_casts_keep_the_type(text, type_, first):
    bound = bind(parse(text), BATCH.schema)
    found = evaluate(bound, BATCH)
    assert found.type == type_
    assert found[0].as_py() == first
    again = bind(parse(to_sql(bound)), BATCH.schema)
    assert evaluate(again, BATCH).to_pylist() == found.to_pylist()


@pytest.mark.parametrize("text", ["arrow_cast(i)", "arrow_cast(i, s)", "arrow_cast(i, 'Int8', 1)"])
def test_the_type_is_a_constant(text):
    with pytest.raises(ExpressionError, match="takes a value and the text of an Arrow type"):
        parse(text)
