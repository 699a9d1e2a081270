"""Bounds of groups never hide a row that matches."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.expression import bind_predicate, parse
from lancetable.index.base import in_terms_of_values, matching
from lancetable.index.bounds import Bounds

GROUP = 4
FLOATS = [None, -float("inf"), -1.5, -0.0, 0.0, 0.5, 2.0, float("inf"), float("nan")]
TEXTS = [None, "", "a", "ab", "abc", "ab\U0010ffff", "b", "é", "zz"]
DAYS = [None, *(dt.date(2020, 1, day) for day in range(1, 6))]
KINDS = {
    "int": (pa.int32(), st.one_of(st.none(), st.integers(-3, 3)), ["-2", "0", "3"]),
    "float": (pa.float64(), st.sampled_from(FLOATS), ["-1.5", "0.0", "cast('NaN' as double)"]),
    "text": (pa.string(), st.sampled_from(TEXTS), ["'a'", "'ab'", "'é'"]),
    "bool": (pa.bool_(), st.sampled_from([None, False, True]), ["true", "false"]),
    "day": (pa.date32(), st.sampled_from(DAYS), ["date '2020-01-02'", "date '2020-01-05'"]),
}
SHAPES = [
    "c = {0}",
    "c < {0}",
    "c <= {0}",
    "c > {0}",
    "c >= {0}",
    "c between {0} and {1}",
    "c in ({0}, {1})",
    "c is null",
    "c is null or c = {0}",
    "c > {0} and c <= {1}",
    "c = {0} or c = {1}",
    "c != {0}",
    "c not in ({0}, {1})",
    "c is not null",
    "not (c = {0} or c is null)",
    "not (c between {0} and {1})",
    "c is distinct from {0} and c is not null",
]
BOOL_SHAPES = ["c", "not c", "c is true", "c is false"]
TEXT_SHAPES = ["c like 'ab%'", "c like 'a_'", "starts_with(c, 'ab')", "c like '%b'", "c like 'a'"]
MORE_SHAPES = {"bool": BOOL_SHAPES, "text": TEXT_SHAPES}


def groups(values):
    """Return sorted values in groups, nulls first, with their bounds as a btree records them."""
    valid = values.drop_null()
    nulls = pa.nulls(values.null_count, values.type)
    ordered = pa.concat_arrays([nulls, valid.take(pc.sort_indices(valid))])
    cut = [ordered.slice(first, GROUP) for first in range(0, len(ordered), GROUP)]
    least = pa.concat_arrays([one.slice(0, 1) for one in cut])
    largest = pa.concat_arrays([one.slice(len(one) - 1) for one in cut])
    return cut, Bounds(least, largest, np.array([one.null_count > 0 for one in cut]))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_group_with_a_match_is_kept(kind, data):
    type_, strategy, constants = KINDS[kind]
    values = pa.array(data.draw(st.lists(strategy, min_size=1, max_size=30)), type_)
    shape = data.draw(st.sampled_from(SHAPES + MORE_SHAPES.get(kind, [])))
    chosen = [data.draw(st.sampled_from(constants)) for _ in range(2)]
    schema = pa.schema([("c", type_)])
    part = in_terms_of_values(bind_predicate(parse(shape.format(*chosen)), schema))
    cut, bounds = groups(values)
    kept = bounds.may_match(part)
    if kept is None:
        assert shape == "c like '%b'"
        return
    for group, is_kept in zip(cut, kept, strict=True):
        assert is_kept or not matching(part, group).any()
