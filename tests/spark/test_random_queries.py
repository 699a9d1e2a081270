"""Random queries on shared data frames give what plain Python gives, with push-down on and off."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lancetable
from tests.spark.query_model import Queries, Step, as_arrow, steps, tables
from tests.spark.test_shared_frames import push_down

push_downs = st.sampled_from(["true", "true", "true", "false"])
FRAGMENTS = [
    [(1, 0, "a", 0.5), (4, 1, "b", None), (8, 1, "bb", 1.5)],
    [(9, 2, None, 2.0), (12, None, "a", 0.0)],
]
SHAPES = [
    Step("where", 0, 0, 0),
    Step("count", 1, 0, 0),
    Step("count", 0, 0, 0),
    Step("inner", 1, 0, 0),
    Step("anti", 0, 1, 0),
    Step("union", 1, 0, 0),
    Step("subquery", 0, 0, 0),
    Step("view", 0, 0, 0),
]
"""A filtered frame beside the whole one: counted in turn, joined, in a union and a subquery."""


def run(spark, fragments, chosen, value):
    folder = Path(tempfile.mkdtemp())
    try:
        uri = str(folder / "t")
        table = lancetable.create_table(uri, as_arrow(fragments[0]))
        for rows in fragments[1:]:
            table.append(as_arrow(rows))
        with push_down(spark, value):
            Queries(spark, uri, [row for rows in fragments for row in rows]).run(chosen)
    finally:
        shutil.rmtree(folder)


@given(tables, steps, push_downs)
@example(FRAGMENTS, SHAPES, "true")
@settings(max_examples=3)
def test_queries_on_shared_frames_equal_plain_python(spark, fragments, chosen, value):
    run(spark, fragments, chosen, value)


@pytest.mark.soak
@given(tables, steps, push_downs)
@settings(max_examples=300)
def test_many_queries_on_shared_frames_equal_plain_python(spark, fragments, chosen, value):
    run(spark, fragments, chosen, value)
