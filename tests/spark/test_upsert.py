"""Upserts from a stream: each micro-batch once, whatever Spark repeats."""

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError
from lancetable.spark import upsert
from lancetable.spark.write.idempotent import APP_ID
from tests.spark.test_stream import forget_last_batch


@pytest.fixture
def inbox(tmp_path):
    """Three versions: new rows, a changed one with a new one, one key twice."""
    uri = str(tmp_path / "inbox")
    table = lancetable.create_table(uri, pa.table({"id": [1, 2], "n": [10, 20]}))
    table.append(pa.table({"id": [2, 3], "n": [21, 30]}))
    table.append(pa.table({"id": [3, 3], "n": [31, 32]}))
    return uri


def run(spark, inbox, function, checkpoint):
    stream = spark.readStream.format("lance").option("startingVersion", 1)
    query = (
        stream.option("maxVersionsPerTrigger", 1)
        .load(inbox)
        .writeStream.foreachBatch(function)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    return query


def rows(path):
    found = lancetable.open_table(path).scan(["id", "n"]).to_arrow().to_pylist()
    return sorted((row["id"], row["n"]) for row in found)


def test_each_batch_is_merged_once(spark, inbox, tmp_path):
    target, checkpoint = str(tmp_path / "t"), tmp_path / "checkpoint"
    lancetable.create_table(target, pa.table({"id": [1, 9], "n": [0, 90]}))
    function = upsert(target, on="id", order_by="n")
    query = run(spark, inbox, function, str(checkpoint))
    assert rows(target) == [(1, 10), (2, 21), (3, 32), (9, 90)]
    table = lancetable.open_table(target)
    assert table.version == 4
    assert table._snapshot.transaction().properties[APP_ID] == str(query.id)

    forget_last_batch(checkpoint)
    run(spark, inbox, function, str(checkpoint))
    assert lancetable.open_table(target).version == 4


def test_a_key_that_comes_twice_is_an_error_unless_rows_have_an_order(spark, tmp_path):
    target = str(tmp_path / "t")
    lancetable.create_table(target, pa.table({"id": [1], "n": [0]}))
    twice = spark.sql("select 1L id, 1L n union all select 1L, 2L")
    with pytest.raises(InputError, match=r"LANCE_INPUT.*several rows of the source match one row"):
        upsert(target, on=["id"], app_id="a")(twice, 0)
    assert rows(target) == [(1, 0)]


def test_a_query_needs_a_name_outside_of_streams(spark, tmp_path):
    with pytest.raises(InputError, match="app_id"):
        upsert(str(tmp_path / "t"), on="id")(spark.range(1), 0)
    with pytest.raises(InputError, match="columns to match"):
        upsert("t", on=[])
