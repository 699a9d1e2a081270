"""Many processes write one table: no row is lost, none is doubled, and nothing fails oddly."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import lancetable as lt
from tests.conftest import ROOT
from tests.races.worker import rows


def start(kind: str, uri: Path, owner: int, steps: int) -> "subprocess.Popen[str]":
    """Start a writer, which waits for the gate."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.races.worker", kind, str(uri), str(owner), str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def race(kind: str, uri: Path, writers: int, steps: int) -> list[dict[str, Any]]:
    """Let several writers go at once, and return what they did."""
    running = [start(kind, uri, owner, steps) for owner in range(1, writers + 1)]
    Path(f"{uri}.start").touch()
    answers = []
    for process in running:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err[-3000:]
        answers.append(json.loads(out.splitlines()[-1]))
    return answers


def check_mixed(uri: Path, writers: int, steps: int) -> None:
    """Run mixed operations, and compare the table with what all writers say they did."""
    lt.create_table(uri, rows(["shared"], 0))
    answers = race("mixed", uri, writers, steps)
    table = lt.open_table(uri)
    found = table.scan().to_arrow().to_pylist()
    keys = [row["key"] for row in found]
    expected = {"shared": sum(answer["shared"] for answer in answers)}
    for answer in answers:
        expected.update(answer["present"])
    assert [key for key, times in Counter(keys).items() if times > 1] == []
    assert sorted(keys) == sorted(expected)
    assert {row["key"]: row["count"] for row in found} == expected
    assert sum(answer["conflicts"] for answer in answers) == 0, "a conflict was not solved"
    left = [one.name for one in uri.rglob("*") if ".tmp" in one.name]
    assert left == []
    versions = [lt.open_table(uri, version=one.version) for one in table.versions()]
    fragments = [fragment for each in versions for fragment in each.fragments]
    referenced = {file.path for fragment in fragments for file in fragment.files}
    assert {one.name for one in (uri / "data").iterdir()} == referenced


@pytest.mark.slow
def test_processes_write_one_table(tmp_path: Path) -> None:
    check_mixed(tmp_path / "t", writers=4, steps=12)


@pytest.mark.soak
def test_eight_processes_do_fifty_things_each(tmp_path: Path) -> None:
    check_mixed(tmp_path / "t", writers=8, steps=50)


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_two_processes_merge_the_same_keys(tmp_path: Path, stable: bool) -> None:
    uri = tmp_path / "t"
    lt.create_table(uri, rows(["old"], 0), stable_row_ids=stable)
    answers = race("same", uri, 2, 50)
    found = lt.open_table(uri).scan().to_arrow().to_pylist()
    assert sorted(row["key"] for row in found) == sorted(
        ["old", *(f"new-{number}" for number in range(50))]
    )
    assert sum(answer["inserted"] for answer in answers) == 50
    assert sum(answer["updated"] for answer in answers) == 50
    assert all(row["count"] == 1 for row in found if row["key"] != "old")


@pytest.mark.soak
def test_processes_merge_the_same_keys_many_times(tmp_path: Path) -> None:
    for turn in range(30):
        uri = tmp_path / f"t{turn}"
        lt.create_table(uri, rows(["old"], 0))
        answers = race("same", uri, 4, 20)
        keys = lt.open_table(uri).scan(["key"]).to_arrow()["key"].to_pylist()
        assert len(keys) == len(set(keys)) == 21
        assert sum(answer["inserted"] for answer in answers) == 20
