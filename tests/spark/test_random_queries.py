"""Random queries on shared data frames give what plain Python gives, with push-down on and off."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lancetable
from tests.spark.query_model import Queries, as_arrow, steps, tables
from tests.spark.test_shared_frames import push_down

push_downs = st.sampled_from(["true", "true", "true", "false"])


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
@settings(max_examples=4)
def test_queries_on_shared_frames_equal_plain_python(spark, fragments, chosen, value):
    run(spark, fragments, chosen, value)


@pytest.mark.soak
@given(tables, steps, push_downs)
@settings(max_examples=300)
def test_many_queries_on_shared_frames_equal_plain_python(spark, fragments, chosen, value):
    run(spark, fragments, chosen, value)
