"""Steps run in order, a few ahead; an error ends the run."""

import pickle
import threading
import time
from typing import Any

import pytest

from lancetable.operations.runner import Threads


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
