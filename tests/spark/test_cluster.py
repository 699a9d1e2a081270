"""A cluster of processes; a program of its own, since a process has one Spark."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
def test_executors_and_commits_may_fail(java, tmp_path):
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster_program", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert done.stdout.split() == ["executor_dies", "step_dies", "commit_fails", "many_writers"]
