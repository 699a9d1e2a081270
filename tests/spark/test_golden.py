"""Tables that pylance wrote, read by Spark: the rows that pylance reads, in Spark's types."""

import json

import pyarrow as pa
import pytest

from lancetable.spark.casts import plan_read
from lancetable.spark.options import Nanoseconds
from lancetable.spark.source import LanceSource
from lancetable.spark.types import to_arrow
from tests.fixtures_catalog import GOLDEN, _place, load_expected
from tests.same import assert_same_table

FOLDER = GOLDEN / "table"
ENTRIES = json.loads((FOLDER / "manifest.json").read_text())["cases"]
VERSIONS = [(entry, version) for entry in ENTRIES for version in entry["versions"]]
"""Every version of every table, as they lie in the collection."""

THROUGH_SPARK = ["all_types", "add_columns", "branches", "delete_arrow", "ext_types", "nested"]
"""A few that go through the JVM as well."""


def name_of(case):
    entry, version = case
    branch = f"@{version['branch']}" if version.get("branch") else ""
    return f"{entry['case']}{branch}-{version['version']}"


def options_of(entry, version):
    found = {"path": str(_place(FOLDER, entry)()), "version": str(version["version"])}
    return found | ({"branch": version["branch"]} if version.get("branch") else {})


def expected_rows(version, schema):
    """Return what pylance read, brought to the types of Spark."""
    table = load_expected(FOLDER / version["expected"]).select(schema.names)
    casts = plan_read(table.schema, to_arrow(schema), Nanoseconds.TRUNCATE)
    return pa.Table.from_batches([casts.apply(one) for one in table.to_batches()], casts.schema)


@pytest.mark.parametrize("case", VERSIONS, ids=name_of)
def test_every_version_reads_as_pylance_reads_it(case):
    entry, version = case
    source = LanceSource({**options_of(entry, version), "nanoseconds": "truncate"})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    found = pa.Table.from_batches(batches, to_arrow(schema))
    assert_same_table(found, expected_rows(version, schema))


@pytest.mark.parametrize("name", THROUGH_SPARK)
def test_the_jvm_sees_the_same_rows(spark, name):
    matching = [case for case in VERSIONS if case[0]["case"].startswith(name)]
    if not matching:
        pytest.skip("not in the collection")
    entry, version = matching[-1]
    given = {**options_of(entry, version), "nanoseconds": "truncate"}
    frame = spark.read.format("lance").options(**given).load()
    # As texts: no two NaN are equal.
    found = list(map(str, frame.toArrow().to_pylist()))
    assert found == list(map(str, expected_rows(version, frame.schema).to_pylist()))
