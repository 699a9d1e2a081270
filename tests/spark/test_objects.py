"""Spark reads and writes tables in an object store; credentials reach those who do the work."""

import os

import pytest

import lancetable as lt
from lancetable.spark import LanceTable
from tests.servers.tables import recorded_place
from tests.spark.keys import NOTES

pytestmark = pytest.mark.cloud


@pytest.fixture
def options(moto_server):
    """Options that name a provider instead of keys."""
    given = dict(moto_server.place().options)
    del given["aws_access_key_id"], given["aws_secret_access_key"]
    return {**given, "credential_provider": "tests.spark.keys:short_lived"}


def spoken(options):
    """Return storage options as Spark takes them."""
    return {f"storage.{name}": value for name, value in options.items()}


@pytest.mark.parametrize("kind", ["plain", "recorded"])
def test_a_table_in_a_bucket(spark, moto_server, options, kind):
    NOTES.write_text("")
    place = moto_server.place().fresh() if kind == "plain" else recorded_place(moto_server)
    frame = spark.range(0, 1000, 1, 4).withColumnRenamed("id", "x")
    frame.write.format("lance").mode("append").options(**spoken(options)).save(place.uri)
    frame.write.format("lance").mode("append").options(**spoken(options)).save(place.uri)
    read = spark.read.format("lance").options(**spoken(options)).load(place.uri)
    assert read.count() == 2000
    assert read.where("x < 10").count() == 20
    table = LanceTable.forPath(spark, place.uri, options)
    table.delete("x >= 500")
    found = lt.open_table(place.uri, storage_options=place.options)
    assert found.count() == 1000
    assert sorted(set(found.scan(columns=["x"]).to_arrow()["x"].to_pylist())) == list(range(500))
    asked = NOTES.read_text().split()
    assert set(asked) - {str(os.getpid())}, "only the driver asked for credentials"
    assert len(asked) > len(set(asked)), "nobody asked for credentials again"
