"""The declarative pipeline of the examples, run as its users run it."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import lancetable
from tests.conftest import ROOT
from tests.spark.conftest import QUICK

EXAMPLE = ROOT / "examples" / "pipeline"
PROGRAM = Path(pyspark.__file__).parent / "bin" / "spark-pipelines"


def run(folder):
    """Run the pipeline of a folder in a Spark of its own, whose catalog ends with it."""
    environment = {key: os.environ[key] for key in os.environ if key != "SPARK_REMOTE"}
    environment |= {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": QUICK["spark.driver.extraJavaOptions"],
    }
    return subprocess.run(
        [PROGRAM, "run"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_declared_pipeline_runs_again_where_it_ran_before(java, tmp_path):
    pytest.importorskip("yaml")
    pytest.importorskip("grpc")
    events = str(tmp_path / "events.lance")
    table = lancetable.create_table(events, pa.table({"id": [1, 2, 3], "level": [1, 3, 5]}))
    text = (EXAMPLE / "spark-pipeline.yml").read_text()
    (tmp_path / "spark-pipeline.yml").write_text(text.replace("/data/pipeline", str(tmp_path)))
    (tmp_path / "flows.py").write_text((EXAMPLE / "flows.py").read_text())
    for expected in ([2, 3], [2, 3, 4]):
        done = run(tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        alarms = lancetable.open_table(str(tmp_path / "alarms.lance"))
        assert sorted(alarms.scan().to_arrow()["id"].to_pylist()) == expected
        table.append(pa.table({"id": [4, 5], "level": [4, 2]}))
