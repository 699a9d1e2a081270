"""Writers that are killed leave the table at the old or the new version, and open to others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


def run(kind: str, folder: Path, turns: int, seed: int, step: int = 1) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.crash.killed",
         kind, str(folder / "t"), str(turns), str(seed), str(step)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "files of dead writers" in done.stdout


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    run("moments", tmp_path, 15, 0)


@pytest.mark.slow
def test_killed_at_store_calls(tmp_path: Path) -> None:
    run("calls", tmp_path, 11, 1, step=9)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 10))
def test_killed_at_random_moments_many_times(tmp_path: Path, seed: int) -> None:
    run("moments", tmp_path, 150, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
def test_killed_at_store_calls_many_times(tmp_path: Path, seed: int) -> None:
    run("calls", tmp_path, 22, seed, step=1)
