"""Runners for the steps of an operation: here, on threads, or provided by the caller.

A step is a module-level function of one frozen task, so that it can be sent elsewhere. Results
come back in the order of the tasks; the first error ends the run.

A change that decodes rows and encodes them again reads ahead: both take about as long, so a helper
thread reads the next rows meanwhile.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

from lancetable.format.manifest import Fragment
from lancetable.scan.prefetch import Crew

Task = TypeVar("Task")
Result = TypeVar("Result")

MOSTLY_WAITING = 3
"""How many times as long as it works a step takes when threads are worth it."""


class Runner(Protocol):
    """Runs one step for each of many tasks."""

    def map(self, step: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of each task, in the order of the tasks."""
        ...


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process; ``workers`` of ``None`` means one for each processor."""

    workers: int | None = None

    def map(self, step: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield results in order; no more than twice the workers' number of tasks is taken ahead.

        After an error no further task starts, and those under way are waited for.
        """
        workers = self.workers or os.cpu_count() or 1
        waiting = iter(tasks)
        first = list(islice(waiting, 2))
        if workers == 1 or len(first) < 2:
            yield from map(step, first)
            yield from map(step, waiting)
            return
        # The pool lives only as long as the run, so that a fork never copies its threads.
        with ThreadPoolExecutor(workers, "lancetable") as pool:
            running: deque[Future[Result]] = deque(pool.submit(step, task) for task in first)
            try:
                while running:
                    for task in islice(waiting, 2 * workers - len(running)):
                        running.append(pool.submit(step, task))
                    yield running.popleft().result()
            finally:
                for future in running:
                    future.cancel()


@dataclass(frozen=True, slots=True)
class ThreadsForWaiting:
    """Threads for steps that are found to wait; others are done one after the other.

    For steps of Python code alone: on several threads they only wait for each other. That changes
    when a disk or a server keeps them waiting.
    """

    threads: Threads

    def map(self, step: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield results in order; from the first step on that mostly waited they are spread."""
        waiting = iter(tasks)
        for task in waiting:
            began, worked = time.perf_counter(), time.thread_time()
            result = step(task)
            taken, worked = time.perf_counter() - began, time.thread_time() - worked
            yield result
            if taken > MOSTLY_WAITING * worked:
                break
        yield from self.threads.map(step, waiting)


THREADS = Threads()


Job = TypeVar("Job")
Rows = TypeVar("Rows")

AHEAD = 2
"""So many pieces of rows are read or being read, beside the one that is written."""
FEW_ROWS = 4096
"""To read many fragments of fewer rows is work for Python, which threads cannot share."""


def read_ahead(
    read: Callable[[Job], Rows], jobs: Iterable[Job], fragments: Sequence[Fragment]
) -> Iterator[Rows]:
    """Yield what is read of some fragments for each job, in order, ahead of who takes it."""
    rows = sum(one.physical_rows for one in fragments)
    can_share = (os.cpu_count() or 1) > 1 and rows >= FEW_ROWS * len(fragments)
    if not can_share:
        return map(read, jobs)
    return Crew(read, lambda _: 0, helpers=1, most=0, most_jobs=AHEAD).map(iter(jobs))
