"""Cleanup, check and repair of tables in an object store, and the leases that protect readers."""

import json
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest

import lancetable as lt
from lancetable.commit.leases.records import LEASES
from lancetable.operations.cleanup import run
from tests.servers.places import Place

pytestmark = pytest.mark.cloud
NOW = timedelta(0)


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else commits to these tables, so that a cleanup need not wait for them."""
    monkeypatch.setattr(run, "SETTLE_SECONDS", 0.0)


def make(place: Place, versions: int = 4) -> lt.Table:
    """Make a table whose versions have files of their own."""
    table = lt.create_table(
        place.uri, {"id": range(10), "s": ["a"] * 10}, storage_options=place.options
    )
    for number in range(1, versions):
        table.overwrite({"id": range(number * 10, number * 10 + 10), "s": ["b"] * 10})
    return table


def opened(place: Place, version: int | None = None) -> lt.Table:
    return lt.open_table(place.uri, version=version, storage_options=place.options)


def files(table: lt.Table) -> set[str]:
    return {entry.path for entry in table._snapshot.store.list("")}


def ids(table: lt.Table) -> list[int]:
    found: list[int] = table.scan(["id"]).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_cleanup_leaves_what_is_needed(remote: Place) -> None:
    table = make(remote)
    table.tags.create("first", 1)
    before = files(table)
    foreseen = table.maintenance.cleanup(older_than=NOW, dry_run=True)
    assert files(table) == before
    done = table.maintenance.cleanup(older_than=NOW)
    assert [one.version for one in done.removed_versions] == [2, 3]
    assert {one.version: one.reason for one in done.kept_versions}.keys() == {1, 4}
    assert (done.removed, done.failed) == (foreseen.removed, ())
    assert len(before) - len(files(table)) == done.files
    assert ids(opened(remote, 1)) == list(range(10))
    assert ids(opened(remote)) == list(range(30, 40))
    assert [info.version for info in opened(remote).versions()] == [1, 4]
    table.append({"id": [99], "s": ["c"]})
    assert ids(opened(remote)) == [*range(30, 40), 99]
    assert table.maintenance.check(level="data").is_ok


def test_cleanup_finds_orphans_by_their_age(remote: Place) -> None:
    table = make(remote, versions=1)
    store = table._snapshot.store
    orphan = "data/0123456789abcdef.lance"
    store.put(orphan, b"left by a writer that died")
    assert table.maintenance.cleanup(older_than=NOW).too_young["data"].files == 1
    assert orphan in files(table)
    done = table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert {kind: amount.files for kind, amount in done.removed.items()} == {"data": 1}
    assert orphan not in files(table)


def test_a_lease_keeps_a_version_from_being_removed(remote: Place) -> None:
    make(remote)
    old, new = opened(remote, 2), opened(remote)
    with old.hold():
        assert any(path.startswith(f"{LEASES}/") for path in files(new))
        done = new.maintenance.cleanup(older_than=NOW)
        assert {one.version: one.reason for one in done.kept_versions}[2].startswith("lease")
        assert ids(opened(remote, 2)) == list(range(10, 20))
    assert not any(path.startswith(f"{LEASES}/") for path in files(new))
    assert 2 in [one.version for one in new.maintenance.cleanup(older_than=NOW).removed_versions]
    with pytest.raises(lt.VersionNotFoundError):
        opened(remote, 2)


def test_a_long_scan_outlives_compaction_and_cleanup(remote: Place) -> None:
    table = lt.create_table(remote.uri, {"id": range(500)}, storage_options=remote.options)
    for number in range(1, 6):
        table.append({"id": range(number * 500, number * 500 + 500)})
    batches = iter(opened(remote).scan(batch_rows=100).to_batches())
    first = next(batches)
    other = opened(remote)
    assert other.compact().fragments_removed == 6
    other.maintenance.cleanup(older_than=NOW)
    rest = [value for batch in batches for value in batch["id"].to_pylist()]
    assert sorted([*first["id"].to_pylist(), *rest]) == list(range(3000))
    assert [one.version for one in other.maintenance.cleanup(older_than=NOW).kept_versions] == [
        other.version
    ]


READER = """
import json, sys, time
import lancetable as lt

uri, options = sys.argv[1], json.loads(sys.argv[2])
with lt.open_table(uri, version=2, storage_options=options).hold(seconds=1):
    print("holding", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_lease_of_a_killed_reader_ends(s3: Place) -> None:
    make(s3)
    command = [sys.executable, "-c", READER, s3.uri, json.dumps(s3.options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "holding\n"
        table = opened(s3)
        assert 2 in [one.version for one in table.maintenance.cleanup(older_than=NOW).kept_versions]
        reader.kill()
    deadline = time.monotonic() + 30
    while 2 not in [
        one.version for one in table.maintenance.cleanup(older_than=NOW).removed_versions
    ]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert [info.version for info in table.versions()] == [4]
    assert not any(path.startswith(f"{LEASES}/") for path in files(table))


@pytest.mark.parametrize("level", ["metadata", "files", "data"])
def test_a_sound_table_is_found_sound(remote: Place, level: Any) -> None:
    table = make(remote)
    table.delete("id % 10 = 3")
    found = table.maintenance.check(level=level)
    assert (found.problems, found.versions) == ((), 5)
    assert lt.check_table(remote.uri, level=level, storage_options=remote.options).is_ok


def test_a_missing_file_is_named_and_repaired(remote: Place) -> None:
    table = lt.create_table(remote.uri, {"id": range(10)}, storage_options=remote.options)
    table.append({"id": range(10, 20)})
    lost = table._snapshot.manifest.fragments[0].files[0].path
    table._snapshot.store.delete(f"data/{lost}")
    (problem,) = table.maintenance.check().problems
    assert (problem.kind, problem.versions) == ("data", (1, 2))
    assert lost in problem.path
    before = files(table)
    plan = opened(remote).maintenance.repair()
    assert (plan.lost_rows, {one.kind for one in plan.losses}) == (10, {"rows"})
    assert files(table) == before
    assert plan.execute().version == 3
    assert before <= files(table)
    assert ids(opened(remote)) == list(range(10, 20))
    assert opened(remote).maintenance.check(all_versions=False).is_ok


def test_a_damaged_page_is_found_when_pages_are_read(remote: Place) -> None:
    table = lt.create_table(remote.uri, {"id": range(5000)}, storage_options=remote.options)
    table.append({"id": range(5000, 5010)})
    store = table._snapshot.store
    path = f"data/{table._snapshot.manifest.fragments[0].files[0].path}"
    content = bytearray(store.read(path))
    content[:16] = b"\xff" * 16
    store.put(path, bytes(content))
    assert opened(remote).maintenance.check(level="files").is_ok
    (problem,) = opened(remote).maintenance.check(level="data").problems
    assert path in problem.path
    plan = opened(remote).maintenance.repair("data")
    assert plan.lost_rows == 5000
    plan.execute()
    assert ids(opened(remote)) == list(range(5000, 5010))


def test_a_damaged_manifest_is_passed_by(remote: Place) -> None:
    table = make(remote, versions=3)
    store = table._snapshot.store
    path = table._snapshot.manifest_path
    store.put(path, store.read(path)[:-20])
    with pytest.raises(lt.CorruptError, match="repair_table"):
        opened(remote)
    found = lt.check_table(remote.uri, storage_options=remote.options)
    assert found.latest == 2
    assert any(one.kind == "manifest" and path in one.path for one in found.problems)
    plan = lt.repair_table(remote.uri, storage_options=remote.options)
    assert plan.execute().version == 4
    assert ids(opened(remote)) == list(range(10, 20))
