"""Every function gives what SQL users expect, missing values included."""

import datetime as dt
import math
import re

import pyarrow as pa
import pytest

from lancetable.errors import ExpressionError
from lancetable.expression import bind, columns, evaluate, parse
from lancetable.expression.functions.geo import GEO_FUNCTIONS
from lancetable.expression.functions.table import FUNCTIONS

BATCH = pa.record_batch(
    {
        "s": pa.array(["abc", None], pa.string()),
        "big": pa.array(["abc", None], pa.large_string()),
        "pattern": pa.array(["b", None], pa.string()),
        "n": pa.array([2, None], pa.int32()),
        "f": pa.array([-2.5, None], pa.float64()),
        "d": pa.array([dt.date(2024, 2, 29), None]),
        "ts": pa.array(["2024-02-29T13:14:15.123456", None]).cast(pa.timestamp("us")),
        "tz": pa.array(["2024-02-29T23:30:00", None])
        .cast(pa.timestamp("us"))
        .cast(pa.timestamp("us", "Asia/Tokyo")),
        "l": pa.array([[1, None, 3], None], pa.list_(pa.int32())),
        "ls": pa.array([["a", "b"], None], pa.list_(pa.string())),
        "j": pa.array(['{"a":1,"b":"x","c":[1,"y",null,true],"d":{"e":2.5}}', None], pa.json_()),
    }
)

CASES = [
    ("lower('ÀB')", "àb"),
    ("upper(s)", "ABC"),
    ("upper(big)", "ABC"),
    ("length('añ')", 2),
    ("char_length(s)", 3),
    ("character_length(s)", 3),
    ("octet_length('añ')", 3),
    ("bit_length(s)", 24),
    ("substr(s, 2)", "bc"),
    ("substr(s, 0, 2)", "a"),
    ("substr(s, n, 1)", "b"),
    ("substring(s FROM 2 FOR 1)", "b"),
    ("left(s, -1)", "ab"),
    ("right(s, n)", "bc"),
    ("right(s, 0)", ""),
    ("trim('  x ')", "x"),
    ("btrim('xax', 'x')", "a"),
    ("ltrim('xax', 'x')", "ax"),
    ("rtrim('xax', 'x')", "xa"),
    ("trim(LEADING 'x' FROM 'xax')", "ax"),
    ("replace(s, 'b', '--')", "a--c"),
    ("replace(s, pattern, 'Z')", "aZc"),
    ("concat(s, 1, NULL)", "abc1"),
    ("concat_ws('-', s, n)", "abc-2"),
    ("s || n", "abc2"),
    ("named_struct('a', n, 'b', s)['b']", "abc"),
    ("named_struct('a', 1, 'b', 'x')", {"a": 1, "b": "x"}),
    ("starts_with(s, 'ab')", True),
    ("contains_tokens(s, 'abc')", True),
    ("contains_tokens('red fox', 'fox red')", True),
    ("contains_tokens('red fox', 'fo')", False),
    ("ends_with(s, pattern)", False),
    ("contains(s, 'bc')", True),
    ("strpos(s, 'c')", 3),
    ("instr(s, 'x')", 0),
    ("position('b' IN s)", 2),
    ("split_part('a,b,c', ',', 2)", "b"),
    ("split_part('a,b,c', ',', -1)", "c"),
    ("split_part('a,b,c', ',', 9)", ""),
    ("reverse(s)", "cba"),
    ("lpad(s, 5, 'xy')", "xyabc"),
    ("lpad(s, 2)", "ab"),
    ("rpad(s, 5)", "abc  "),
    ("repeat(s, n)", "abcabc"),
    ("initcap('hello wORLD')", "Hello World"),
    ("ascii(s)", 97),
    ("regexp_like(s, 'B', 'i')", True),
    ("regexp_like(s, pattern)", True),
    ("regexp_match(s, 'a(b)')", ["b"]),
    ("regexp_count('aXbX', 'X')", 2),
    ("regexp_replace('bbb', 'b', 'Q')", "Qbb"),
    ("regexp_replace('ab', '(a)(b)', '$2$1')", "ba"),
    ("regexp_replace('bbb', 'b', 'Q', 'g')", "QQQ"),
    ("md5('')", "d41d8cd98f00b204e9800998ecf8427e"),
    ("octet_length(sha256(s))", 32),
    ("abs(-5)", 5),
    ("round(f)", -3.0),
    ("round(3.14159, 2)", 3.14),
    ("trunc(f)", -2.0),
    ("floor(f)", -3.0),
    ("ceil(f)", -2.0),
    ("ceiling(n)", 2.0),
    ("sqrt(4)", 2.0),
    ("exp(0)", 1.0),
    ("ln(1)", 0.0),
    ("log(100)", 2.0),
    ("log(2, 8)", 3.0),
    ("log10(1000)", 3.0),
    ("log2(8)", 3.0),
    ("power(n, 3)", 8.0),
    ("pow(2, -1)", 0.5),
    ("sin(0)", 0.0),
    ("cos(0)", 1.0),
    ("tan(0)", 0.0),
    ("asin(0)", 0.0),
    ("acos(1)", 0.0),
    ("atan(0)", 0.0),
    ("atan2(0, 1)", 0.0),
    ("degrees(0)", 0.0),
    ("radians(0)", 0.0),
    ("sign(f)", -1.0),
    ("signum(n)", 1),
    ("mod(n, 2)", 0),
    ("isnan(f)", False),
    ("iszero(0)", True),
    ("nanvl('NaN'::double, 3)", 3.0),
    ("greatest(n, 5, NULL)", 5),
    ("least(n, f)", -2.5),
    ("greatest(f, 'NaN'::double) = 'NaN'::double", True),
    ("coalesce(NULL, n)", 2),
    ("nvl(NULL, 4)", 4),
    ("ifnull(n, 4)", 2),
    ("nullif(n, 2)", None),
    ("date_trunc('month', ts)", dt.datetime(2024, 2, 1)),  # noqa: DTZ001
    ("date_trunc('week', d)", dt.datetime(2024, 2, 26)),  # noqa: DTZ001
    ("datetrunc('year', ts)", dt.datetime(2024, 1, 1)),  # noqa: DTZ001
    ("date_part('dow', d)", 4),
    ("datepart('doy', d)", 60),
    ("date_part('millisecond', ts)", 15123),
    ("date_part('microseconds', ts)", 15123456),
    ("date_part('epoch', d)", 1709164800.0),
    ("date_part('hour', d)", 0),
    ("hour(tz)", 8),
    ("extract(day FROM tz)", 1),
    ("year(ts)", 2024),
    ("quarter(ts)", 1),
    ("month(d)", 2),
    ("week(d)", 9),
    ("day(d)", 29),
    ("minute(ts)", 14),
    ("second(ts)", 15),
    ("to_date('2024-02-29')", dt.date(2024, 2, 29)),
    ("CAST(to_timestamp('2024-02-29 01:02:03') AS string)", "2024-02-29T01:02:03"),
    ("CAST(to_timestamp(1.5) AS string)", "1970-01-01T00:00:01.500"),
    ("to_timestamp_seconds(1)", dt.datetime(1970, 1, 1, 0, 0, 1)),  # noqa: DTZ001
    ("to_timestamp_millis(1)", dt.datetime(1970, 1, 1, 0, 0, 0, 1000)),  # noqa: DTZ001
    ("to_timestamp_micros(n)", dt.datetime(1970, 1, 1, 0, 0, 0, 2)),  # noqa: DTZ001
    ("CAST(to_timestamp_nanos(1000) AS timestamp)", dt.datetime(1970, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001
    ("current_date > d", True),
    ("current_timestamp > ts", True),
    ("now() > ts", True),
    ("array_length(l)", 3),
    ("list_length([])", 0),
    ("cardinality(ls)", 2),
    ("array_contains(l, 3)", True),
    ("array_has(l, n)", False),
    ("list_contains(ls, 'b')", True),
    ("list_has(l, 3000000000)", False),
    ("array_has_any(l, [3, 9])", True),
    ("list_has_any(ls, ['z'])", False),
    ("array_has_all(l, [1, 3])", True),
    ("list_has_all(l, [1, n])", False),
    ("array_position(l, 3)", 3),
    ("list_position(l, 9)", None),
    ("array_element(l, -1)", 3),
    ("list_element(l, 0)", None),
    ("array_to_string(ls, '+')", "a+b"),
    ("make_array(1, n)", [1, 2]),
    ("json_extract(j, '$.c[1]')", '"y"'),
    ("json_extract(j, '$.c[*]')", '[1,"y",null,true]'),
    ("json_extract(j, '$[\"d\"].e')", "2.5"),
    ("json_extract(j, 'nope')", None),
    ("json_exists(j, '$.c[3]')", True),
    ("json_exists(j, '$.c[4]')", False),
    ("json_get(j, 'd')", '{"e":2.5}'),
    ("json_get_string(j, 'b')", "x"),
    ("json_get_string(json_get(j, 'c'), 0)", "1"),
    ("json_get_int(j, 'a')", 1),
    ("json_get_int(json_get(j, 'd'), 'e')", 3),
    ("json_get_int(j, 'b')", None),
    ("json_get_float(j, 'a')", 1.0),
    ("json_get_bool(json_get(j, 'c'), 3)", True),
    ("json_array_contains(j, '$.c', 'y')", True),
    ("json_array_contains(j, '$.c', '2')", False),
    ("json_array_length(j, '$.c')", 4),
    ("json_array_length(j, '$.a')", 0),
]

# Not null for a missing argument, by their nature.
ALWAYS_KNOWN = {
    "concat",
    "coalesce",
    "nvl",
    "ifnull",
    "concat_ws",
    "greatest",
    "least",
    "make_array",
}


def run(text):
    return evaluate(bind(parse(text), BATCH.schema), BATCH).to_pylist()


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_the_function_gives_the_value_and_null_for_null(text, wanted):
    first, second = run(text)
    assert first == wanted
    if columns(parse(text)) and text.split("(")[0] not in ALWAYS_KNOWN:
        assert second is None


def test_no_function_is_left_untested():
    texts = " ".join(text for text, _ in CASES)
    tested = FUNCTIONS.keys() - GEO_FUNCTIONS.keys()  # tests/oracle/test_geometries.py has these
    missing = {n for n in tested if not re.search(rf"(?<!\w){re.escape(n)}\(", texts)}
    assert missing == {"current_timestamp", "current_date", "||"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("date_trunc('fortnight', ts)", "does not support 'fortnight'"),
        ("date_part('fortnight', ts)", "no part 'fortnight'"),
        ("date_trunc(s, ts)", "must be a constant"),
        ("regexp_like(s, '(')", "not a regular expression"),
        ("regexp_like(s, 'a', 'q')", "no flag 'q'"),
        ("split_part(s, ',', 0)", "counts the parts from one"),
        ("repeat(s, 1000000000)", "too long"),
        ("json_extract(j, '$.')", "not a JSON path"),
        ("json_extract(s, '$.a')", "is not JSON"),
        ("abs(CAST(-128 AS tinyint))", "does not fit int8"),
        ("round(f, n)", "must be a constant"),
        ("length(l)", "takes text or bytes"),
        ("named_struct('a', 1, 'b')", "pairs of a name and a value"),
        ("named_struct(s, 1)", "names as constant texts"),
        ("named_struct('a', 1, 'a', 2)", "'a' twice"),
        ('lower("text")', "write text in single quotes: 'text'"),
    ],
)
def test_what_a_function_refuses(text, words):
    with pytest.raises(ExpressionError, match=words):
        run(text)


def test_special_floats():
    batch = pa.record_batch({"x": pa.array([math.nan, math.inf, -0.0])})
    found = evaluate(bind(parse("round(x, 2)"), batch.schema), batch).to_pylist()
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -0.0]
