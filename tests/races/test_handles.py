"""One handle in several threads, after a fork, and on the other side of a pickle."""

import multiprocessing
import os
import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from tests.races.worker import PATIENT, rows


def test_threads_share_one_handle(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", rows(["shared"], 0))
    errors: list[BaseException] = []

    def write(owner: int) -> None:
        try:
            for number in range(8):
                table.append(rows([f"{owner}-{number}"], owner), commit=PATIENT)
                table.update({"count": "count + 1"}, "key = 'shared'", commit=PATIENT)
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        try:
            for _ in range(20):
                found = table.scan().to_arrow()
                assert len(set(found["key"].to_pylist())) == found.num_rows
                assert table.count("key = 'shared'") == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(owner,)) for owner in range(1, 5)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = {
        row["key"]: row["count"] for row in lt.open_table(table.uri).scan().to_arrow().to_pylist()
    }
    assert len(found) == 1 + 4 * 8
    assert found["shared"] == 4 * 8


def test_threads_with_handles_of_their_own(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lt.create_table(uri, rows(["shared"], 0))
    errors: list[BaseException] = []

    def write(owner: int) -> None:
        try:
            mine = lt.open_table(uri)
            for number in range(6):
                mine.append(rows([f"{owner}-{number}"], owner), commit=PATIENT)
                assert mine.delete(f"key = '{owner}-{number}'", commit=PATIENT).rows == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(owner,)) for owner in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert lt.open_table(uri).scan(["key"]).to_arrow()["key"].to_pylist() == ["shared"]
    assert lt.open_table(uri).version == 1 + 4 * 6 * 2


def test_a_pickled_handle_is_at_the_same_version_and_writes(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", rows(["a"], 0))
    old = pickle.loads(pickle.dumps(table))
    table.append(rows(["b"], 0))
    assert old.version == 1
    assert old.count() == 1
    copy = pickle.loads(pickle.dumps(table))
    assert copy.version == table.version == 2
    copy.append(rows(["c"], 0))
    old.append(rows(["d"], 0))
    assert old.scan(["key"]).to_arrow()["key"].to_pylist() == ["a", "b", "c", "d"]
    assert table.refresh().count() == 4


def _append(table: lt.Table, owner: int) -> None:
    table.append(rows([f"{owner}"], owner), commit=PATIENT)


@pytest.mark.slow
def test_a_handle_goes_to_another_process(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", rows(["a"], 0))
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_append, args=(table, 7))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert table.version == 1
    assert table.refresh().scan(["key"]).to_arrow()["key"].to_pylist() == ["a", "7"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
# The reference implementation, loaded by other tests of the process, warns of every fork.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_handle_works_after_a_fork(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", rows([str(number) for number in range(1000)], 0))
    assert table.scan().to_arrow().num_rows == 1000
    table.update({"count": "1"}, "key = '5'")
    # Threads of Arrow do not survive a fork, so the child uses only what needs none of them.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            pa.set_cpu_count(1)
            table.append(rows(["child"], 1), commit=PATIENT)
            status = 0 if table.count() == 1001 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    table.append(rows(["parent"], 2), commit=PATIENT)
    assert table.count() == 1002
