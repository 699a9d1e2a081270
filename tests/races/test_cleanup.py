"""Cleanups without retention beside writers and readers: no row is lost, no scan goes wrong."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.store import Store
from lancetable.store.wrap import WrappedStore
from tests.stores import WrappedLocation

_T = TypeVar("_T")
NOW = timedelta(0)
PATIENT = lt.CommitOptions(attempts=200, deadline_seconds=120)


@pytest.fixture(autouse=True)
def _others_write(monkeypatch) -> None:
    monkeypatch.setattr("lancetable.operations.cleanup.run.SETTLE_SECONDS", 2.0)


def _rounds(path, writers: int, rounds: int) -> None:
    lt.create_table(path, pa.table({"id": pa.array([-1], pa.int64()), "n": [0]}))
    failed: list[BaseException] = []
    busy = [writers]

    def write(number: int) -> None:
        try:
            for step in range(rounds):
                id_ = number * rounds + step
                table = lt.open_table(path)
                table.append(pa.table({"id": [id_], "n": [0]}), commit=PATIENT)
                table.update({"n": "n + 1"}, f"id = {id_}", commit=PATIENT)
        except BaseException as error:
            failed.append(error)
        finally:
            busy[0] -= 1

    def clean() -> None:
        try:
            while busy[0]:
                lt.open_table(path).maintenance.cleanup(older_than=NOW)
        except lt.NotFoundError:
            clean()  # the version that was just opened is gone already
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    threads.append(threading.Thread(target=clean))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    table = lt.open_table(path)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(-1, writers * rounds))
    assert table.count("n = 1") == writers * rounds
    assert table.maintenance.check(level="data").is_ok
    table.maintenance.cleanup(older_than=NOW)
    assert len(table.versions()) == 1


def test_a_commit_under_way_does_not_take_a_name_that_was_freed(tmp_path) -> None:
    """It has looked for newer versions; two come, and the first of them is cleaned away."""
    lt.create_table(tmp_path / "t", pa.table({"id": [0]}))
    cleaning = threading.Thread(
        target=lambda: lt.open_table(tmp_path / "t").maintenance.cleanup(older_than=NOW)
    )

    class _Late(WrappedStore):
        def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
            if verb == "put_if_absent" and path.startswith("_versions/") and not cleaning.ident:
                other = lt.open_table(tmp_path / "t")
                other.append(pa.table({"id": [1]}))
                other.append(pa.table({"id": [2]}))
                cleaning.start()
                time.sleep(0.3)
            return action()

    def wrap(store: Store) -> Store:
        return _Late(store)

    location = WrappedLocation(str(tmp_path / "t"), wrap=wrap)
    lt.Table(location, load(location)).append(pa.table({"id": [3]}))
    cleaning.join()
    table = lt.open_table(tmp_path / "t")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert table.version == 4


@pytest.mark.slow
def test_writers_beside_cleanups_lose_nothing(tmp_path) -> None:
    _rounds(tmp_path / "t", 2, 8)


@pytest.mark.soak
def test_writers_beside_cleanups_lose_nothing_at_length(tmp_path) -> None:
    _rounds(tmp_path / "t", 4, 100)
