"""Work in threads comes out in order, and not too much of it is done ahead."""

import threading

import pytest

from lancetable.scan.execute import Job, _Ahead, _in_order, _jobs
from lancetable.scan.plan import Window
from lancetable.scan.request import MiB
from lancetable.scan.row_size import Pace


def jobs(count, bytes_=10 * MiB):
    return iter([Job([Window(number, 0, 1)], bytes_) for number in range(count)])


def number_of(job):
    return job.windows[0].fragment


def test_results_keep_their_order():
    held = threading.Event()

    def work(job):
        if number_of(job) == 0:
            held.wait(5)
        else:
            held.set()
        return number_of(job)

    assert list(_in_order(work, jobs(20), _Ahead(4, 1000 * MiB))) == list(range(20))


def test_no_more_is_read_ahead_than_fits_the_memory():
    started = []
    lock = threading.Lock()

    def work(job):
        with lock:
            started.append(number_of(job))
        return number_of(job)

    results = _in_order(work, jobs(50), _Ahead(4, 30 * MiB))
    taken = [next(results) for _ in range(5)]

    assert taken == list(range(5))
    with lock:
        assert max(started) <= 5 + 3
    results.close()


def test_an_error_reaches_the_caller():
    def work(job):
        if number_of(job) == 3:
            raise ValueError("three")
        return number_of(job)

    with pytest.raises(ValueError, match="three"):
        list(_in_order(work, jobs(10), _Ahead(2, 100 * MiB)))


def test_little_work_is_done_by_the_caller():
    here = threading.get_ident()

    def work(_):
        return threading.get_ident()

    assert set(_in_order(work, jobs(3, bytes_=1000), _Ahead(4, MiB))) == {here}
    assert set(_in_order(work, jobs(1), _Ahead(4, MiB))) == {here}


def test_small_windows_are_joined():
    pace = Pace(8.0)
    made = list(_jobs([Window(number, 0, 10) for number in range(200)], pace))

    assert [len(job.windows) for job in made] == [64, 64, 64, 8]


def test_pace_learns_wide_rows_at_once_and_narrow_ones_slowly():
    pace = Pace(10.0)
    pace.learn(2000, 2000 * 1000)
    assert pace.row_bytes == 1000

    pace.learn(2000, 0)
    assert pace.row_bytes == 500
    assert pace.rows(5000) == 10
    assert pace.rows(1) == 1
