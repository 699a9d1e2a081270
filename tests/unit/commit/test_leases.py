"""Leases: when they are written, renewed and removed, and for whom they count."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.leases import (
    Hold,
    active_leases,
    extend_lease,
    lease_seconds,
    leases_of,
    reading,
    records,
    store_time,
    writing,
)
from lancetable.commit.leases import (
    hold as holding,
)
from lancetable.commit.leases.records import LEASES
from lancetable.commit.versions import load
from lancetable.errors import StoreError
from lancetable.store import LocalStore
from lancetable.store.memory import MemoryStore
from lancetable.store.wrap import WrappedStore
from tests.stores import CountingStore, WrappedLocation

_T = TypeVar("_T")

NOW = timedelta(0)


@pytest.fixture
def _at_once(monkeypatch) -> None:
    monkeypatch.setattr(holding, "LAZY_AFTER", 0.0)


def _keeper_is_quiet() -> bool:
    return holding._KEEPER._thread is None


def test_nothing_is_written_for_short_work() -> None:
    store = CountingStore(MemoryStore())
    with reading(store, 3) as hold:
        hold.tick()
    with writing(store, 3):
        extend_lease()
    assert store.calls == []


def test_a_reader_protects_its_versions() -> None:
    store = MemoryStore()
    with reading(store, 3, 5) as hold:
        hold.start()
        hold.start()
        (lease,) = active_leases(store, time.time())
        assert [version for version in range(8) if lease.covers(version)] == [3, 4, 5]
        assert lease.files_since is None
        assert _keeper_is_quiet(), "no thread before it is worth it"
    assert leases_of(store) == []


@pytest.mark.usefixtures("_at_once")
def test_a_writer_protects_later_versions_and_new_files() -> None:
    store = MemoryStore()
    with writing(store, 3):
        extend_lease()
        (lease,) = active_leases(store, time.time())
        assert [version for version in range(6) if lease.covers(version)] == [3, 4, 5]
        assert lease.files_since is not None
        assert lease.files_since < time.time()
        with writing(MemoryStore(), 1):
            extend_lease()
        extend_lease()
    assert leases_of(store) == []
    assert _keeper_is_quiet()


@pytest.mark.usefixtures("_at_once")
def test_a_lease_is_renewed_while_its_holder_lives(tmp_path) -> None:
    store = LocalStore(str(tmp_path))
    with reading(store, 1, seconds=1) as hold:
        hold.tick()
        (path,) = tmp_path.glob(f"{LEASES}/*")
        first = path.stat().st_mtime_ns
        deadline = time.monotonic() + 20
        while path.stat().st_mtime_ns == first:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert active_leases(store, time.time())
    assert not path.exists()
    assert _keeper_is_quiet()


def test_a_lease_counts_from_when_the_store_saw_it() -> None:
    store = MemoryStore()
    hold = Hold(store, 1, 1, kind="read", seconds=60)
    hold.start()
    hold.renew()
    assert active_leases(store, time.time() + 59)
    assert not active_leases(store, time.time() + 61)
    hold.stop()


def test_a_lease_that_cannot_be_understood_protects_everything_for_an_hour() -> None:
    nested = b"[" * 100_000
    texts = [b"{", b"[1]", b"", nested, b'{"last": 1e999, "kind": "", "first": 0}', b"\xff"]
    for text in texts:
        store = MemoryStore()
        store.put(f"{LEASES}/a.json", text)
        (lease,) = active_leases(store, time.time() + 3500)
        assert lease.covers(0)
        assert lease.covers(10**12)
        assert active_leases(store, time.time() + 3700) == []
    assert leases_of(MemoryStore({f"{LEASES}/c.clock": b"{}"})) == []


class _Failing(WrappedStore):
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        if verb == "read" and path.startswith(LEASES):
            raise StoreError(f"{path}: input/output error")
        return action()


def test_a_lease_that_cannot_be_read_stops_a_cleanup(tmp_path) -> None:
    table = lt.create_table(tmp_path / "t", [{"a": 1}])
    table.overwrite([{"a": 2}])
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Failing)
    with (
        lt.open_table(tmp_path / "t", version=1).hold(),
        pytest.raises(StoreError, match="input/output"),
    ):
        lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW)
    assert [one.version for one in table.versions()] == [1, 2]


def test_the_time_of_a_store_leaves_no_file() -> None:
    store = MemoryStore()
    assert abs(store_time(store) - time.time()) < 60
    assert not store.objects


def test_a_hold_that_cannot_be_written_says_so(tmp_path) -> None:
    table = lt.create_table(tmp_path / "t", [{"a": 1}])
    (tmp_path / "t" / LEASES).write_bytes(b"no folder can be here")
    with pytest.raises(StoreError, match="lease cannot be written"), table.hold():
        pass
    with table.hold(seconds=0):
        assert table.count() == 1


def test_leases_can_be_switched_off(monkeypatch) -> None:
    store = CountingStore(MemoryStore())
    with reading(store, 1, seconds=0) as hold:
        hold.start()
        hold.keep()
    monkeypatch.setenv(records.SECONDS_VARIABLE, "0")
    with reading(store, 1) as hold:
        hold.start()
    assert store.calls == []
    monkeypatch.setenv(records.SECONDS_VARIABLE, "7")
    assert lease_seconds() == 7
    monkeypatch.setenv(records.SECONDS_VARIABLE, "soon")
    assert lease_seconds() == records.DEFAULT_SECONDS


def test_a_store_that_cannot_be_written_to_is_read_all_the_same(tmp_path) -> None:
    rows = pa.table({"id": range(200_000), "s": ["x" * 20] * 200_000})
    table = lt.create_table(tmp_path / "t", rows, max_rows_per_file=20_000)
    (tmp_path / "t" / LEASES).write_bytes(b"no folder can be here")
    assert sum(batch.num_rows for batch in table.scan().to_batches()) == 200_000


def test_a_held_version_stays(tmp_path) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"id": [1]}))
    with lt.open_table(tmp_path / "t").hold(seconds=30):
        table.overwrite(pa.table({"id": [2]}))
        assert table.maintenance.cleanup(older_than=NOW, dry_run=True).removed_versions == ()
    assert len(table.maintenance.cleanup(older_than=NOW).removed_versions) == 1


KILLED = """
import sys, time
import lancetable as lt
with lt.open_table(sys.argv[1]).hold(seconds=1):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_lease_of_a_killed_reader_runs_out(tmp_path) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"id": [1]}))
    reader = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "t")], stdout=subprocess.PIPE, text=True
    )
    with reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "held\n"
        table.overwrite(pa.table({"id": [2]}))
        assert table.maintenance.cleanup(older_than=NOW, dry_run=True).removed_versions == ()
        os.kill(reader.pid, signal.SIGKILL)
        reader.wait()
    assert list(Path(tmp_path / "t" / LEASES).iterdir())
    deadline = time.monotonic() + 30
    while not table.maintenance.cleanup(older_than=NOW).removed_versions:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    table.maintenance.cleanup(older_than=NOW)
    assert not list(Path(tmp_path / "t" / LEASES).iterdir())


FORKED = """
import os, sys, time
from lancetable.commit.leases import active_leases, reading
from lancetable.store import LocalStore
store = LocalStore(sys.argv[1])
with reading(store, 1, seconds=60) as hold:
    hold.start()
    pid = os.fork()
    if not pid:
        hold.stop()
        os._exit(0)
    os.waitpid(pid, 0)
    print(len(active_leases(store, time.time())))
"""


def test_a_forked_process_leaves_the_leases_of_its_parent_alone(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


@pytest.mark.usefixtures("_at_once")
def test_a_change_that_takes_long_has_a_lease(tmp_path) -> None:
    table = lt.create_table(tmp_path / "t", pa.table({"id": [1, 2]}))
    seen = []

    def batches():
        for number in range(3):
            yield pa.record_batch({"id": [number]})
            seen.append(len(active_leases(LocalStore(str(tmp_path / "t")), time.time())))

    table.append(pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches()))
    assert seen[-1] == 1
    assert not list((tmp_path / "t" / LEASES).iterdir())
    done = table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert [one.version for one in done.removed_versions] == [1]
