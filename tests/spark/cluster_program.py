"""What happens on a cluster of processes: executors that die, commits that fail, many writers."""

import os
import shutil
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyspark

import lancetable
from lancetable.operations.columns.add import FunctionOptions
from lancetable.spark import LanceTable, register, session
from tests.spark.conftest import QUICK


def files(path):
    return {one.name for one in (Path(path) / "data").iterdir()}


def named(path):
    """Return the data files that some version names."""
    table = lancetable.open_table(path)
    return {
        Path(file.path).name
        for info in table.versions()
        for part in lancetable.open_table(path, version=info.version).fragments
        for file in part.files
    }


def orphans_are_found(path):
    """What a dead executor began is in no version; a cleanup removes all of it and nothing else."""
    rows = lancetable.open_table(path).scan().to_arrow()
    assert named(path) <= files(path)
    lancetable.open_table(path).maintenance.cleanup(keep_last=100, unverified_after=timedelta(0))
    assert files(path) == named(path)
    assert lancetable.open_table(path).scan().to_arrow() == rows


def kill_own_executor():
    """Kill the JVM that this worker belongs to: the parent of the process that forked it."""
    status = Path(f"/proc/{os.getppid()}/stat").read_text()
    executor = int(status.rsplit(")", 1)[1].split()[1])
    command = Path(f"/proc/{executor}/cmdline").read_bytes()
    assert b"CoarseGrainedExecutorBackend" in command, command
    os.kill(executor, 9)


def executor_dies(spark, folder):
    """The first task that gets half way kills the JVM it belongs to."""
    path, once = f"{folder}/dies", Path(folder) / "died"

    def deadly(batches):
        for number, batch in enumerate(batches):
            if number == 1 and not once.exists():
                once.touch()
                kill_own_executor()
            yield batch

    rows = spark.range(0, 100_000, 1, 4).mapInArrow(deadly, "id bigint")
    rows.write.format("lance").mode("append").save(path)
    assert once.exists()
    found = lancetable.open_table(path).scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == list(range(100_000)), len(found)
    orphans_are_found(path)


def step_dies(spark, folder):
    """The same in the middle of a backfill."""
    path, once = f"{folder}/step", Path(folder) / "step-died"
    table = lancetable.create_table(path, pa.table({"x": list(range(100))}))
    for first in range(100, 400, 100):
        table.append(pa.table({"x": list(range(first, first + 100))}))

    def deadly(batch):
        if not once.exists():
            once.touch()
            kill_own_executor()
        return {"y": pa.array([x.as_py() * 2 for x in batch.column("x")])}

    options = FunctionOptions(schema=pa.schema([("y", pa.int64())]))
    LanceTable.forPath(spark, path).addColumns(deadly, options)
    found = lancetable.open_table(path).scan().to_arrow()
    assert found["y"].to_pylist() == [2 * x for x in found["x"].to_pylist()]
    assert len(found) == 400
    orphans_are_found(path)


def commit_fails(spark, folder):
    """Others replace the table while rows are written: the write fails as a whole."""
    path, begun, go = f"{folder}/fails", Path(folder) / "begun", Path(folder) / "go"
    table = lancetable.create_table(path, pa.table({"id": [1], "n": [1]}))

    def slow(batches):
        begun.touch()
        while not go.exists():
            time.sleep(0.05)
        yield from batches

    def meddle():
        while not begun.exists():
            time.sleep(0.05)
        table.overwrite(pa.table({"other": ["x"]}))
        go.touch()

    thread = threading.Thread(target=meddle)
    thread.start()
    rows = (
        spark.range(0, 100, 1, 2).selectExpr("id", "id n").mapInArrow(slow, "id bigint, n bigint")
    )
    try:
        rows.write.format("lance").mode("append").save(path)
    except Exception as error:
        assert "LANCE_CONFLICT" in str(error), error
    else:
        raise AssertionError("the write landed")
    finally:
        thread.join()
    assert lancetable.open_table(path).scan().to_arrow().to_pylist() == [{"other": "x"}]
    assert files(path) == named(path)


def many_writers(spark, folder):
    """Two appends, a merge and a compaction at the same time: all of them land."""
    path = f"{folder}/many"
    table = lancetable.create_table(path, pa.table({"id": [0, 1], "n": [0, 0]}))
    for first in range(2, 20, 2):
        table.append(pa.table({"id": [first, first + 1], "n": [0, 0]}))
    failed = []

    def doing(work):
        def run():
            try:
                register(spark)
                work()
            except Exception as error:
                failed.append(str(error)[:3000])

        return threading.Thread(target=run)

    def append(start):
        rows = spark.range(start, start + 50, 1, 2).selectExpr("id", "1L n")
        rows.write.format("lance").mode("append").save(path)

    def merge():
        source = spark.range(10, 30, 1, 2).selectExpr("id", "2L n")
        merging = LanceTable.forPath(spark, path).merge(source, ["id"], join="cluster")
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def compact():
        LanceTable.forPath(spark, path).optimize().executeCompaction()

    threads = [doing(work) for work in (lambda: append(100), lambda: append(200), merge, compact)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    rows = lancetable.open_table(path).scan().to_arrow().to_pylist()
    expected = [(n, 0) for n in range(10)] + [(n, 2) for n in range(10, 30)]
    expected += [(n, 1) for first in (100, 200) for n in range(first, first + 50)]
    assert sorted((row["id"], row["n"]) for row in rows) == expected
    assert named(path) == files(path)


def main(folder: str) -> None:
    spark = session(master="local-cluster[2,1,1024]", memory="1g", settings=QUICK)
    work = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
    try:
        for part in (executor_dies, step_dies, commit_fails, many_writers):
            part(spark, folder)
            sys.stdout.write(f"{part.__name__}\n")
    finally:
        spark.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
