"""Random predicates select the same rows here as in pylance.

Where the two differ on purpose, the generator keeps away from it:

* pylance refuses a constant the column's type cannot hold (``tiny < 1000``, ``i = 0.5``,
  ``dec = 1.25``), text against dates and timestamps, CASE, SUBSTR, TRIM, FLOOR, CEIL, EXTRACT,
  INTERVAL, ESCAPE, ``IS UNKNOWN`` and ``BETWEEN SYMMETRIC``; all of them work here.
* Integer arithmetic that leaves its type wraps around in pylance and is an error here; sums,
  differences and products of 8 and 16 bit integers are computed in 32 bits.
* Zero and minus zero are equal here; in pylance only when one of them is a constant.
* Double quotes mean a name here, as in standard SQL, and text in pylance; where there is no such
  column the error says how text is written.
* ``&`` and ``|`` are parsed by pylance and then refused.
* ``array_has_all(NULL, [])`` is true in pylance and null here.
* pylance compares decimals with floats by casting the float to a decimal, which fails for NaN.
* pylance compares integers with dates by their day number; here that is an error.
* pylance reads ``a IS DISTINCT FROM b AND c`` as ``a IS DISTINCT FROM (b AND c)``.
* pylance rewrites ``cast(dec as int) = 1`` to ``dec = 1.00`` and so misses 1.25.
* pylance takes ``x IN (NULL) AND NOT x IN (NULL)`` for false where it is unknown.
* pylance evaluates both sides of AND for all rows of a batch; here a guard protects a division.
"""

import datetime as dt
import decimal
import json
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancetable
from lancetable.expression import bind_predicate, evaluate_mask, parse, to_sql
from lancetable.format.encoding.jsonb import decode_jsonb, encode_jsonb

pytestmark = pytest.mark.oracle

ROWS = 400


def _with_nulls(random: np.random.Generator, values: list[object]) -> list[object]:
    missing = random.random(len(values)) < 0.15
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def _table() -> pa.Table:
    random = np.random.default_rng(7)

    def pick(choices: list[object]) -> list[object]:
        return _with_nulls(random, [choices[i] for i in random.integers(0, len(choices), ROWS)])

    floats: list[object] = [0.0, -0.0, 1.5, -2.25, 3.0, 100.0, float("nan"), float("inf")]
    floats.append(float("-inf"))
    texts: list[object] = ["", "a", "A", "ab", "aB%", "a_b", "añb", "b\nc", "zz", "100", "a\\b"]
    days: list[object] = [dt.date(2020, 1, 31), dt.date(1969, 12, 31)]
    days += [dt.date(2024, 2, 29), dt.date(2024, 3, 1)]
    times: list[object] = [
        np.datetime64(each).item()
        for each in (
            "2020-01-31T01:02:03.456789",
            "1969-12-31T23:59:59.000001",
            "2024-02-29T00:00:00",
        )
    ]
    decimals: list[object] = [decimal.Decimal(each) for each in ("1.25", "-3.50", "0.00", "7.00")]
    structs: list[object] = [
        {"x": 1, "y": {"z": "a"}},
        {"x": None, "y": None},
        {"x": 3, "y": {"z": None}},
        {"x": -3, "y": {"z": "b"}},
    ]
    lists: list[object] = [[1, 2, 3], [], [None, 5], [3], [2, 2]]
    return pa.table(
        {
            "i8": pa.array(pick(list(range(-4, 5))), pa.int8()),
            "i32": pa.array(pick(list(range(-9, 10))), pa.int32()),
            "i64": pa.array(pick(list(range(-50, 50))), pa.int64()),
            "u16": pa.array(pick(list(range(10))), pa.uint16()),
            "full": pa.array(random.integers(-9, 10, ROWS), pa.int64()),
            "f64": pa.array(pick(floats), pa.float64()),
            "f32": pa.array(pick(floats), pa.float32()),
            "g64": pa.array(pick(floats[2:]), pa.float64()),
            "g32": pa.array(pick(floats[2:]), pa.float32()),
            "s": pa.array(pick(texts), pa.string()),
            "t": pa.array(pick(texts), pa.string()),
            "b": pa.array(pick([True, False]), pa.bool_()),
            "c": pa.array(pick([True, False]), pa.bool_()),
            "d": pa.array(pick(days), pa.date32()),
            "ts": pa.array(pick(times), pa.timestamp("us")),
            "tz": pa.array(pick(times), pa.timestamp("us", "UTC")),
            "dec": pa.array(pick(decimals), pa.decimal128(10, 2)),
            "st": pa.array(
                pick(structs),
                pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))]),
            ),
            "l": pa.array(pick(lists), pa.list_(pa.int64())),
        }
    )


TABLE = _table()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    place = tmp_path_factory.mktemp("expressions") / "table.lance"
    return lance.write_dataset(TABLE, str(place), max_rows_per_file=150)


ORDER = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])
EVERY = ORDER | st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"])


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


small = st.integers(-5, 5).map(str)
integers = st.sampled_from(["i8", "i32", "i64", "full", "st.x", "l[1]", "l[-1]", "st['x']"])
floats = st.sampled_from(["f64", "f32"])
signless = st.sampled_from(["g64", "g32"])
float_values = st.sampled_from(["0.0", "-0.0", "1.5", "-2.25", "3", "1e3", "100.0"])
strings = st.sampled_from(
    ["s", "t", "st.y.z", "lower(s)", "upper(t)", "s || t", "replace(s, 'a', 'b')"]
)
string_values = st.sampled_from(["", "a", "A", "ab", "aB%", "añb", "zz", "b\nc"]).map(_text)
patterns = st.lists(st.sampled_from(["a", "b", "%", "_", "ñ", "\\%", "\\_", "B"]), max_size=4).map(
    lambda parts: _text("".join(parts))
)
dates = st.sampled_from(["date '2020-01-31'", "date '1970-01-01'", "date '2024-03-01'"])
stamps = st.sampled_from(
    [
        "timestamp '2020-01-31 01:02:03.456789'",
        "timestamp '1970-01-01 00:00:00'",
        "date '2024-02-29'",
    ]
)
numbers = integers | st.tuples(integers, st.sampled_from("+-*"), st.integers(1, 3)).map(
    lambda parts: f"({parts[0]} {parts[1]} {parts[2]})" if parts[0] != "i8" else parts[0]
)
divided = st.tuples(
    st.sampled_from(["i32", "i64", "full", "st.x"]), st.sampled_from("/%"), st.integers(1, 4)
).map(lambda parts: f"{parts[0]} {parts[1]} {parts[2]}")


def _joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


def _listed(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.lists(values, min_size=1, max_size=4)
    return some.map(lambda items: f"({', '.join(items)})")


membership = st.sampled_from(["IN", "NOT IN"])
between = st.sampled_from(["BETWEEN", "NOT BETWEEN"])
like = st.sampled_from(["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"])
anything = st.sampled_from(
    ["i8", "i32", "u16", "f64", "s", "b", "d", "ts", "dec", "st", "st.x", "st.y.z", "l"]
)

simple = st.one_of(
    _joined(numbers, EVERY, small),
    _joined(small, ORDER, numbers),
    _joined(numbers, EVERY, numbers),
    _joined(divided, ORDER, small),
    _joined(st.just("u16"), EVERY, st.integers(0, 9).map(str)),
    _joined(integers, membership, _listed(small)),
    _joined(numbers, between, small, st.just("AND"), small),
    _joined(floats, EVERY, float_values | st.just("'NaN'::double")),
    _joined(signless, EVERY, signless),
    _joined(floats, membership, _listed(float_values)),
    _joined(floats, between, float_values, st.just("AND"), float_values),
    _joined(strings, EVERY, string_values),
    _joined(strings, ORDER, strings),
    _joined(st.sampled_from(["s", "t"]), membership, _listed(string_values)),
    _joined(strings, like, patterns),
    _joined(st.just("d"), EVERY, dates | st.just("ts")),
    _joined(st.just("d"), membership, _listed(dates)),
    _joined(st.sampled_from(["ts", "tz"]), EVERY, stamps),
    _joined(st.just("ts"), ORDER, st.sampled_from(["tz", "d"])),
    _joined(
        st.just("dec"), EVERY, small | st.just("i32") | st.just("cast('1.25' as decimal(10,2))")
    ),
    st.sampled_from(["b", "c", "b = c", "b <> true", "NOT b", "b > c", "TRUE", "FALSE"]),
    _joined(anything, st.sampled_from(["IS NULL", "IS NOT NULL"])),
    _joined(
        st.sampled_from(["b", "(i32 > 0)"]),
        st.sampled_from(["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE"]),
    ),
    _joined(
        st.sampled_from(["array_length(l)", "length(s)", "octet_length(t)"]),
        ORDER,
        small.map(lambda text: text.lstrip("-")),
    ),
    _joined(st.just("strpos(s, 'b')"), ORDER, small),
    small.map(lambda value: f"array_has(l, {value})"),
    small.map(lambda value: f"array_has_any(l, [{value}, 2])"),
    small.map(lambda value: f"array_has_all(l, [{value}, 2])"),
    string_values.map(lambda value: f"starts_with(s, {value})"),
    string_values.map(lambda value: f"contains(s, {value})"),
    st.sampled_from(["a.*b", "^a", "b$", "(?i)AB", "[a-z]{2}", "."]).map(
        lambda regex: f"regexp_like(s, '{regex}')"
    ),
    _joined(st.just("coalesce(i32, 3)"), ORDER, small),
    _joined(st.just("nullif(i32, 3)"), ORDER, small),
    _joined(st.just("abs(i64)"), ORDER, small),
    _joined(st.just("greatest(i32, full)"), ORDER, small),
    _joined(st.just("least(f64, f32)"), ORDER, float_values),
    _joined(st.just("round(f64)"), ORDER, float_values),
    _joined(st.just("cast(i32 as string)"), ORDER, st.sampled_from(["'1'", "'-3'", "'7'"])),
    _joined(st.just("cast(dec as double)"), ORDER, float_values),
    _joined(st.just("cast(i64 as double)"), ORDER, float_values),
    _joined(st.just("cast(ts as date)"), ORDER, dates),
    _joined(st.just("try_cast(s as int)"), ORDER, st.just("100")),
    _joined(
        st.sampled_from(["date_part('year', ts)", "date_part('dow', d)", "date_part('hour', tz)"]),
        ORDER,
        st.sampled_from(["2020", "1969", "3", "1"]),
    ),
    _joined(st.just("date_trunc('month', ts)"), ORDER, stamps),
    _joined(
        integers | st.just("u16"),
        st.sampled_from(["<<", ">>"]),
        st.sampled_from(["1", "3", "33", "-1", "1 + 1", "full"]),
        ORDER,
        small,
    ),
    _joined(
        st.sampled_from(["st.x", "named_struct('x', i32)['x']", "arrow_cast(i8, 'Int16')"]),
        ORDER,
        small,
    ),
    _joined(st.just("l"), st.sampled_from(["=", "<>"]), st.sampled_from(["[3]", "[2, 2]"])),
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    word = st.sampled_from(["AND", "OR"])
    return st.one_of(
        st.tuples(inner, word, inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"NOT ({text})"),
        inner.map(lambda text: f"({text}) IS NOT TRUE"),
    )


with_null = st.one_of(
    _joined(integers, membership, _listed(small | st.just("NULL"))),
    _joined(st.just("s"), membership, _listed(string_values | st.just("NULL"))),
    _joined(floats, membership, _listed(float_values | st.just("NULL"))),
)
predicates = with_null | st.recursive(simple.map(lambda text: f"({text})"), _combined, max_leaves=5)


@given(sql=predicates)
def test_random_predicates_select_the_rows_pylance_selects(
    dataset: lance.LanceDataset, sql: str
) -> None:
    wanted = dataset.to_table(columns=[], filter=sql, with_row_address=True)["_rowaddr"]
    offsets = [(each >> 32) * 150 + (each & 0xFFFFFFFF) for each in wanted.to_pylist()]
    bound = bind_predicate(parse(sql), TABLE.schema)
    assert evaluate_mask(bound, TABLE).nonzero()[0].tolist() == sorted(offsets)


@given(sql=predicates)
def test_the_text_of_an_expression_means_the_same(sql: str) -> None:
    bound = bind_predicate(parse(sql), TABLE.schema)
    again = bind_predicate(parse(to_sql(bound)), TABLE.schema)
    assert np.array_equal(evaluate_mask(bound, TABLE), evaluate_mask(again, TABLE))


JSON_TEXTS = [
    "null",
    "[1.0,1e3,1e16,1e-5,1e-7,-0.0,123456789012345678901234567890]",
    '{"b":[true,false,null,{"z":-129,"a":18446744073709551615}],"é":"\\u0001\\u2028😀","":{}}',
    '"\\ud83d"',
]


@pytest.mark.parametrize("document", JSON_TEXTS)
def test_json_documents_are_the_bytes_and_text_of_pylance(tmp_path: Path, document: str) -> None:
    table = pa.table({"j": pa.array([document], pa.json_())})
    written = lance.write_dataset(table, str(tmp_path / "table.lance"))
    assert decode_jsonb(memoryview(encode_jsonb(document))) == written.to_table()["j"][0].as_py()
    stored = written.to_table(columns={"x": "json_get(j, 'b')"})["x"][0].as_py()
    if stored is not None:
        assert encode_jsonb(json.dumps(json.loads(document)["b"])) == stored


UPDATED = pa.schema(
    [
        ("v", pa.list_(pa.float32(), 2)),
        ("h", pa.list_(pa.float16(), 2)),
        ("li", pa.list_(pa.int32())),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("t", pa.time64("us")),
        ("i", pa.int32()),
    ]
)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("v", "[42.0, 43.0]"),
        ("v", "[42, 43]"),
        ("h", "[42.0, 43.5]"),
        ("li", "[1.0, 2.0]"),
        ("li", "make_array(i, 3)"),
        ("st", "named_struct('b', 'q', 'a', 5)"),
        ("st", "named_struct('a', i)"),
        ("t", "'10:11:12.123456'"),
        ("i", "i << 1"),
        ("i", "i << i"),
        ("i", "arrow_cast('7', 'Int32')"),
        ("v", "arrow_cast([1.0, 2.0], 'FixedSizeList(2, Float32)')"),
    ],
)
def test_columns_are_set_to_the_values_pylance_sets(tmp_path: Path, column: str, text: str) -> None:
    rows = pa.Table.from_pylist([{"i": 3}, {"i": None}, {"i": -7}], UPDATED)
    theirs = lance.write_dataset(rows, str(tmp_path / "theirs.lance"))
    ours = lancetable.create_table(str(tmp_path / "ours.lance"), rows)
    theirs.update({column: text})
    ours.update({column: text})
    assert ours.scan().to_arrow().to_pylist() == theirs.to_table().to_pylist()
