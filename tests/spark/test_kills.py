"""A driver that dies at any point: after a restart every row is there exactly once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def start(*arguments):
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.stream_program", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def versions(target):
    return len(list((Path(target) / "_versions").glob("*.manifest")))


def kill(program):
    """Kill the program and its JVM, as a machine that goes dark does."""
    os.killpg(program.pid, signal.SIGKILL)
    program.communicate()


def run_and_kill(paths, more, pause):
    """Let the stream write some versions, then kill it; say whether it was still running."""
    target, program = paths[1], start(*paths)
    wanted = versions(target) + more
    end = time.monotonic() + 600
    while versions(target) < wanted and program.poll() is None:
        assert time.monotonic() < end, "the stream does not move"
        time.sleep(0.02)
    time.sleep(pause)
    was_running = program.poll() is None
    kill(program)
    return was_running


def check(tmp_path, kills, seed):
    count = 4 * kills
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    table = lancetable.create_table(source, pa.table({"x": [0, 1]}))
    for first in range(2, 2 * count, 2):
        table.append(pa.table({"x": [first, first + 1]}))
    paths = (source, target, str(tmp_path / "checkpoint"))
    chance = random.Random(seed)
    killed = 0
    for _ in range(kills):
        # Some versions, and any moment until the next.
        killed += run_and_kill(paths, chance.choice([1, 2, 3]), chance.random() * 0.7)
    program = start(*paths)
    _, said = program.communicate(timeout=600)
    assert program.returncode == 0, said.decode()[-3000:]
    assert killed, "no kill came in time"
    found = lancetable.open_table(target).scan().to_arrow()["x"].to_pylist()
    assert sorted(found) == list(range(2 * count))


def test_every_row_comes_once_after_two_kills(java, tmp_path):
    check(tmp_path, 2, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_every_row_comes_once_after_many_kills(java, tmp_path, seed):
    check(tmp_path, 5, seed)
