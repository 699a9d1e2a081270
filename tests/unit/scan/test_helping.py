"""A caller and its helpers do the jobs of a scan: in order, within bounds, none left running."""

import subprocess
import sys
import threading
import time

import pytest

from lancetable.scan.prefetch import Crew


def crew(work, helpers=2, most=1000, most_jobs=None):
    return Crew(work, lambda _: 1, helpers=helpers, most=most, most_jobs=most_jobs)


def test_caller_and_helpers_work_at_the_same_time():
    together = threading.Barrier(3, timeout=10)

    def work(job):
        together.wait()
        return job, threading.get_ident()

    found = list(crew(work).map(iter(range(3))))

    assert [job for job, _ in found] == [0, 1, 2]
    assert len({thread for _, thread in found}) == 3
    assert threading.get_ident() in {thread for _, thread in found}


def test_no_more_threads_help_than_were_asked_for():
    seen = set()

    def work(job):
        seen.add(threading.get_ident())
        time.sleep(0.001)
        return job

    assert list(crew(work, helpers=1).map(iter(range(30)))) == list(range(30))
    assert len(seen) <= 2


def test_no_more_jobs_are_begun_ahead_than_were_asked_for():
    begun: list[int] = []
    results = crew(begun.append, most_jobs=2).map(iter(range(20)))

    next(results)
    time.sleep(0.02)

    assert set(begun) <= {0, 1, 2}
    results.close()


def test_an_ended_run_drops_what_nobody_began_and_waits_for_the_rest():
    begun, ended = [], []
    hold = threading.Event()

    def work(job):
        begun.append(job)
        if job:
            hold.wait(10)
        ended.append(job)

    # One helper: it is in job 1 when the caller has the first result.
    results = crew(work, helpers=1, most=8).map(iter(range(100)))
    next(results)
    threading.Timer(0.05, hold.set).start()
    results.close()

    assert sorted(begun) == sorted(ended)
    assert len(begun) < 5


def test_an_error_of_a_helper_is_raised_in_the_place_of_its_result():
    def work(job):
        if job == 5:
            raise ValueError("five")
        return job

    results = crew(work).map(iter(range(10)))

    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(ValueError, match="five"):
        next(results)


def test_without_jobs_there_is_nothing():
    assert list(crew(lambda job: job).map(iter(()))) == []


ABANDONED = """
import os, sys, time
from lancetable.scan.prefetch import Crew

def work(job):
    time.sleep(0.05)
    return job

results = Crew(work, lambda _: 1, helpers=2, most=1000, most_jobs=None).map(iter(range(40)))
assert next(results) == 0
if sys.argv[1] == "fork" and not os.fork():
    sys.exit()
if sys.argv[1] == "fork":
    assert os.wait()[1] == 0
"""


@pytest.mark.parametrize("way", ["exit", "fork"])
def test_a_run_that_was_left_does_not_keep_a_process_from_ending(way):
    done = subprocess.run([sys.executable, "-c", ABANDONED, way], timeout=30, check=False)
    assert done.returncode == 0
