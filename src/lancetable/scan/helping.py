"""How do a caller and a few helpers share jobs, so that results come in order?

A scan is often over in a few milliseconds, and starting a thread in the usual way waits until the
system has let it run, which takes longer than that on a busy machine. So nobody waits for helpers:
the caller does jobs itself whenever the next result is not there yet, and helpers take what they
get to. They end with the run, so that a fork never copies them.
"""

import _thread
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")


class _Task(Generic[R]):
    """One job: done by whoever takes it, waited for by the caller."""

    __slots__ = ("_error", "_found", "_work", "ended", "size")

    def __init__(self, work: Callable[[], R], size: int) -> None:
        self._work = work
        self.size = size
        self._found: list[R] = []
        self._error: BaseException | None = None
        self.ended = _thread.allocate_lock()
        self.ended.acquire()

    def do(self) -> None:
        try:
            self._found.append(self._work())
        # The caller raises it where it takes the result.
        except BaseException as error:
            self._error = error
        self.ended.release()

    def result(self) -> R:
        if self._error is not None:
            raise self._error
        return self._found.pop()


class Crew(Generic[J, R]):
    """The caller and its helpers.

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

    def map(self, jobs: Iterator[J]) -> Iterator[R]:
        """Yield the result of each job in order; those behind it are begun ahead."""
        waiting: deque[_Task[R]] = deque()
        pending = started = 0
        try:
            for job in jobs:
                task = self._task(job)
                while waiting and (
                    pending + task.size > self._most or len(waiting) == self._most_jobs
                ):
                    pending -= waiting[0].size
                    yield self._next(waiting)
                waiting.append(task)
                pending += task.size
                self._open.put(task)
                # The first job is for the caller, so every further one may need a helper.
                if 0 < started < self._helpers + 1:
                    _thread.start_new_thread(_help, (self._open,))
                started += 1
            while waiting:
                yield self._next(waiting)
        finally:
            self._end(waiting, min(max(started - 1, 0), self._helpers))

    def _task(self, job: J) -> _Task[R]:
        return _Task(lambda: self._work(job), self._size(job))

    def _next(self, waiting: deque[_Task[R]]) -> R:
        """Return the first result; until it is there, do what nobody has begun."""
        first = waiting.popleft()
        while not first.ended.acquire(blocking=False):
            task = self._take()
            if task is None:
                first.ended.acquire()
                break
            task.do()
        return first.result()

    def _take(self) -> _Task[R] | None:
        try:
            return self._open.get_nowait()
        except Empty:
            return None

    def _end(self, waiting: deque[_Task[R]], helpers: int) -> None:
        """Drop what nobody has begun, wait for what somebody has, and let the helpers go."""
        dropped = set()
        while (task := self._take()) is not None:
            dropped.add(id(task))
        for _ in range(helpers):
            self._open.put(None)
        for task in waiting:
            if id(task) not in dropped:
                task.ended.acquire()


def _help(tasks: "SimpleQueue[_Task[R] | None]") -> None:
    while (task := tasks.get()) is not None:
        task.do()
