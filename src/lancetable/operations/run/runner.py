"""Runners for the steps of an operation: here, on threads, or provided by the caller.

A step is a module-level function of one frozen task, so that it can be sent elsewhere. Results
come back in the order of the tasks; the first error ends the run. With ``run_steps`` a step that
fails returns its error like a result: no further task is begun, those under way are waited for, and
what all of them wrote is undone before the error is raised.

A change that decodes rows and encodes them again reads ahead: both take about as long, so a helper
thread reads the next rows meanwhile.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from lancetable.commit.leases import extend_lease
from lancetable.commit.publish import discard
from lancetable.errors import UnknownOutcomeError
from lancetable.format.manifest import Fragment
from lancetable.scan.prefetch import Crew
from lancetable.store import Store

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


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


@dataclass(frozen=True, slots=True)
class _Guarded(Generic[Task, Result]):
    """A step that returns its error."""

    step: Callable[[Task], Result]

    def __call__(self, task: Task) -> Result | _Failed:
        try:
            return self.step(task)
        except Exception as error:
            return _Failed(error)


def run_steps(
    runner: Runner,
    step: Callable[[Task], Result],
    tasks: Iterable[Task],
    undo: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Return the results of all tasks, in order; after an error those that came are undone."""
    done: list[Result] = []
    failed: list[Exception] = []

    def until_failure() -> Iterator[Task]:
        for task in tasks:
            if failed:
                return
            yield task

    try:
        for result in runner.map(_Guarded(step), until_failure()):
            extend_lease()
            if isinstance(result, _Failed):
                failed.append(result.error)
            else:
                done.append(result)
    except BaseException:
        _undo(undo, done)
        raise
    if failed:
        _undo(undo, done)
        raise failed[0]
    return done


def _undo(undo: Callable[[Result], None] | None, done: Iterable[Result]) -> None:
    if undo is not None:
        for result in done:
            undo(result)


@contextmanager
def own_files(store: Store) -> Iterator[list[str]]:
    """Give a list for the paths of new files; they are removed unless the change may have landed.

    A failure counts as proven unless the commit reports an unknown outcome. An
    interrupt proves nothing: it may come when the version is there already.
    """
    paths: list[str] = []
    try:
        yield paths
    except UnknownOutcomeError:
        raise
    except Exception:
        discard(store, paths)
        raise
