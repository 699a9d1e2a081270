"""The change feed in Spark: what the core tells, read at once and followed."""

import json
from collections import Counter

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError
from lancetable.spark import LanceTable
from lancetable.spark.source import LanceSource


@pytest.fixture
def path(tmp_path):
    """A table of stable row ids that went through every kind of change."""
    uri = str(tmp_path / "t")
    vectors = pa.array([[float(n), 0.5] for n in range(6)], pa.list_(pa.float32(), 2))
    table = lancetable.create_table(
        uri, pa.table({"x": list(range(6)), "v": vectors}), stable_row_ids=True
    )
    table.append(pa.table({"x": [6, 7], "v": vectors[:2]}))
    table.update({"x": "x + 100"}, where="x < 2")
    table.delete("x = 4")
    table.compact()
    table.merge(
        [{"x": 5, "v": [9.0, 9.0]}, {"x": 50, "v": [8.0, 8.0]}], on=["x"]
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    return uri


def plain(rows):
    """Rows that can be compared: the order within a version does not count."""
    return sorted(
        ({**row, "_commit_timestamp": row["_commit_timestamp"].isoformat()} for row in rows),
        key=lambda row: json.dumps(row, sort_keys=True),
    )


def core(path, first, last=None):
    return plain(lancetable.open_table(path).changes(first, last).to_arrow().to_pylist())


def spark_rows(frame):
    return plain(row.asDict() for row in frame.collect())


def utc(rows):
    return [{**row, "_commit_timestamp": row["_commit_timestamp"][:26]} for row in rows]


@pytest.mark.parametrize(("first", "last"), [(0, None), (1, 3), (2, None), (4, 4)])
def test_a_read_tells_what_the_core_tells(spark, path, first, last):
    found = spark_rows(LanceTable.forPath(spark, path).changes(first, last))
    assert utc(found) == utc(core(path, first, last))


def test_projection_and_starting_points(spark, path):
    reader = spark.read.format("lance").option("changes", "feed").option("startingVersion", 3)
    frame = reader.schema("_change_type string, x bigint").load(path)
    counts = Counter(row["_change_type"] for row in frame.collect())
    assert counts == {"update_preimage": 3, "update_postimage": 3, "delete": 1, "insert": 1}
    assert reader.option("version", 3).load(path).where("x > 50").count() == 2
    with pytest.raises(Exception, match=r"LANCE_INPUT.*filter the data frame"):
        reader.option("where", "x > 1").load(path).count()


def stream(path, **options):
    texts = {name: str(text) for name, text in options.items()}
    source = LanceSource({"path": path, "changes": "feed", **texts})
    return source.streamReader(source.schema())


def drain(reader, offset=None):
    offset = offset or reader.initialOffset()
    found = []
    while (end := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
        parts = reader.partitions(offset, end)
        batches = [batch for part in parts for batch in reader.read(part)]
        found.append([row for batch in batches for row in batch.to_pylist()])
        offset = json.loads(json.dumps(end))
    return found, offset


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"startingVersion": 1}, [16]),
        ({"startingVersion": 1, "maxVersionsPerTrigger": 2}, [8, 5, 3]),
        ({"startingVersion": 2, "maxRowsPerTrigger": 5}, [2, 5, 3]),
        ({"startingVersion": 3, "maxBytesPerTrigger": 1}, [4, 1, 0, 3]),
    ],
    ids=str,
)
def test_a_stream_tells_the_same_version_by_version(path, options, sizes):
    found, _ = drain(stream(path, **options))
    assert [len(batch) for batch in found] in (sizes, [size for size in sizes if size])
    everything = plain(row for batch in found for row in batch)
    assert utc(everything) == utc(core(path, options["startingVersion"] - 1))


def test_a_stream_begins_with_all_rows_as_inserts(path):
    reader = stream(path)
    (rows,), offset = drain(reader)
    assert {row["_change_type"] for row in rows} == {"insert"}
    assert sorted(row["x"] for row in rows) == [2, 3, 5, 6, 7, 50, 100, 101]
    lancetable.open_table(path).delete("x = 50")
    (rows,), offset = drain(reader, offset)
    assert [(row["x"], row["_change_type"]) for row in rows] == [(50, "delete")]
    assert drain(reader, offset)[0] == []


def test_what_a_feed_does_not_offer(path):
    with pytest.raises(InputError, match="filter the data frame"):
        drain(stream(path, where="x > 1"))


def test_a_copy_follows_every_change(spark, path, tmp_path):
    """The feed, merged into a copy version by version, gives the rows of the table."""
    target = str(tmp_path / "copy")
    lancetable.create_table(target, schema=lancetable.open_table(path).schema)

    def apply(frame, _):
        rows = frame.where("_change_type != 'update_postimage' and _change_type != 'insert'")
        gone = [row["x"] for row in rows.collect()]
        table = lancetable.open_table(target)
        if gone:
            table.delete(f"x in ({', '.join(map(str, gone))})")
        new = frame.where("_change_type in ('insert', 'update_postimage')").select("x", "v")
        new.write.format("lance").mode("append").save(target)

    reader = spark.readStream.format("lance").option("changes", "feed")
    query = (
        reader.option("startingVersion", 1)
        .option("maxVersionsPerTrigger", 1)
        .load(path)
        .writeStream.foreachBatch(apply)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    key = [("x", "ascending")]
    expected = lancetable.open_table(path).scan().to_arrow().sort_by(key)
    assert lancetable.open_table(target).scan().to_arrow().sort_by(key).equals(expected)
