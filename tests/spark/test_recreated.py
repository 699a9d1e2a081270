"""A table that is removed and created again is never taken for the one that was there before."""

import json
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import ConflictError, LanceTableError, TableNotFoundError
from lancetable.spark.options import parse_options
from lancetable.spark.source import LanceSource
from lancetable.spark.types import to_spark
from lancetable.spark.write.plan import plan_writing
from lancetable.spark.write.writer import LanceWriter

AGAIN = "removed and created again"


@pytest.fixture
def path(tmp_path):
    uri = str(tmp_path / "t")
    make(uri, 0, 1)
    return uri


def make(uri, *first):
    """Create a table with one version for each number."""
    table = lancetable.create_table(uri, pa.table({"x": [first[0]]}), stable_row_ids=True)
    for number in first[1:]:
        table.append(pa.table({"x": [number]}))


def recreate(uri, *first):
    shutil.rmtree(uri)
    make(uri, *first)


def files(uri):
    return sorted(str(one) for one in Path(uri).rglob("*") if one.is_file())


def source(path, **options):
    return LanceSource({"path": path, **options})


def test_frames_do_not_read_another_table(spark, path):
    frame = spark.read.format("lance").load(path)
    used = spark.read.format("lance").schema("x bigint").load(path)
    assert used.count() == 2
    recreate(path, 10, 11, 12)
    with pytest.raises(Exception, match=f"LANCE_CONFLICT.*{AGAIN}.*read it again"):
        frame.count()
    # Spark keeps the partitions of a frame that was used, and their files are gone.
    with pytest.raises(Exception, match="LANCE_FILE_NOT_FOUND"):
        used.count()
    assert spark.read.format("lance").load(path).count() == 3


@pytest.mark.parametrize("options", [{}, {"version": "2"}, {"changes": "feed"}], ids=str)
@pytest.mark.parametrize("numbers", [(10, 11), (10, 11, 12)])
def test_a_copy_of_a_source_knows_its_table(path, options, numbers):
    made = pickle.loads(pickle.dumps(source(path, **options)))
    schema = made.schema()
    assert made.reader(schema).partitions()
    recreate(path, *numbers)
    for use in (made.schema, lambda: made.reader(schema)):
        with pytest.raises(ConflictError, match=AGAIN):
            use()


def test_a_shorter_table_has_no_such_version(path):
    made = source(path)
    recreate(path, 10)
    with pytest.raises(LanceTableError, match="version 2"):
        made.schema()


def planned(path, overwrite=False, **options):
    schema = to_spark(pa.schema([("x", pa.int64())]))
    return plan_writing(parse_options({"path": path, **options}), schema, overwrite=overwrite)


def written(writer):
    return [writer.write(iter([pa.record_batch({"x": [7]})]))]


@pytest.mark.parametrize(
    ("overwrite", "options"),
    [
        (False, {}),
        (False, {"txnAppId": "a", "txnVersion": "1"}),
        (True, {}),
        (True, {"replaceWhere": "x > 5"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("numbers", [(10,), (10, 11), (10, 11, 12)])
def test_a_write_is_refused_and_leaves_nothing(path, overwrite, options, numbers):
    writer = LanceWriter(planned(path, overwrite, **options))
    recreate(path, *numbers)
    before = files(path)
    messages = written(writer)
    with pytest.raises(ConflictError, match=AGAIN):
        writer.commit(messages)
    writer.abort(messages)
    assert files(path) == before


def test_a_write_to_a_table_that_is_gone_leaves_no_file(path):
    writer = LanceWriter(planned(path))
    shutil.rmtree(path)
    messages = written(writer)
    with pytest.raises(TableNotFoundError):
        writer.commit(messages)
    assert files(path) == []


def test_a_write_whose_version_was_cleaned_away_is_made(path):
    writer = LanceWriter(planned(path))
    messages = written(writer)
    lancetable.open_table(path).append(pa.table({"x": [3]}))
    for manifest in sorted((Path(path) / "_versions").glob("*.manifest"))[1:]:
        manifest.unlink()
    writer.commit(messages)
    assert sorted(lancetable.open_table(path).scan().to_arrow()["x"].to_pylist()) == [0, 1, 3, 7]


@pytest.mark.parametrize("numbers", [(10,), (10, 11), (10, 11, 12)])
def test_a_stream_does_not_write_to_another_table(path, numbers):
    schema = to_spark(pa.schema([("x", pa.int64())]))
    writer = source(path, txnAppId="a", txnVersion="0").streamWriter(schema, overwrite=False)
    writer.commit(written(writer), 0)
    recreate(path, *numbers)
    before = files(path)
    messages = written(writer)
    with pytest.raises(ConflictError, match=AGAIN):
        writer.commit(messages, 1)
    assert files(path) == before


def stream(path, **options):
    made = source(path, **options)
    return made.streamReader(made.schema())


@pytest.mark.parametrize("numbers", [(10,), (10, 11), (10, 11, 12)])
@pytest.mark.parametrize("options", [{}, {"startingVersion": "1"}], ids=str)
@pytest.mark.parametrize("changes", ["error", "skip", "feed"])
def test_a_stream_does_not_go_on_in_another_table(path, changes, options, numbers):
    before = stream(path, changes=changes, **options)
    start = before.initialOffset()
    end = json.loads(json.dumps(before.latestOffset(start)))
    assert end != start
    assert before.partitions(start, end)
    assert before.latestOffset(end) == end
    recreate(path, *numbers)
    after = stream(path, changes=changes, **options)
    for use in (lambda: after.latestOffset(end), lambda: after.partitions(start, end)):
        with pytest.raises(ConflictError, match=f"{AGAIN}.*checkpoint"):
            use()


@pytest.mark.parametrize("changes", ["error", "feed"])
def test_offsets_of_earlier_releases_go_on(path, changes):
    reader = stream(path, changes=changes)
    end = reader.latestOffset(reader.initialOffset())
    old = {name: end[name] for name in ("version", "done", "snapshot")}
    assert reader.latestOffset(old) == old
    lancetable.open_table(path).append(pa.table({"x": [3]}))
    found = reader.partitions(old, reader.latestOffset(old))
    assert sum(batch.num_rows for one in found for batch in reader.read(one)) == 1
