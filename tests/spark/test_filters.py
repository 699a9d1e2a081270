"""Filters of Spark mean the same as predicates of a scan, also where values are missing."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import datasource as ds

from lancetable.expression import bind_predicate, evaluate_mask
from lancetable.spark.filters import push, translate

NAN = math.nan
BATCH = pa.record_batch(
    {
        "i": pa.array([1, 2, None, 4]),
        "u": pa.array([1, 2**64 - 1, None, 4], pa.uint64()),
        "f": pa.array([1.0, NAN, None, -0.0]),
        "h": pa.array([1.0, NAN, None, -0.0], pa.float32()).cast(pa.float16()),
        "d": pa.array([Decimal("1.50"), Decimal("2.50"), None, Decimal("4.00")]),
        "s": pa.array(["a%b", "a_b", None, "ä\\"]),
        "y": pa.array([b"a", b"b", None, b""]),
        "b": pa.array([True, False, None, True]),
        "t": pa.array([1, 2, None, 4], pa.timestamp("ms", "Europe/Berlin")),
        "n": pa.array([1, 2, None, 4], pa.timestamp("ns")),
        "e": pa.array([1, 2, None, 4], pa.date32()),
        "o": pa.array([{"x": 1}, {"x": None}, None, {"x": 4}]),
        "c": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    }
)


def moment(milliseconds):
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


EXACT = [
    (ds.EqualTo(("i",), 2), [1]),
    (ds.Not(ds.EqualTo(("i",), 2)), [0, 3]),
    (ds.EqualNullSafe(("i",), 2), [1]),
    (ds.Not(ds.EqualNullSafe(("i",), 2)), [0, 2, 3]),
    (ds.GreaterThan(("i",), 1), [1, 3]),
    (ds.Not(ds.GreaterThan(("i",), 1)), [0]),
    (ds.GreaterThanOrEqual(("i",), 2), [1, 3]),
    (ds.LessThan(("i",), 2), [0]),
    (ds.LessThanOrEqual(("i",), 2), [0, 1]),
    (ds.In(("i",), (1, 4)), [0, 3]),
    (ds.Not(ds.In(("i",), (1, 4))), [1]),
    (ds.IsNull(("i",)), [2]),
    (ds.IsNotNull(("i",)), [0, 1, 3]),
    (ds.Not(ds.IsNull(("i",))), [0, 1, 3]),
    (ds.EqualTo(("u",), Decimal(2**64 - 1)), [1]),
    (ds.GreaterThan(("u",), Decimal(1)), [1, 3]),
    (ds.GreaterThan(("f",), 0.5), [0, 1]),
    (ds.Not(ds.GreaterThan(("f",), 0.5)), [3]),
    (ds.EqualTo(("f",), NAN), [1]),
    (ds.EqualTo(("f",), 0.0), [3]),
    (ds.In(("f",), (0.0, NAN)), [1, 3]),
    (ds.LessThan(("h",), 1.0), [3]),
    (ds.GreaterThan(("d",), Decimal("1.5")), [1, 3]),
    (ds.StringStartsWith(("s",), "a%"), [0]),
    (ds.StringContains(("s",), "_"), [1]),
    (ds.StringEndsWith(("s",), "\\"), [3]),
    (ds.Not(ds.StringStartsWith(("s",), "a")), [3]),
    (ds.EqualTo(("y",), b"a"), [0]),
    (ds.EqualTo(("b",), True), [0, 3]),
    (ds.Not(ds.EqualTo(("b",), True)), [1]),
    (ds.GreaterThan(("t",), moment(1)), [1, 3]),
    (ds.LessThanOrEqual(("n",), datetime(1970, 1, 1)), []),  # noqa: DTZ001
    (ds.EqualTo(("e",), date(1970, 1, 2)), [0]),
    (ds.EqualTo(("o", "x"), 4), [3]),
    (ds.IsNull(("o", "x")), [1, 2]),
    (ds.EqualTo(("c",), "a"), [0, 3]),
]


@pytest.mark.parametrize(("filter_", "rows"), EXACT, ids=str)
def test_a_filter_keeps_the_rows_for_which_it_is_true(filter_, rows):
    made = translate(filter_, BATCH.schema)
    assert made is not None
    mask = evaluate_mask(bind_predicate(made, BATCH.schema), BATCH)
    assert mask.nonzero()[0].tolist() == rows


@pytest.mark.parametrize(
    "filter_",
    [
        ds.EqualTo(("i",), None),
        ds.EqualTo(("i",), "2"),
        ds.EqualTo(("i",), 2.5),
        ds.EqualTo(("missing",), 2),
        ds.EqualTo(("o",), [1]),
        ds.EqualTo(("o", "y"), 1),
        ds.In(("i",), (1, None)),
        ds.Not(ds.In(("i",), (1, None))),
        ds.EqualTo(("t",), datetime(2020, 1, 1)),  # noqa: DTZ001
        ds.EqualTo(("n",), moment(1)),
        ds.EqualTo(("e",), moment(1)),
        ds.EqualTo(("b",), 1),
        ds.StringStartsWith(("i",), "1"),
    ],
    ids=str,
)
def test_what_has_no_exact_meaning_is_left_to_spark(filter_):
    assert push([filter_], BATCH.schema) == ((), (filter_,))


def test_times_that_spark_sees_cut_are_left_to_spark():
    filters = [ds.Not(ds.EqualTo(("n",), datetime(1970, 1, 1))), ds.EqualTo(("i",), 1)]  # noqa: DTZ001
    assert len(push(filters, BATCH.schema).applied) == 2
    assert push(filters, BATCH.schema, is_truncated=True).left == (filters[0],)
