"""Tables that pylance wrote, read by Spark: the rows that pylance reads, in Spark's types."""

import json
import math
from datetime import UTC, datetime, timedelta
from functools import reduce
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancetable.format.schema.types import storage_type, without_extensions
from lancetable.spark.casts import plan_read
from lancetable.spark.options import Nanoseconds
from lancetable.spark.source import LanceSource
from lancetable.spark.types import to_arrow
from tests.fixtures_catalog import GOLDEN, SHARED, _place, load_expected
from tests.same import assert_same_table

FOLDER = GOLDEN / "table"
ENTRIES = json.loads((FOLDER / "manifest.json").read_text())["cases"]
VERSIONS = [(entry, version) for entry in ENTRIES for version in entry["versions"]]
"""Every version of every table, as they lie in the collection."""

SHARED_FOLDER = SHARED / "table"
"""The whole collection beside the checkout; what is in the small copy too is left out."""


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


SHOWN_AS_TEXT = {"decneg": "Spark has no decimals of a negative scale"}
"""The columns of the collections that Spark cannot express as they are; it shows them otherwise.

Times finer than microseconds are rounded down to them. All else is equal.
"""


def through_spark():
    """Return every case, of both collections, with the folder it lies in."""
    golden = [pytest.param(FOLDER, entry, id=entry["case"]) for entry in ENTRIES]
    if not SHARED_FOLDER.exists():
        return golden
    rest = [
        pytest.param(SHARED_FOLDER, entry, id=f"shared-{entry['case']}", marks=pytest.mark.slow)
        for entry in json.loads((SHARED_FOLDER / "manifest.json").read_text())["cases"]
        if entry not in ENTRIES
    ]
    return [*golden, *rest]


def wishes(entry):
    """Yield the options that name each version, tag and branch of a case, and what it holds."""
    known = {}
    for version in entry["versions"]:
        branch, number, file = version.get("branch"), version["version"], version["expected"]
        known[branch, number] = file
        yield {"version": str(number)} | ({"branch": branch} if branch else {}), file
    for tag, text in entry.get("tags", {}).items():
        yield {"tag": tag}, known[None, int(text["version"])]
    for branch in sorted({branch for branch, _ in known if branch}):
        newest = max(number for name, number in known if name == branch)
        yield {"branch": branch}, known[branch, newest]
    if "detached_version" in entry:
        version = str(entry["detached_version"])
        yield {"version": version}, f"{entry['case']}.detached.expected.arrow"


def stored(table):
    """Return a table in storage types, whichever extension types other tests registered."""
    columns = [
        pa.chunked_array([without_extensions(chunk) for chunk in column.chunks], kind)
        for column in table.columns
        for kind in [storage_type(column.type)]
    ]
    return pa.table(columns, table.column_names)


def plain(value):
    """Return a value without what Spark cannot express; knows nothing of the casts under test."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return value


@pytest.mark.parametrize(("folder", "entry"), through_spark())
def test_spark_reads_every_case(spark, folder, entry):
    """All versions of a case that have one schema go through the JVM in one query."""
    place = str(_place(folder, entry)())
    queries = {}
    for number, (wish, file) in enumerate(wishes(entry)):
        reader = spark.read.format("lance").options(nanoseconds="truncate", **wish)
        frame = reader.load(place)
        one = frame.selectExpr("*", f"{number} as _wish")
        queries.setdefault(frame.schema.json(), []).append((one, number, file))
    for group in queries.values():
        found = reduce(lambda one, other: one.unionAll(other), (frame for frame, _, _ in group))
        rows = found.toArrow()
        for _, number, file in group:
            mine = rows.filter(pc.equal(rows["_wish"], number)).drop_columns(["_wish"])
            wanted = stored(load_expected(folder / file).select(mine.column_names))
            for name in set(SHOWN_AS_TEXT).intersection(mine.column_names):
                texts = [None if one is None else str(one) for one in wanted[name].to_pylist()]
                at = wanted.column_names.index(name)
                wanted = wanted.set_column(at, name, pa.array(texts))
            assert plain(mine.to_pylist()) == plain(wanted.to_pylist())


@pytest.mark.parametrize("release", ["by-0.23.2", "by-0.38.3"])
def test_columns_of_a_blob_dataset_are_read(release):
    source = LanceSource({"path": str(GOLDEN / "blob_dataset" / release)})
    reader = source.reader(source.schema())
    rows = [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    for row in rows:
        row["image"] = None if row["image"] is None else row["image"].hex()
    expected = json.loads((GOLDEN / "blob_dataset" / f"{release}.expected.json").read_text())
    assert sorted(rows, key=lambda row: row["id"]) == expected
