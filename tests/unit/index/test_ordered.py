"""Values in order are found as the plain evaluation finds them."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.expression import bind_predicate, parse
from lancetable.index.base import in_terms_of_values, matching
from lancetable.index.ordered import Ordered, spread_places, wanted_of

FLOATS = [-np.inf, -2.5, -0.0, 0.0, 1.5, np.inf, np.nan]
TEXTS = ["", "a", "ab", "abc", "b", "zä", "zé", "\U0010ffff"]
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int64(): [-(2**63), -1, 0, 1, 2**63 - 1],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.float32(): FLOATS,
    pa.float64(): FLOATS,
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.date32(): [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("us"): [dt.datetime.fromisoformat(day) for day in ("1969-12-31", "1970-01-01")],
}
FORMS = ["v {op} {one}", "v in ({one}, {two})", "v between {one} and {two}"]
FORMS += ["v > {one} and v < {two} and v >= {one}", "starts_with(v, {one})", "v like {prefix}"]


def shown(value, type_):
    if isinstance(value, str):
        return "'" + value + "'"
    if isinstance(value, dt.date):
        return f"cast('{value}' as {'timestamp' if isinstance(value, dt.datetime) else 'date'})"
    if isinstance(value, float):
        return f"cast('{value}' as {'float' if type_ == pa.float32() else 'double'})"
    return str(value)


@given(st.data(), st.sampled_from(list(VALUES)), st.sampled_from(FORMS))
def test_places_are_those_of_the_evaluation(data, type_, form):
    some = st.sampled_from(VALUES[type_])
    if ("prefix" in form or "starts_with" in form) and "string" not in str(type_):
        return
    values = data.draw(st.lists(some, max_size=12))
    ordered = pa.array(sorted(values, key=rank), type_)
    array = pa.concat_arrays([pa.nulls(data.draw(st.integers(0, 2)), type_), ordered])
    one, two = shown(data.draw(some), type_), shown(data.draw(some), type_)
    op = data.draw(st.sampled_from(["=", "<", "<=", ">", ">="]))
    sql = form.format(op=op, one=one, two=two, prefix=one[:-1] + "%'")
    part = in_terms_of_values(bind_predicate(parse(sql), pa.schema([("v", type_)])))
    wanted = wanted_of(part, type_)
    found = Ordered.of(array)
    assert found is not None
    if wanted is not None:
        places = spread_places(*found.places(wanted))
        assert sorted(places.tolist()) == np.flatnonzero(matching(part, array)).tolist(), sql


def rank(value):
    if isinstance(value, float):
        return (np.isnan(value), 0 if np.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([2, 1], pa.int64()),
        (["b", "a"], pa.string()),
        ([1, None], pa.int64()),
        ([1.5], pa.float16()),
    ],
)
def test_other_arrays_are_not_searched(values, type_):
    assert Ordered.of(pa.array(values, type_)) is None


@pytest.mark.parametrize("sql", ["v != 1", "v is null", "v in (1, 2) and v > 1", "v = 1 or v = 2"])
def test_other_parts_are_not_searched(sql):
    part = bind_predicate(parse(sql), pa.schema([("v", pa.int64())]))
    assert wanted_of(in_terms_of_values(part), pa.int64()) is None
