"""Steps run in order, a few ahead; an error ends the run."""

import pickle
import threading
import time
from typing import Any

import pytest

from lancetable.operations.run.runner import Threads, ThreadsForWaiting


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(workers):
    def step(number):
        time.sleep(0.002 * (number % 3))
        return number * number

    assert list(Threads(workers).map(step, range(20))) == [n * n for n in range(20)]


def test_no_task_is_no_work():
    assert list(Threads(3).map(str, [])) == []


def test_tasks_are_taken_only_a_little_ahead():
    taken = []

    def tasks():
        for number in range(100):
            taken.append(number)
            yield number

    results: Any = Threads(2).map(abs, tasks())
    assert next(results) == 0
    assert len(taken) <= 6
    results.close()
    assert len(taken) <= 6


def test_after_an_error_no_further_task_starts():
    started = []
    before = threading.active_count()

    def step(number):
        started.append(number)
        if number == 2:
            raise ValueError("two")
        time.sleep(0.01)
        return number

    with pytest.raises(ValueError, match="two"):
        list(Threads(2).map(step, range(50)))
    assert len(started) < 12
    assert threading.active_count() <= before


def test_a_runner_can_be_sent():
    assert pickle.loads(pickle.dumps(Threads(3))) == Threads(3)


def test_steps_that_only_work_stay_on_one_thread():
    def step(number):
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass
        return number, threading.get_ident()

    # Others may keep the processor busy, so that a step seems to wait: some run suffices.
    for _ in range(20):
        results = list(ThreadsForWaiting(Threads(3)).map(step, range(5)))
        assert [number for number, _ in results] == list(range(5))
        if {ident for _, ident in results} == {threading.get_ident()}:
            return
    pytest.fail("steps that never wait were spread each time")


def test_steps_that_wait_are_spread():
    def step(number):
        time.sleep(0.02)
        return number, threading.get_ident()

    results = list(ThreadsForWaiting(Threads(3)).map(step, range(9)))
    assert [number for number, _ in results] == list(range(9))
    assert results[0][1] == threading.get_ident()
    assert len({ident for _, ident in results[1:]}) > 1
    assert threading.get_ident() not in {ident for _, ident in results[1:]}


def test_an_error_ends_steps_on_one_thread_too():
    started = []

    def step(number):
        started.append(number)
        raise ValueError("one")

    with pytest.raises(ValueError, match="one"):
        list(ThreadsForWaiting(Threads(2)).map(step, range(9)))
    assert started == [0]
