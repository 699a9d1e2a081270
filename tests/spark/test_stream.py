"""Streams: versions as offsets on one side, every batch exactly once on the other."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import ConflictError, InputError, SchemaError, VersionNotFoundError
from lancetable.spark.source import LanceSource
from lancetable.spark.stream.writer import query_id
from lancetable.spark.write.idempotent import APP_ID, VERSION, last_version


@pytest.fixture
def path(tmp_path):
    """A table of five versions with two rows each."""
    uri = str(tmp_path / "t")
    table = lancetable.create_table(uri, pa.table({"x": [0, 1]}))
    for first in range(2, 10, 2):
        table.append(pa.table({"x": [first, first + 1]}))
    return uri


def reader(path, **options):
    source = LanceSource({"path": path, **{name: str(text) for name, text in options.items()}})
    return source.streamReader(source.schema())


def drain(stream, start=None):
    """Return the rows of each micro-batch until there are no more."""
    offset = stream.initialOffset() if start is None else start
    batches = []
    while (end := stream.latestOffset(offset, stream.getDefaultReadLimit())) != offset:
        parts = stream.partitions(offset, end)
        found = [batch for part in parts for batch in stream.read(part)]
        batches.append([value for batch in found for value in batch.column("x").to_pylist()])
        offset = json.loads(json.dumps(end))
    return batches, offset


def test_a_stream_begins_with_all_rows_and_goes_on(path):
    stream = reader(path)
    batches, offset = drain(stream)
    assert batches == [list(range(10))]
    table = lancetable.open_table(path)
    table.append(pa.table({"x": [10]}))
    table.config.update({"a": "b"})
    table.append(pa.table({"x": [11]}), merge_schema=True)
    batches, offset = drain(stream, offset)
    assert batches == [[10, 11]]
    assert drain(reader(path), offset) == ([], offset)


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"maxRowsPerTrigger": 4}, [4, 4, 2]),
        ({"maxRowsPerTrigger": 1}, [2, 2, 2, 2, 2]),
        ({"maxBytesPerTrigger": 1}, [2, 2, 2, 2, 2]),
        ({"startingVersion": 1, "maxVersionsPerTrigger": 3}, [6, 4]),
        ({"startingVersion": 4}, [4]),
        ({"startingVersion": 9}, []),
        ({"startingTimestamp": "2000-01-01T00Z"}, [10]),
        ({"startingTimestamp": "2999-01-01T00Z"}, []),
    ],
    ids=str,
)
def test_limits_and_beginnings(path, options, sizes):
    batches, _ = drain(reader(path, **options))
    assert [len(batch) for batch in batches] == sizes


def test_available_now_has_an_end(path):
    stream = reader(path, maxRowsPerTrigger=6)
    stream.prepareForTriggerAvailableNow()
    lancetable.open_table(path).append(pa.table({"x": [99]}))
    batches, _ = drain(stream)
    assert sorted(chain.from_iterable(batches)) == list(range(10))


def test_changed_rows_end_a_stream_unless_they_are_skipped(path):
    stream = reader(path)
    offset = drain(stream)[1]
    table = lancetable.open_table(path)
    table.delete("x = 3")
    table.append(pa.table({"x": [20]}))
    with pytest.raises(ConflictError, match="changes=skip"):
        drain(stream, offset)
    assert drain(reader(path, changes="skip"), offset)[0] == [[20]]


def test_columns_that_came_later_are_null_before(path):
    lancetable.open_table(path).columns.add({"y": "x + 1"})
    stream = reader(path, startingVersion=5)
    start = stream.initialOffset()
    (part,) = stream.partitions(start, stream.latestOffset(start))
    (batch,) = stream.read(part)
    assert batch.to_pydict() == {"x": [8, 9], "y": [None, None]}
    lancetable.open_table(path).columns.drop(["y"])
    lancetable.open_table(path).append(pa.table({"x": [10]}))
    with pytest.raises(SchemaError, match="no column 'y'"):
        drain(stream)


def test_versions_that_are_gone_are_named(path):
    stream = reader(path, startingVersion=1)
    for manifest in sorted((Path(path) / "_versions").glob("*.manifest"))[-2:]:
        manifest.unlink()
    with pytest.raises(VersionNotFoundError, match="cleaned away"):
        drain(stream)


def test_several_beginnings_are_one_too_many(path):
    with pytest.raises(InputError, match="give one of"):
        reader(path, startingVersion=1, startingTag="a").initialOffset()
    with pytest.raises(InputError, match="startingVersion"):
        reader(path, version=1)


def follow(spark, path, target, checkpoint, **options):
    stream = spark.readStream.format("lance").options(**options).load(path)
    query = (
        stream.writeStream.format("lance")
        .option("checkpointLocation", checkpoint)
        .option("path", target)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert query.exception() is None
    return query


def forget_last_batch(checkpoint):
    """As if Spark had died after the commit of the table and before its own."""
    log = Path(checkpoint) / "commits"
    last = max(int(one.name) for one in log.glob("[0-9]*"))
    for name in (f"{last}", f".{last}.crc"):
        (log / name).unlink(missing_ok=True)


def rows(path):
    return sorted(lancetable.open_table(path).scan().to_arrow()["x"].to_pylist())


def test_a_table_is_copied_exactly_once(spark, path, tmp_path):
    target, checkpoint = str(tmp_path / "copy"), str(tmp_path / "checkpoint")
    query = follow(spark, path, target, checkpoint, maxRowsPerTrigger=4)
    table = lancetable.open_table(target)
    assert rows(target) == list(range(10))
    assert [info.version for info in table.versions()] == [1, 2, 3]
    recorded = table._snapshot.transaction().properties
    assert (recorded[APP_ID], recorded[VERSION]) == (str(query.id), "2")

    forget_last_batch(checkpoint)
    lancetable.open_table(path).append(pa.table({"x": [10]}))
    follow(spark, path, target, checkpoint, maxRowsPerTrigger=4)
    assert rows(target) == list(range(11))
    referenced = {f.path for part in lancetable.open_table(target).fragments for f in part.files}
    assert {file.name for file in (Path(target) / "data").iterdir()} == referenced
    assert last_version(lancetable.open_table(target)._snapshot, str(query.id)) == 3


def test_complete_output_replaces_the_rows(spark, path, tmp_path):
    target = str(tmp_path / "counts")
    stream = spark.readStream.format("lance").option("maxRowsPerTrigger", 4).load(path)
    query = (
        stream.groupBy((stream["x"] % 2).alias("x"))
        .count()
        .writeStream.format("lance")
        .outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination(120)
    assert query.exception() is None
    found = lancetable.open_table(target).scan().to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["x"]) == [
        {"x": 0, "count": 5},
        {"x": 1, "count": 5},
    ]
    assert lancetable.open_table(target).version == 3


def test_the_id_of_a_query_comes_from_its_checkpoint(tmp_path):
    (tmp_path / "metadata").write_text('{"id":"abc"}')
    assert query_id(str(tmp_path)) == "abc"
    assert query_id(f"file:{tmp_path}") == "abc"
    assert query_id(f"file://{tmp_path}/") == "abc"
    for missing in (None, str(tmp_path / "none")):
        with pytest.raises(InputError, match="txnAppId"):
            query_id(missing)
