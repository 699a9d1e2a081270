"""The same over Spark Connect, where there is no JVM to talk to."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def test_everything_works_over_connect(tmp_path):
    pytest.importorskip("grpc")
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    program = ROOT / "tests" / "spark" / "connect_program.py"
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "t")],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:6000]
