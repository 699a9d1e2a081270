"""Callbacks that are told how far a write is."""

import pickle
import threading
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt

ROWS = pa.table({"id": pa.array(range(100)), "s": [f"row {n}" for n in range(100)]})


class Told(list[lt.Progress]):
    """Keeps every report; a list that cannot be hashed is a callback like any other."""

    __hash__ = None

    def __call__(self, progress):
        self.append(progress)


def small(progress):
    return {"max_rows_per_file": 30, "progress": progress}


def files(root):
    return {str(path) for path in Path(root).rglob("*") if path.is_file()}


def data_bytes(table, before=frozenset()):
    paths = (Path(table.uri) / "data").glob("*.lance")
    return sum(path.stat().st_size for path in paths if str(path) not in before)


def check(told, table, rows, new_files, before=frozenset()):
    """Check that reports grow and that the last one tells all."""
    counts = [(one.done, one.bytes, one.files) for one in told]
    for before_it, after in pairwise(counts):
        assert all(a <= b for a, b in zip(before_it, after, strict=True))
    assert told[-1] == lt.Progress(rows, bytes=data_bytes(table, before), files=new_files)


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_new_rows(tmp_path, kind):
    def data():
        return ROWS if kind == "table" else iter(ROWS.to_batches(max_chunksize=7))

    told = Told()
    options = small(told)
    table = lt.create_table(tmp_path / "t", data(), **options)
    check(told, table, 100, 4)
    assert len(told) >= 8

    for write in (table.append, table.overwrite):
        told.clear()
        before = files(tmp_path)
        write(data(), **options)
        check(told, table, 100, 4, before)

    told.clear()
    before = files(tmp_path)
    table.commit_fragments([table.write_fragments(data(), **options)])
    check(told, table, 100, 4, before)

    told.clear()
    before = files(tmp_path)
    table.overwrite(data(), where="id < 100", **options)
    check(told, table, 100, 4, before)


def test_changed_rows(tmp_path):
    table = lt.create_table(tmp_path / "t", ROWS, max_rows_per_file=50)
    told = Told()

    before = files(tmp_path)
    table.update({"s": "'x'"}, "id < 40", **small(told))
    check(told, table, 40, 2, before)

    told.clear()
    before = files(tmp_path)
    merge = table.merge({"id": list(range(90, 130)), "s": ["y"] * 40}, "id", **small(told))
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    made = len(files(tmp_path / "t/data") - before)
    check(told, table, 40, made, before)

    told.clear()
    before = files(tmp_path)
    table.update({"s": "'z'"}, "id = 60", mode="columns", **small(told))
    check(told, table, 50, 1, before)


def failing(error, calls=3):
    told = Told()

    def progress(so_far):
        told.append(so_far)
        if len(told) >= calls:
            raise error

    return progress


ERRORS = [ValueError("enough"), TypeError("enough"), StopIteration("enough"), OSError("enough")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_ends_the_write_and_reaches_the_caller(tmp_path, error):
    table = lt.create_table(tmp_path / "t", ROWS, max_rows_per_file=50)
    before = files(tmp_path / "t")
    stream = iter(ROWS.to_batches(max_chunksize=7))
    merge = table.merge(ROWS, "id", **small(failing(error))).when_matched_update_all()
    calls = [
        lambda: table.append(ROWS, **small(failing(error))),
        lambda: table.append(stream, **small(failing(error))),
        lambda: table.overwrite(ROWS, **small(failing(error))),
        lambda: table.overwrite(ROWS, where="true", **small(failing(error))),
        lambda: table.write_fragments(ROWS, **small(failing(error))),
        lambda: table.update({"s": "'x'"}, **small(failing(error))),
        lambda: table.update({"s": "'x'"}, mode="columns", **small(failing(error))),
        merge.execute,
        merge.execute_uncommitted,
    ]
    for call in calls:
        with pytest.raises(type(error)) as caught:
            call()
        assert caught.value is error
        assert files(tmp_path / "t") == before
    assert lt.open_table(table.uri).count() == 100
    with pytest.raises(type(error)):
        lt.create_table(tmp_path / "u", ROWS, **small(failing(error)))
    assert files(tmp_path / "u") == set()


def test_an_exception_is_not_blamed_on_another_argument(tmp_path):
    table = lt.create_table(tmp_path / "t", ROWS)
    error = ValueError("enough")
    with pytest.raises(ValueError, match="enough") as caught:
        table.append(ROWS, merge_schema="", **small(failing(error)))  # type: ignore[arg-type]
    assert caught.value is error


def test_an_interrupt_ends_the_write(tmp_path):
    table = lt.create_table(tmp_path / "t", ROWS)
    before = files(tmp_path / "t")
    with pytest.raises(KeyboardInterrupt):
        table.append(iter(ROWS.to_batches(max_chunksize=7)), **small(failing(KeyboardInterrupt())))
    assert files(tmp_path / "t") == before


def test_one_thread_at_a_time_calls_and_none_after_an_error(tmp_path):
    busy = threading.Lock()
    calls = []

    def progress(so_far):
        assert busy.acquire(blocking=False)
        calls.append(so_far)
        busy.release()
        if so_far.files == 5:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        lt.create_table(tmp_path / "t", ROWS, max_rows_per_file=2, progress=progress)
    assert [one.files for one in calls].count(5) == 1
    assert calls[-1].files == 5


def test_pickled_options_have_no_callback():
    options = lt.WriteOptions(max_rows_per_file=7, target_bases=("b",), progress=lambda _: None)
    sent = pickle.loads(pickle.dumps(options))
    assert sent == lt.WriteOptions(max_rows_per_file=7, target_bases=("b",))


def test_what_is_no_function_is_refused():
    with pytest.raises(lt.InputError, match="progress is 5; give a function"):
        lt.WriteOptions(progress=5)  # type: ignore[arg-type]
