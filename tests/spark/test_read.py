"""Tables read by Spark: the right rows of the right version, with little work."""

import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.types import LongType, StructField, StructType

import lancetable
from lancetable.spark.options import parse_options
from lancetable.spark.source import LanceSource
from tests.hostile.crafted import change

ROWS = 3000
START = datetime(2024, 1, 1, tzinfo=UTC)


def rows(first, last):
    numbers = range(first, last)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([None if n % 5 == 0 else f"n{n % 7}" for n in numbers]),
            "big": pa.array(numbers, pa.uint64()),
            "score": pa.array([float("nan") if n % 10 == 0 else n / 2 for n in numbers]),
            "vector": pa.array([[n, n + 0.5] for n in numbers], pa.list_(pa.float32(), 2)),
            "at": pa.array(
                [START + timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC")
            ),
            "o": pa.array([{"a": n, "b": [n]} for n in numbers]),
        }
    )


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    """A table of three fragments; version 3 is complete, version 4 lacks every hundredth row."""
    path = str(tmp_path_factory.mktemp("read") / "t")
    table = lancetable.create_table(path, rows(0, 1000))
    table.append(rows(1000, 2000))
    table.append(rows(2000, ROWS))
    table.delete("id % 100 = 0")
    return path


def read(spark, uri, **options):
    return spark.read.format("lance").options(**options).load(uri)


def test_all_rows_and_columns(spark, uri):
    frame = read(spark, uri)
    assert frame.columns == ["id", "name", "big", "score", "vector", "at", "o"]
    found = sorted(frame.collect(), key=lambda row: row["id"])
    assert [row["id"] for row in found] == [n for n in range(ROWS) if n % 100]
    row = found[0]
    assert (row["big"], row["vector"], row["o"].asDict()) == (1, [1.0, 1.5], {"a": 1, "b": [1]})
    assert row["at"].astimezone(UTC) == START + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("id < 10", lambda n: n < 10),
        ("not id < 2990", lambda n: n >= 2990),
        ("name = 'n3'", lambda n: n % 5 and n % 7 == 3),
        ("name <> 'n3'", lambda n: n % 5 and n % 7 != 3),
        ("name is null", lambda n: n % 5 == 0),
        ("name <=> null", lambda n: n % 5 == 0),
        ("name like 'n3%'", lambda n: n % 5 and n % 7 == 3),
        ("name in ('n1', 'n2')", lambda n: n % 5 and n % 7 in {1, 2}),
        ("name not in ('n1', 'n2')", lambda n: n % 5 and n % 7 not in {1, 2}),
        ("id < 5 or id > 2995", lambda n: n < 5 or n > 2995),
        ("big > 2990", lambda n: n > 2990),
        ("score > 1490", lambda n: n % 10 == 0 or n > 2980),
        ("at < timestamp'2024-01-01 00:00:07'", lambda n: n < 7),
        ("o.a = 77", lambda n: n == 77),
        ("id + 1 = 9", lambda n: n == 8),
    ],
)
def test_filters_keep_the_rows_of_sql(spark, uri, predicate, expected):
    found = read(spark, uri).where(predicate).select("id").collect()
    assert sorted(row[0] for row in found) == [n for n in range(ROWS) if n % 100 and expected(n)]


def test_versions_can_be_chosen(spark, uri):
    assert read(spark, uri, version=3).count() == ROWS
    assert read(spark, uri, version=1).count() == 1000
    stamp = lancetable.open_table(uri, version=2).timestamp.isoformat()
    assert read(spark, uri, asOf=stamp).count() == 2000
    with pytest.raises(Exception, match=r"'asOf'.*names no offset"):
        read(spark, uri, asOf=stamp.partition("+")[0])


def test_a_frame_keeps_its_version(spark, tmp_path):
    path = str(tmp_path / "t")
    table = lancetable.create_table(path, pa.table({"x": [1]}))
    frame = read(spark, path)
    given = spark.read.format("lance").schema("x bigint").load(path)
    assert given.count() == 1
    table.append(pa.table({"x": [2]}))
    for one in (frame, given):
        assert one.count() == 1
        assert one.where("x > 0").count() == 1
        assert one.join(frame.where("x > 0"), "x").count() == 1
    assert read(spark, path).count() == 2


def test_columns_by_schema_and_by_option(spark, uri):
    chosen = spark.read.format("lance").schema("o struct<b: array<bigint>>, id bigint").load(uri)
    assert chosen.where("id = 5").collect()[0].asDict(recursive=True) == {"o": {"b": [5]}, "id": 5}
    chosen = read(spark, uri, columns="score,`o`.a")
    assert chosen.columns in (["score", "o.a"], ["score", "`o`.a"])
    assert read(spark, uri, columns="id", where="id % 1000 = 1").count() == 3


def test_the_schema_reaches_the_scan(uri):
    source = LanceSource({"path": uri})
    reader = source.reader(StructType([StructField("id", LongType())]))
    request = reader.reader.request(reader.snapshot.manifest.schema, 1)
    assert request.columns == ("id",)


def test_row_ids_and_addresses(spark, uri):
    frame = read(spark, uri, withRowId="true", withRowAddress="true", columns="id")
    row = frame.where("id = 1005").collect()[0]
    assert row.asDict() == {"id": 1005, "_rowid": (1 << 32) + 5, "_rowaddr": (1 << 32) + 5}
    assert frame.where(F.col("_rowaddr") < 10).count() == 9


def test_vectors_as_bytes(spark, uri):
    frame = read(spark, uri, vectors="binary").where("id = 3").select("vector")
    assert np.frombuffer(frame.collect()[0][0], "<f4").tolist() == [3.0, 3.5]
    frame = spark.read.format("lance").schema("vector binary").load(uri).limit(1)
    assert len(frame.collect()[0][0]) == 8


@pytest.mark.parametrize(
    ("options", "parts"),
    [({}, 1), ({"partitionRows": 1000}, 3), ({"partitionRows": 700}, 6), ({"minPartitions": 3}, 3)],
)
def test_partitions_bundle_and_cut_fragments(spark, uri, options, parts):
    frame = read(spark, uri, columns="id", **options)
    counts = [row[1] for row in frame.groupBy(F.spark_partition_id()).count().collect() if row[1]]
    assert sum(counts) == ROWS - 30
    source = LanceSource({"path": uri, "columns": "id", **{k: str(v) for k, v in options.items()}})
    assert len(source.reader(source.schema()).partitions()) == parts


def test_a_limit_reads_little(uri):
    options = {"path": uri, "batchBytes": "1024", "columns": "id"}
    source = LanceSource(options)
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    batches = reader.read(partition)
    assert next(batches).num_rows <= 1024 // 8
    batches.close()


@pytest.mark.parametrize("size", [1, 1 << 50])
def test_a_wrong_file_size_makes_no_more_partitions_and_batches(tmp_path, size):
    path = tmp_path / "t"
    lancetable.create_table(path, pa.table({"s": ["abc"] * 20_000}))

    def lie(manifest):
        manifest.fragments[0].files[0].file_size_bytes = size

    change(path, lie)
    source = LanceSource({"path": str(path)})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    batches = list(reader.read(partition))
    assert sum(batch.num_rows for batch in batches) == 20_000
    assert len(batches) < 10


def test_an_empty_table(spark, tmp_path):
    path = str(tmp_path / "t")
    lancetable.create_table(path, schema=pa.schema([("x", pa.int32())]))
    assert read(spark, path).collect() == []
    assert read(spark, path).count() == 0


def test_a_view_keeps_its_version_until_it_is_made_anew(spark, tmp_path):
    path = str(tmp_path / "t")
    table = lancetable.create_table(path, pa.table({"x": [1]}))
    view = f"create or replace temporary view seen using lance options (path '{path}')"
    spark.sql(view)
    table.append(pa.table({"x": [5]}))
    assert spark.sql("select sum(x) from seen").collect()[0][0] == 1
    assert spark.sql("select sum(x) from seen where x > 0").collect()[0][0] == 1
    spark.sql(view)
    assert spark.sql("select sum(x) from seen where x > 0").collect()[0][0] == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"versoin": "1"}, "LANCE_INPUT.*did you mean version"),
        ({"version": "77"}, "LANCE_VERSION_NOT_FOUND"),
        ({"tag": "none"}, "LANCE_REF_NOT_FOUND"),
        ({"columns": "nam"}, "LANCE_SCHEMA"),
        ({"where": "id ="}, "LANCE_EXPRESSION"),
    ],
)
def test_errors_have_codes(spark, uri, options, message):
    with pytest.raises(Exception, match=f"(?s){message}"):
        read(spark, uri, **options).collect()


def test_missing_tables_and_columns_are_named(spark, uri, tmp_path):
    with pytest.raises(Exception, match="LANCE_TABLE_NOT_FOUND"):
        read(spark, str(tmp_path / "none")).count()
    with pytest.raises(Exception, match="no column 'idd'"):
        spark.read.format("lance").schema("idd bigint").load(uri).collect()
    with pytest.raises(Exception, match="column 'name'"):
        spark.read.format("lance").schema("name int").load(uri).collect()


def test_partitions_can_be_sent_and_are_small(uri):
    source = LanceSource({"path": uri, "partitionRows": "1000"})
    reader = source.reader(source.schema())
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    reader = pickle.loads(pickle.dumps(reader))
    assert [len(one.part.manifest.fragments) for one in partitions] == [1, 1, 1]
    assert sum(batch.num_rows for one in partitions for batch in reader.read(one)) == ROWS - 30


def test_the_source_is_found_by_its_module():
    program = "import pyspark_lancetable as m; print(m.DefaultSource.name())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "lance"


def test_options_are_kept_for_the_store(uri):
    assert parse_options({"path": uri, "storage.a": "b"}).place.location.options == {"a": "b"}


def test_a_worker_loads_no_more_than_it_needs():
    """Each query starts processes that import the source, and waits for them."""
    program = (
        "import sys, lancetable.spark.source\n"
        "print(*[one for one in sys.modules if one.startswith('lancetable.')])\n"
        "from lancetable.spark import LanceTable, register, session\n"
        "assert callable(register) and callable(session) and LanceTable.forPath\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    heavy = ("table", "file", "operations.merge", "spark.table", "spark.read.reader", "spark.write")
    assert not [name for name in heavy if f"lancetable.{name}" in loaded]
