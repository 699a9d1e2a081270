"""Bound expressions give the values and rows SQL says."""

import datetime as dt
import decimal
import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from lancetable.errors import ExpressionError
from lancetable.expression import bind, bind_predicate, evaluate, evaluate_mask, parse

NAN = math.nan
TABLE = pa.table(
    {
        "i": pa.array([7, -7, None, 0], pa.int32()),
        "n": pa.array([1, 2, 3, 4], pa.int64()),
        "f": pa.array([1.5, NAN, None, -0.0]),
        "g": pa.array([NAN, NAN, 1.0, 0.0]),
        "s": pa.array(["abc", "Añb%", None, ""]),
        "word": pa.array(["x", "y", None, "x"]).dictionary_encode(),
        "b": pa.array([True, False, None, True]),
        "c": pa.array([None, True, None, False]),
        "d": pa.array([dt.date(2020, 1, 31), dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)]),
        "ts": pa.array(
            ["2020-01-31T01:02:03.456789", "1969-12-31T23:59:59", None, "2024-02-29T00:00:00"]
        ).cast(pa.timestamp("us")),
        "dec": pa.array(
            [decimal.Decimal("1.25"), decimal.Decimal("-3.50"), None, decimal.Decimal("0.00")]
        ),
        "st": pa.array(
            [{"x": 1, "y": {"z": "q"}}, {"x": None, "y": None}, None, {"x": 3, "y": {"z": None}}]
        ),
        "l": pa.array([[1, 2, 3], [], None, [None, 5]], pa.list_(pa.int64())),
        "fixed": pa.array([[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0]], pa.list_(pa.float32(), 2)),
        "j": pa.array(['{"a":1}', "[1]", None, '{"a":"7"}'], pa.json_()),
        "bin": pa.array([b"abc", b"", None, b"\xff"]),
        "half": pa.array([1.5, 2.5, None, NAN], pa.float16()),
    }
)


def rows(text, table=TABLE):
    return evaluate_mask(bind_predicate(parse(text), table.schema), table).nonzero()[0].tolist()


def values(text, table=TABLE):
    return evaluate(bind(parse(text), table.schema), table).to_pylist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i > 0", [0]),
        ("NOT i > 0", [1, 3]),
        ("i IN (7, NULL)", [0]),
        ("i NOT IN (7, NULL)", []),
        ("i NOT IN (7)", [1, 3]),
        ("i NOT IN (1, 2, 3, 4, 5, 6, 7, 8)", [1, 3]),
        ("i IN (n - 4, 7)", [0, 3]),
        ("b AND c", []),
        ("b OR c", [0, 1, 3]),
        ("NOT (b AND c)", [1, 3]),
        ("(b AND c) IS NULL", [0, 2]),
        ("b IS NOT TRUE", [1, 2]),
        ("b IS FALSE", [1]),
        ("i IS DISTINCT FROM 7", [1, 2, 3]),
        ("i IS NOT DISTINCT FROM NULL", [2]),
        ("f > 1", [0, 1]),
        ("f < 1", [3]),
        ("f = 0", [3]),
        ("f IN (0, 1.5)", [0, 3]),
        ("f = 'NaN'::double", [1]),
        ("f >= 'NaN'::double", [1]),
        ("f < 'NaN'::double", [0, 3]),
        ("f = g", [1, 3]),
        ("f < g", [0]),
        ("f <= g", [0, 1, 3]),
        ("f <> g", [0]),
        ("half > 2", [1, 3]),
        ("s LIKE 'a%'", [0]),
        ("s LIKE '%\\%'", [1]),
        ("s LIKE 'A_b!%' ESCAPE '!'", [1]),
        ("s ILIKE 'AÑ%'", [1]),
        ("s LIKE s", [0, 1, 3]),
        ("s NOT LIKE 'a%'", [1, 3]),
        ("regexp_match(s, '^[aA]')", [0, 1]),
        ("word = 'x'", [0, 3]),
        ("d > '2020-01-01' AND d < timestamp '2024-02-29 00:00:01'", [0, 3]),
        ("ts BETWEEN '2020-01-31' AND '2020-02-01'", [0]),
        ("d = ts", [3]),
        ("dec > 1.2499", [0]),
        ("dec < i", [0]),
        ("st.x > 1", [3]),
        ("st.y.z IS NULL", [1, 2, 3]),
        ("st['y']['z'] = 'q'", [0]),
        ("l[1] = 1 OR l[-1] = 5", [0, 3]),
        ("l = [1, 2, 3]", [0]),
        ("fixed[2] > 3", [1, 3]),
        ("array_has(l, 5)", [3]),
        ("json_get_int(j, 'a') = 7", [3]),
        ("bin = X'616263'", [0]),
        ("TRUE", [0, 1, 2, 3]),
        ("NULL", []),
        ("i <> 0 AND 14 / i = 2", [0]),
        ("i = 0 OR 14 / i = 2", [0, 3]),
    ],
)
def test_the_rows_a_predicate_selects(text, wanted):
    assert rows(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i / 2", [3, -3, None, 0]),
        ("i % 3", [1, -1, None, 0]),
        ("mod(i, 4)", [3, -3, None, 0]),
        ("i * 2 - n", [13, -16, None, -4]),
        ("dec * 2", [decimal.Decimal(x) for x in ("2.50", "-7.00")] + [None, decimal.Decimal(0)]),
        ("dec % 1", [decimal.Decimal("0.25"), decimal.Decimal("-0.50"), None, decimal.Decimal(0)]),
        ("n / 0.0", [math.inf] * 4),
        ("-i", [-7, 7, None, 0]),
        ("CAST(f * 2 AS string)", ["3.0", "NaN", None, "-0.0"]),
        ("CAST(i AS decimal(6, 2))", [decimal.Decimal(7), decimal.Decimal(-7), None, 0]),
        ("CAST(dec AS int)", [1, -3, None, 0]),
        ("CAST(dec AS decimal(5, 1))", [decimal.Decimal(x) for x in ("1.3", "-3.5")] + [None, 0]),
        ("TRY_CAST(s AS int)", [None] * 4),
        ("CAST('yes' AS boolean)", [True] * 4),
        (
            "CAST(ts AS string)",
            ["2020-01-31T01:02:03.456789", "1969-12-31T23:59:59", None, "2024-02-29T00:00:00"],
        ),
        ("CAST('2020-01-01T00:00:00+02:00' AS timestamp)", [dt.datetime(2019, 12, 31, 22)] * 4),  # noqa: DTZ001
        ("CAST(d AS bigint)", [18292, -1, None, 19782]),
        (
            "d + interval '1 month'",
            [dt.date(2020, 2, 29), dt.date(1970, 1, 31), None, dt.date(2024, 3, 29)],
        ),
        (
            "d - interval '1 year 1 day'",
            [dt.date(2019, 1, 30), dt.date(1968, 12, 30), None, dt.date(2023, 2, 27)],
        ),
        ("d - date '2020-01-01'", [30, -18263, None, 1520]),
        ("CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE 'z' END", ["p", "n", "z", "z"]),
        ("CASE i WHEN 0 THEN NULL ELSE 14 / i END", [2, -2, None, None]),
        ("coalesce(i, n)", [7, -7, 3, 0]),
        ("nullif(i, 7)", [None, -7, None, 0]),
        ("st.x", [1, None, None, 3]),
        ("n", [1, 2, 3, 4]),
        ("'x'", ["x"] * 4),
        ("[n, 9]", [[1, 9], [2, 9], [3, 9], [4, 9]]),
    ],
)
def test_the_values_an_expression_gives(text, wanted):
    assert values(text) == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("14 / i", "division by zero"),
        ("14 % i", "division by zero"),
        ("n + 9223372036854775807", "does not fit int64"),
        ("CAST(s AS int)", "cannot cast string to int32"),
        ("CAST(f AS int)", "cannot cast double to int32"),
        ("TRY_CAST(l AS int)", "no cast from list"),
    ],
)
def test_a_value_that_cannot_be_computed_is_an_error(text, words):
    with pytest.raises(ExpressionError, match=words):
        values(text)


def test_slices_batches_and_chunks_give_the_same():
    text = "i <= 0 AND s IS NOT NULL OR st.x = 1 AND l[1] = 1"
    bound = bind_predicate(parse(text), TABLE.schema)
    batch = TABLE.combine_chunks().to_batches()[0]
    whole = evaluate_mask(bound, batch)
    chunked = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 3)])
    assert evaluate_mask(bound, chunked).tolist() == whole.tolist() == [True, True, False, True]
    assert evaluate_mask(bound, batch.slice(1, 2)).tolist() == whole[1:3].tolist()
    assert evaluate_mask(bound, batch.slice(0, 0)).tolist() == []
    assert evaluate(bound, batch.slice(3)).to_pylist() == [True]


def test_masks_of_random_columns_agree_with_a_plain_loop():
    random = np.random.default_rng(3)
    numbers = random.integers(-5, 5, 1000)
    gone = random.random(1000) < 0.2
    table = pa.table({"x": pa.array(numbers, pa.int16(), mask=gone), "y": random.random(1000)})
    for offset in (0, 3, 8):
        part = table.slice(offset).combine_chunks()
        wanted = [
            not lost and ((x < 2 and y > 0.5) or x in {3, 4})
            for x, y, lost in zip(numbers, table["y"].to_pylist(), gone, strict=True)
        ][offset:]
        bound = bind_predicate(parse("x < 2 AND y > 0.5 OR x IN (3, 4)"), part.schema)
        assert evaluate_mask(bound, part).tolist() == wanted


def test_a_plain_filter_does_not_wait_for_pandas():
    code = """
import sys
import pyarrow as pa
from lancetable.expression import bind_predicate, evaluate_mask, parse
batch = pa.record_batch({"i": pa.nulls(3, pa.int32()), "f": pa.nulls(3, pa.float32()),
                         "s": pa.nulls(3, pa.string()), "d": pa.nulls(3, pa.date32())})
text = "i < 5 AND f > 0.5 AND s = 'x' OR i >= 1000000000000 OR d > '2020-01-01'"
evaluate_mask(bind_predicate(parse(text), batch.schema), batch)
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_parser_is_loaded_only_to_parse():
    code = "import sys, lancetable.expression; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()])
@pytest.mark.parametrize("divisor", [1, 2, 7, 100, 127])
def test_the_remainder_has_the_sign_of_the_dividend(type_: pa.DataType, divisor: int) -> None:
    info = np.iinfo(type_.to_pandas_dtype())
    edges = [int(info.min), int(info.min) + 1, 0, 1, 99, int(info.max) - 1, int(info.max)]
    values = [None, *edges, *([-1, -7, -100] if info.min else [])] * 2000
    table = pa.table({"v": pa.array([5, *values], type_).slice(1)})
    bound = bind(parse(f"v % {divisor}"), table.schema)
    found = evaluate(bound, table.to_batches()[0]).to_pylist()
    assert found == [None if v is None else int(math.copysign(abs(v) % divisor, v)) for v in values]
