"""Compaction beside a loop of deletes, updates and appends: no row is lost, revived or doubled."""

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import lancetable as lt
from tests.conftest import ROOT
from tests.races.worker import PATIENT, rows

SETTINGS: list[dict[str, Any]] = [
    {"deleted_share": 0.0},
    {"target_rows": 12, "deleted_share": 0.0},
    {"sort_by": ["key"]},
    {"where": "owner = 1"},
    {"copy_pages": False},
]


class Loop:
    """Deletes, updates and appends rows of its own, and remembers what landed."""

    def __init__(self, uri: Path, owner: int, seed: int) -> None:
        self.uri = uri
        self.owner = owner
        self.chance = random.Random(seed)
        self.present: dict[str, int] = {}
        self.number = 0
        self.error: BaseException | None = None

    def run(self, stop: threading.Event) -> None:
        """Go on until told to stop."""
        try:
            table = lt.open_table(self.uri)
            while not stop.is_set():
                self.step(table)
        except BaseException as error:
            self.error = error

    def step(self, table: lt.Table) -> None:
        """Do one thing."""
        act = self.chance.choice(["append", "append", "delete", "update", "update own"])
        if act == "append" or len(self.present) < 3:
            self.number += 1
            keys = [f"{self.owner}-{self.number}-{one}" for one in range(4)]
            table.append(rows(keys, self.owner), commit=PATIENT)
            self.present.update(dict.fromkeys(keys, 0))
        elif act == "delete":
            key = self.chance.choice(list(self.present))
            assert table.delete(f"key = '{key}'", commit=PATIENT).rows == 1
            del self.present[key]
        else:
            some = self.chance.sample(list(self.present), 2)
            where = f"key in ('{some[0]}', '{some[1]}')"
            if act == "update own":
                some, where = list(self.present), f"owner = {self.owner}"
            done = table.update({"count": "count + 1"}, where, commit=PATIENT)
            assert done.rows == len(some)
            for key in some:
                self.present[key] += 1


def check(uri: Path, loops: list[dict[str, int]]) -> None:
    """Compare the table with what all writers say they did."""
    expected = {"shared": 0}
    for present in loops:
        expected.update(present)
    found = lt.open_table(uri).scan().to_arrow().to_pylist()
    assert [key for key, times in Counter(row["key"] for row in found).items() if times > 1] == []
    assert {row["key"]: row["count"] for row in found} == expected


def in_threads(uri: Path, rounds: int, *, stable: bool) -> Counter[str]:
    """Compact so many times beside three writers; return how it went."""
    lt.create_table(uri, rows(["shared"], 0), stable_row_ids=stable)
    loops = [Loop(uri, owner, owner) for owner in (1, 2, 3)]
    stop = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stop,)) for one in loops]
    for thread in threads:
        thread.start()
    chance = random.Random(rounds)
    outcomes: Counter[str] = Counter()
    table = lt.open_table(uri)
    try:
        for number in range(rounds):
            while lt.open_table(uri).version < 4 * number and not any(one.error for one in loops):
                continue
            if chance.random() < 0.5:
                table.refresh()
            try:
                done = table.compact(
                    **chance.choice(SETTINGS),
                    commit=lt.CommitOptions(attempts=50, deadline_seconds=60),
                )
            except lt.ConflictError as error:
                assert "another writer" in str(error)
                outcomes["reported"] += 1
            else:
                outcomes["committed" if done.fragments_removed else "nothing to do"] += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for one in loops:
        if one.error is not None:
            raise one.error
    check(uri, [one.present for one in loops])
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True])
def test_compaction_beside_threads(tmp_path: Path, stable: bool) -> None:
    outcomes = in_threads(tmp_path / "t", 6, stable=stable)
    assert outcomes["committed"] > 0
    assert outcomes["reported"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("stable", [False, True])
def test_two_hundred_compactions_beside_threads(tmp_path: Path, stable: bool) -> None:
    outcomes = in_threads(tmp_path / "t", 200, stable=stable)
    # The others found nothing to do, because writers had not got far since the last one.
    assert outcomes["committed"] > 50
    assert outcomes["reported"] == 0


_PROGRAM = """
import json, sys, threading, time
from pathlib import Path
from tests.races.test_compaction import Loop
uri, owner, stop = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
event = threading.Event()
def watch():
    while not stop.exists():
        time.sleep(0.02)
    event.set()
threading.Thread(target=watch, daemon=True).start()
loop = Loop(uri, owner, owner)
loop.run(event)
if loop.error is not None:
    raise loop.error
print(json.dumps(loop.present))
"""


def in_processes(uri: Path, rounds: int, *, stable: bool, writers: int = 3) -> Counter[str]:
    """Compact so many times beside other processes; return how it went."""
    lt.create_table(uri, rows(["shared"], 0), stable_row_ids=stable)
    stop = Path(f"{uri}.stop")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(uri), str(owner), str(stop)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )
        for owner in range(1, writers + 1)
    ]  # fmt: skip
    outcomes: Counter[str] = Counter()
    table = lt.open_table(uri)
    chance = random.Random(rounds)
    try:
        while sum(outcomes.values()) < rounds:
            if table.refresh().version < 6 * (1 + sum(outcomes.values())) and not any(
                one.poll() for one in running
            ):
                continue
            try:
                done = table.compact(**chance.choice(SETTINGS), commit=PATIENT)
            except lt.ConflictError:
                outcomes["reported"] += 1
            else:
                outcomes["committed" if done.fragments_removed else "nothing to do"] += 1
    finally:
        stop.touch()
        answers = [one.communicate(timeout=120) for one in running]
    assert [one.returncode for one in running] == [0] * writers, [err[-2000:] for _, err in answers]
    check(uri, [json.loads(out.splitlines()[-1]) for out, _ in answers])
    return outcomes


@pytest.mark.slow
def test_compaction_beside_processes(tmp_path: Path) -> None:
    outcomes = in_processes(tmp_path / "t", 3, stable=True, writers=2)
    assert outcomes["committed"] > 0
    assert outcomes["reported"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("stable", [False, True])
def test_two_hundred_compactions_beside_processes(tmp_path: Path, stable: bool) -> None:
    outcomes = in_processes(tmp_path / "t", 200, stable=stable)
    # The others found nothing to do, because writers had not got far since the last one.
    assert outcomes["committed"] > 50
    assert outcomes["reported"] == 0


def test_two_compactions_at_a_time(tmp_path: Path) -> None:
    lt.create_table(tmp_path / "t", rows(["shared"], 0))
    table = lt.open_table(tmp_path / "t")
    for number in range(12):
        table.append(rows([f"k{number}"], number % 3))
    handles = [lt.open_table(tmp_path / "t") for _ in range(3)]
    errors: list[BaseException] = []

    def compact(handle: lt.Table) -> None:
        try:
            handle.compact(commit=PATIENT)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=compact, args=(one,)) for one in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = lt.open_table(tmp_path / "t")
    assert len(found.fragments) == 1
    keys = found.scan(["key"]).to_arrow()["key"]
    assert sorted(keys.to_pylist()) == sorted(["shared", *(f"k{number}" for number in range(12))])
