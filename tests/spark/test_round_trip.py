"""Every type through a real Spark: table to frame to table, and read again by others."""

import pyarrow as pa
import pytest

import lancetable
from tests.spark.test_types import CASES, _array

# Spark refuses to write columns that are nothing but null.
SHOWN = [case for case in CASES if not pa.types.is_null(case[0])]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A table with a column of every type, and three rows."""
    columns = {}
    for number, (type_, _, values) in enumerate(SHOWN):
        padded = [*values, None, None][:3]
        columns[f"c{number}"] = _array(type_, padded)
    path = str(tmp_path_factory.mktemp("types") / "t")
    lancetable.create_table(path, pa.table(columns), storage_version="2.2")
    return path


@pytest.fixture(scope="module")
def copied(spark, original, tmp_path_factory):
    """The same table, read and written by Spark."""
    path = str(tmp_path_factory.mktemp("copied") / "t")
    frame = spark.read.format("lance").load(original)
    frame.write.format("lance").mode("append").option("storageVersion", "2.2").save(path)
    return path


def test_a_copy_has_the_same_types_and_rows(original, copied):
    one, other = lancetable.open_table(original), lancetable.open_table(copied)
    for number, (type_, shown, _) in enumerate(SHOWN):
        assert other.schema.field(f"c{number}").type == type_, shown
    assert other.scan().to_arrow().to_pylist() == one.scan().to_arrow().to_pylist()


def test_frames_of_both_are_equal(spark, original, copied):
    frames = [spark.read.format("lance").load(path) for path in (original, copied)]
    assert frames[0].schema == frames[1].schema
    assert frames[0].collect() == frames[1].collect()


def test_appending_to_a_table_keeps_its_types(spark, original, tmp_path):
    path = str(tmp_path / "t")
    schema = lancetable.open_table(original).schema
    lancetable.create_table(path, schema=schema, storage_version="2.2")
    frame = spark.read.format("lance").load(original)
    plain = frame.select([frame[name].alias(name, metadata={}) for name in frame.columns])
    plain.write.format("lance").mode("append").save(path)
    found = lancetable.open_table(path)
    assert found.schema == schema
    expected = lancetable.open_table(original).scan().to_arrow().to_pylist()
    assert found.scan().to_arrow().to_pylist() == expected


@pytest.mark.oracle
def test_the_reference_reads_what_spark_wrote(original, copied):
    lance = pytest.importorskip("lance")
    expected = lancetable.open_table(original).scan().to_arrow().to_pylist()
    assert lance.dataset(copied).to_table().to_pylist() == expected


@pytest.mark.oracle
def test_spark_reads_what_the_reference_wrote(spark, original, tmp_path):
    lance = pytest.importorskip("lance")
    path = str(tmp_path / "t")
    rows = lancetable.open_table(original).scan().to_arrow()
    lance.write_dataset(rows, path, data_storage_version="2.2")
    found = spark.read.format("lance").load(path).collect()
    assert found == spark.read.format("lance").load(original).collect()


def test_variants_survive(spark, tmp_path):
    path = str(tmp_path / "t")
    frame = spark.sql("""select parse_json('{"a": [1, 2]}') v, 1 id""")
    frame.write.format("lance").mode("append").save(path)
    back = spark.read.format("lance").load(path)
    assert back.schema["v"].dataType.simpleString() == "variant"
    assert back.selectExpr("to_json(v)").collect()[0][0] == '{"a":[1,2]}'


def test_documents_and_blobs(spark, tmp_path):
    path = str(tmp_path / "t")
    frame = spark.sql("""select '{"a":1}' j, x'0102' b, 1 id""")
    write = frame.write.format("lance").mode("append").option("types", "j=json, b=blob")
    write.save(path)
    write.save(path)
    table = lancetable.open_table(path)
    assert table.schema.field("j").type == pa.json_()
    found = spark.read.format("lance").option("blobs", "bytes").load(path).collect()
    assert [(row["j"], bytes(row["b"])) for row in found] == [('{"a":1}', b"\x01\x02")] * 2
