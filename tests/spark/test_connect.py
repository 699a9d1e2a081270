"""What goes through a server works the same there: reading, writing, streams."""

import pyarrow as pa
import pytest

import lancetable
from lancetable.errors import InputError
from lancetable.spark import show_progress, upsert
from lancetable.spark.kinds import is_connect
from lancetable.spark.sessions.progress import observed


def test_rows_are_written_and_read(connect, tmp_path):
    path = str(tmp_path / "t")
    assert is_connect(connect)
    rows = connect.range(0, 100, 1, 2).selectExpr("id", "id % 7 as n")
    rows.write.format("lance").mode("append").save(path)
    assert connect.read.format("lance").load(path).where("n = 3 and id > 50").count() == 7
    with pytest.raises(Exception, match="LANCE_TABLE_NOT_FOUND"):
        connect.read.format("lance").load(f"{path}-none").count()


def test_streams_run_on_the_server(connect, tmp_path):
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    table = lancetable.create_table(path, pa.table({"id": [1, 2], "n": [10, 20]}))
    table.append(pa.table({"id": [3], "n": [30]}))
    lancetable.create_table(copy, pa.table({"id": [1], "n": [0]}))
    stream = connect.readStream.format("lance").option("startingVersion", 1).load(path)
    write = stream.writeStream.foreachBatch(upsert(copy, on="id", app_id="one", order_by="n"))
    write = write.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query = started(write)
    query.awaitTermination(300)
    assert query.exception() is None, query.exception()
    found = lancetable.open_table(copy).scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3], "n": [10, 20, 30]}
    with pytest.raises(InputError, match="app_id"):
        upsert(copy, on="id")(connect.range(1), 0)


def started(write):
    """Start a query; a busy server loses patience with a Python process of its own."""
    for _ in range(5):
        try:
            return write.start()
        except Exception as error:
            if "failed to connect back" not in str(error):
                raise
    return write.start()


def test_progress_is_told(either):
    seen = []
    with observed(either, lambda done, total: seen.append((done, total))):
        either.range(0, 4, 1, 4).mapInArrow(_slow, "id bigint").collect()
    assert seen
    assert all(0 <= done <= total for done, total in seen)
    with show_progress(either, "nothing is shown where nobody looks"):
        either.range(1).collect()


def _slow(batches):
    import time

    for batch in batches:
        time.sleep(0.5)
        yield batch
