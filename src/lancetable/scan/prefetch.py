"""Share jobs between a caller and a few helper threads; results come in order.

A scan is often over in a few milliseconds, and starting a thread in the usual way waits until the
system has let it run, which takes longer than that on a busy machine. So nobody waits for helpers:
the caller does jobs itself whenever the next result is not there yet, and helpers take what they
get to. They end with the run, so that a fork never copies them.
"""

import _thread
import atexit
import os
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar
from weakref import WeakSet

J = TypeVar("J")
R = TypeVar("R")


class _Task(Generic[R]):
    """One job: done by whoever takes it, waited for by the caller."""

    __slots__ = ("_error", "_found", "_under_way", "_work", "size")

    def __init__(self, work: Callable[[], R], size: int) -> None:
        self._work = work
        self.size = size
        self._found: list[R] = []
        self._error: BaseException | None = None
        self._under_way = _thread.allocate_lock()
        self._under_way.acquire()

    def do(self) -> None:
        """Do the job; what goes wrong is raised where its result is taken."""
        try:
            self._found.append(self._work())
        except BaseException as error:
            self._error = error
        self._under_way.release()

    def drop(self) -> None:
        """Never do it."""
        self._under_way.release()

    @property
    def is_over(self) -> bool:
        return not self._under_way.locked()

    def wait(self) -> None:
        with self._under_way:
            pass

    def result(self) -> R:
        if self._error is not None:
            raise self._error
        return self._found.pop()


class Crew(Generic[J, R]):
    """The caller and its helpers, for one run.

    Args:
        work: what is done with a job.
        size: how many bytes the result of a job takes, about.
        helpers: how many threads help the caller.
        most: how many bytes of results may wait.
        most_jobs: how many jobs may be begun ahead; None for any number.
    """

    def __init__(
        self,
        work: Callable[[J], R],
        size: Callable[[J], int],
        *,
        helpers: int,
        most: int,
        most_jobs: int | None,
    ) -> None:
        self._work = work
        self._size = size
        self._helpers = helpers
        self._most = most
        self._most_jobs = most_jobs
        self._open: SimpleQueue[_Task[R] | None] = SimpleQueue()
        self._waiting: deque[_Task[R]] = deque()
        self._helping = 0
        self._process = os.getpid()
        _AT_WORK.add(self)

    def map(self, jobs: Iterator[J]) -> Iterator[R]:
        """Yield the result of each job in order; those behind it are begun ahead."""
        waiting = self._waiting
        pending = 0
        try:
            for job in jobs:
                size = self._size(job)
                while waiting and (pending + size > self._most or len(waiting) == self._most_jobs):
                    pending -= waiting[0].size
                    yield self._next()
                pending += size
                self._begin(job, size)
            while waiting:
                yield self._next()
        finally:
            self.end()

    def _begin(self, job: J, size: int) -> None:
        task = _Task(lambda: self._work(job), size)
        # The caller takes one job at a time, so every further one may need a helper.
        if self._waiting and self._helping < self._helpers:
            self._helping += 1
            _thread.start_new_thread(_help, (self._open,))
        self._waiting.append(task)
        self._open.put(task)

    def _next(self) -> R:
        """Return the first result; until it is there, do what nobody has begun."""
        first = self._waiting[0]
        while not first.is_over:
            task = self._take()
            if task is None:
                first.wait()
            else:
                task.do()
        self._waiting.popleft()
        return first.result()

    def _take(self) -> _Task[R] | None:
        try:
            return self._open.get_nowait()
        except Empty:
            return None

    def end(self) -> None:
        """Drop what nobody has begun, wait for what somebody has, and let the helpers go."""
        if os.getpid() != self._process:
            # A fork has no threads that it could wait for.
            return
        while (task := self._take()) is not None:
            task.drop()
        for _ in range(self._helping):
            self._open.put(None)
        self._helping = 0
        for task in self._waiting:
            task.wait()
        self._waiting.clear()


def _help(tasks: "SimpleQueue[_Task[Any] | None]") -> None:
    while (task := tasks.get()) is not None:
        task.do()


_AT_WORK: "WeakSet[Crew[Any, Any]]" = WeakSet()
"""Runs that may not have come to their end: whoever asked for them may have lost interest."""


@atexit.register
def _end_all() -> None:
    """Wait for helpers before the interpreter goes, as it takes what they work on with it."""
    for crew in list(_AT_WORK):
        crew.end()
