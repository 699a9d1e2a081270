"""Indices are created, optimized, moved and dropped while processes write: no row is missed."""

import json
from collections import Counter
from pathlib import Path

import pytest

import lancetable as lt
from tests.races.test_processes import start
from tests.races.worker import rows


def check(uri: Path, writers: int, keepers: int, steps: int, *, stable: bool) -> Counter[str]:
    """Let writers and keepers of indices go at once; return what the keepers did."""
    table = lt.create_table(uri, rows(["shared"], 0), stable_row_ids=stable)
    table.indices.create("key", "btree")
    kinds = ["mixed"] * writers + ["indices"] * keepers
    running = [start(kind, uri, owner, steps) for owner, kind in enumerate(kinds, 1)]
    Path(f"{uri}.start").touch()
    expected, outcomes = {"shared": 0}, Counter[str]()
    for process in running:
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, err[-3000:]
        answer = json.loads(out.splitlines()[-1])
        expected.update(answer.get("present", {}))
        expected["shared"] += answer.get("shared", 0)
        outcomes.update(answer.get("outcomes", {}))
    table.refresh()
    found = table.scan(use_indices=False).to_arrow().to_pylist()
    assert {row["key"]: row["count"] for row in found} == expected
    assert len(found) == len(expected)
    check_answers(table)
    table.indices.create("count", "btree", name="last", replace=True)
    table.indices.optimize(mode="merge")
    check_answers(table)
    check_files(uri, table)
    return outcomes


def check_answers(table: lt.Table) -> None:
    """Compare the rows that indices find with those of a scan."""
    found = table.scan(use_indices=False).to_arrow().to_pylist()
    predicates = [f"key = '{row['key']}'" for row in found[:40]]
    predicates += [f"count = {count}" for count in {row["count"] for row in found}]
    predicates += ["owner = 1", "owner > 1", "count >= 10", "contains(key, '1-1')"]
    for where in predicates:
        plain = table.scan(where=where, use_indices=False).to_arrow()
        assert table.scan(where=where).to_arrow().equals(plain), where
        assert table.count(where) == len(plain), where


def check_files(uri: Path, table: lt.Table) -> None:
    """Compare the folders of segments with those that versions name."""
    versions = [lt.open_table(uri, version=one.version) for one in table.versions()]
    segments = [one for each in versions for one in each._snapshot.indices()]
    named = {segment.uuid for segment in segments if segment.files}
    have = {one.parent.name for one in uri.glob("_indices/*/*")}
    assert have == named
    for segment in segments:
        for file in segment.files:
            assert (uri / "_indices" / segment.uuid / file.path).stat().st_size == file.size


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_indices_change_while_rows_do(tmp_path: Path, stable: bool) -> None:
    outcomes = check(tmp_path / "t", 2, 2, 12, stable=stable)
    assert outcomes["optimize"]
    assert outcomes["compact"]


@pytest.mark.soak
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_indices_change_while_rows_do_for_long(tmp_path: Path, stable: bool) -> None:
    for turn in range(5):
        check(tmp_path / f"t{turn}", 3, 3, 30, stable=stable)
