"""The declarative pipeline of the examples, run as its users run it."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import lancetable
from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "pipeline"


def run(spec, port):
    return subprocess.run(
        [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(spec)],
        capture_output=True,
        text=True,
        env={**os.environ, "SPARK_REMOTE": f"sc://127.0.0.1:{port}"},
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_declared_pipeline_reads_and_writes_tables(spark, port, tmp_path):
    pytest.importorskip("yaml")
    events = str(tmp_path / "events.lance")
    table = lancetable.create_table(events, pa.table({"id": [1, 2, 3], "level": [1, 3, 5]}))
    spec = tmp_path / "spark-pipeline.yml"
    text = (EXAMPLE / "spark-pipeline.yml").read_text()
    spec.write_text(text.replace("/data/pipeline", str(tmp_path)))
    (tmp_path / "flows.py").write_text((EXAMPLE / "flows.py").read_text())
    for expected in ([2, 3], [2, 3, 4]):
        done = run(spec, port)
        assert done.returncode == 0, done.stdout + done.stderr
        alarms = lancetable.open_table(str(tmp_path / "alarms.lance"))
        assert sorted(alarms.scan().to_arrow()["id"].to_pylist()) == expected
        table.append(pa.table({"id": [4, 5], "level": [4, 2]}))
