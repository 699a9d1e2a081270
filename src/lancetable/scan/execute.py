"""Run a plan: read windows of rows, some of them ahead in threads, and yield them in order."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lancetable.errors import LimitError
from lancetable.fragment.readers import Readers
from lancetable.scan.plan import ScanPlan, Window, windows
from lancetable.scan.prefetch import Crew
from lancetable.scan.request import MiB, ScanOptions
from lancetable.scan.result import Piece, cut
from lancetable.scan.row_size import Pace, measured
from lancetable.scan.small_fragments import (
    SMALL_WINDOW_ROWS,
    count_together,
    read_together,
    small_groups,
)
from lancetable.scan.window import count_parts, read_parts, read_window

if TYPE_CHECKING:
    from lancetable.scan.named_rows import Named

R = TypeVar("R")

THREADS_FROM_BYTES = 8 * MiB
"""Starting threads costs more than they save below this."""

SMALL_JOB_BYTES = MiB
SMALL_JOB_WINDOWS = 64

FIRST_SEARCH_ROWS = 16 * 1024
"""Rows looked at first when a predicate is to find just a few."""

WHOLE_WINDOW_BYTES = 32 * MiB
"""What is decoded at a time when the whole result is kept anyway."""

WHOLE_COLUMN_BYTES = 128 * 1024
"""The same for each of many columns: to begin with less takes longer than to decode it."""

RELEASE_FROM_BYTES = 4 * MiB
"""Files above this are closed behind a stream, or their mapped bytes would add up."""


class Job(NamedTuple):
    """Windows that one thread reads in a row, and about how many bytes they decode to."""

    windows: list[Window]
    bytes_: int


class Done(NamedTuple):
    """What came of a window."""

    window: Window
    piece: Piece


def run(
    plan: ScanPlan,
    readers: Readers,
    options: ScanOptions,
    *,
    named: "Named | None" = None,
    is_stream: bool = False,
    on_long: Callable[[], None] | None = None,
) -> Iterator[Piece]:
    """Yield the rows of the result in order, none decoded long before it is asked for.

    ``named`` are the rows that indices name; the plan has no predicate when these are all.

    ``on_long`` is called first when files will be needed after the first rows were given out.
    """
    batch_bytes = options.batch_bytes
    if not is_stream:
        columns = len(plan.names)
        batch_bytes = max(batch_bytes, WHOLE_WINDOW_BYTES, columns * WHOLE_COLUMN_BYTES)
    pace = measured((plan.early, plan.late), readers.source)
    is_searched = plan.predicate is not None or named is not None
    ahead = _ahead(plan, readers, options, is_stream=is_stream, is_searched=is_searched)
    every = _windows(plan, readers, batch_bytes, pace, named)
    jobs = _jobs(every, pace, ahead.width)
    if on_long is not None:
        jobs = _announced(jobs, on_long)
    results = _in_order(partial(_read, plan, readers, pace), jobs, ahead)
    with closing(results):
        done = chain.from_iterable(results)
        pieces = _released(readers, done) if is_stream else (each.piece for each in done)
        yield from _limited(plan, pieces) if is_searched else pieces


def count(
    plan: ScanPlan, readers: Readers, options: ScanOptions, named: "Named | None" = None
) -> int:
    """Return the number of rows that pass the predicate, limit and offset left aside.

    ``named`` are the rows that indices name, without those that are counted already.
    """
    pace = measured((plan.early,), readers.source)
    batch_bytes = options.batch_bytes
    of_fragments = partial(_every_window, readers=readers, batch_bytes=batch_bytes, pace=pace)
    if named is None:
        every = of_fragments(range(len(readers)))
    else:
        every = named.windows(of_fragments, pace.rows(batch_bytes))
    work = partial(_count, plan, readers)
    width = readers.source.store.width
    ahead = _Ahead(_threads(readers, options), options.memory_bytes, width=width)
    return sum(_in_order(work, _jobs(every, pace, width), ahead))


def _read(plan: ScanPlan, readers: Readers, pace: Pace, job: Job) -> Iterable[Done]:
    try:
        return _read_at_once(plan, readers, pace, job)
    except LimitError:
        # Read when asked for, one part at a time: all parts together may not fit into memory.
        return (
            Done(*part)
            for window in job.windows
            for part in read_parts(window.plan or plan, readers, window, pace)
        )


def _read_at_once(plan: ScanPlan, readers: Readers, pace: Pace, job: Job) -> list[Done]:
    if len(job.windows) == 1 and job.windows[0].rows > SMALL_WINDOW_ROWS:
        (window,) = job.windows
        return [Done(window, read_window(window.plan or plan, readers, window, pace))]
    done: list[Done] = []
    for group in small_groups(job.windows):
        own = group[0].plan or plan
        together = read_together(own, readers, group)
        if together is not None:
            done.append(Done(group[-1], together))
        else:
            done += [Done(window, read_window(own, readers, window, pace)) for window in group]
    return done


def _count(plan: ScanPlan, readers: Readers, job: Job) -> int:
    found = 0
    for group in small_groups(job.windows):
        own = group[0].plan or plan
        try:
            together = count_together(own, readers, group)
        except LimitError:
            together = None
        if together is None:
            together = sum(count_parts(own, readers, window) for window in group)
        found += together
    return found


def _limited(plan: ScanPlan, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Leave out the first rows found, and stop after enough of them."""
    skip, left = plan.offset, plan.limit
    if left == 0:
        return
    for piece in pieces:
        shown = cut(piece, skip, piece.rows)
        skip = max(skip - piece.rows, 0)
        if left is not None:
            shown = cut(shown, 0, left)
            left -= shown.rows
        if shown.rows:
            yield shown
        if left == 0:
            return


def _released(readers: Readers, done: Iterable[Done]) -> Iterator[Piece]:
    """Close large files behind the stream."""
    current = -1
    for window, piece in done:
        if window.fragment != current and current >= 0:
            _release(readers, current)
        current = window.fragment
        yield piece
    if current >= 0:
        _release(readers, current)


def _release(readers: Readers, position: int) -> None:
    opened = readers[position].opened
    if any((file.size or RELEASE_FROM_BYTES) >= RELEASE_FROM_BYTES for file in opened.files):
        opened.release()


def _windows(
    plan: ScanPlan, readers: Readers, batch_bytes: int, pace: Pace, named: "Named | None"
) -> Iterator[Window]:
    every: Callable[[Iterable[int]], Iterator[Window]]
    every = partial(_every_window, readers=readers, batch_bytes=batch_bytes, pace=pace)
    if named is None and plan.predicate is None and (plan.limit is not None or plan.offset):
        return _limited_windows(plan, readers, batch_bytes, pace)
    if plan.predicate is not None and plan.limit is not None:
        every = _GrowingWindows(readers, batch_bytes, pace)
    if named is None:
        return every(range(len(readers)))
    return named.windows(every, pace.rows(batch_bytes))


def _every_window(
    positions: Iterable[int], readers: Readers, batch_bytes: int, pace: Pace
) -> Iterator[Window]:
    for position in positions:
        rows = readers[position].opened.rows
        step = pace.rows(batch_bytes)
        if 0 < rows <= step:
            yield Window(position, 0, rows)
        else:
            yield from windows(position, 0, rows, step)


class _GrowingWindows:
    """Windows that begin small, for when a few rows are wanted."""

    def __init__(self, readers: Readers, batch_bytes: int, pace: Pace) -> None:
        self._readers = readers
        self._batch_bytes = batch_bytes
        self._pace = pace
        self._step = FIRST_SEARCH_ROWS

    def __call__(self, positions: Iterable[int]) -> Iterator[Window]:
        for position in positions:
            start, rows = 0, self._readers[position].opened.rows
            while start < rows:
                step = min(self._step, self._pace.rows(self._batch_bytes))
                stop = min(start + step, rows)
                yield Window(position, start, stop)
                start, self._step = stop, self._step * 4


def _limited_windows(
    plan: ScanPlan, readers: Readers, batch_bytes: int, pace: Pace
) -> Iterator[Window]:
    """Without a predicate the counts tell which rows of which fragments are wanted."""
    left = plan.limit
    first = plan.offset
    for position in range(len(readers)):
        if left == 0:
            return
        live = readers.live_rows(position)
        if first >= live:
            first -= live
            continue
        wanted = live - first if left is None else min(live - first, left)
        start, stop = readers[position].physical_range(first, first + wanted)
        yield from windows(position, start, stop, pace.rows(batch_bytes))
        first = 0
        left = None if left is None else left - wanted


def _jobs(every: Iterable[Window], pace: Pace, width: int = 1) -> Iterator[Job]:
    """Join small windows, so that handing them to a thread is worth it.

    Windows that wait for a network are not joined: they are to wait at the same time.
    """
    group: list[Window] = []
    bytes_ = 0
    for window in every:
        group.append(window)
        bytes_ += int(window.rows * pace.row_bytes)
        if bytes_ >= SMALL_JOB_BYTES or len(group) == SMALL_JOB_WINDOWS or width > 1:
            yield Job(group, bytes_)
            group, bytes_ = [], 0
    if group:
        yield Job(group, bytes_)


def _announced(jobs: Iterator[Job], on_second: Callable[[], None]) -> Iterator[Job]:
    """Yield the jobs; before the first one say whether there is a second."""
    first = list(islice(jobs, 2))
    if len(first) == 2:
        on_second()
    return chain(first, jobs)


class _Ahead(NamedTuple):
    """How far to read ahead: in how many threads, and how many bytes at most."""

    threads: int
    bytes_: int
    jobs: int | None = None
    width: int = 1


def _ahead(
    plan: ScanPlan, readers: Readers, options: ScanOptions, *, is_stream: bool, is_searched: bool
) -> _Ahead:
    threads = _threads(readers, options)
    width = readers.source.store.width
    jobs = None
    if is_searched and plan.limit is not None:
        jobs = threads
    elif is_stream and width == 1:
        # Mapped bytes are there at once: more results in store would only take memory.
        jobs = threads + 1
    return _Ahead(threads, options.memory_bytes, jobs, width)


def _threads(readers: Readers, options: ScanOptions) -> int:
    """Return how many threads read: more than there are processors when they wait for a network."""
    return max(options.threads, readers.source.store.width // 2)


def _in_order(
    work: Callable[[Job], R], jobs: Iterator[Job], ahead: _Ahead
) -> Generator[R, None, None]:
    """Do the jobs, in threads when there is enough to do, and yield what they give in order."""
    if ahead.width > 1:
        yield from _threaded(work, jobs, ahead)
        return
    if ahead.threads == 1:
        yield from map(work, jobs)
        return
    first: list[Job] = []
    bytes_ = 0
    while bytes_ < THREADS_FROM_BYTES:
        job = next(jobs, None)
        if job is None:
            yield from map(work, first)
            return
        first.append(job)
        bytes_ += job.bytes_
    if len(first) == 1:
        second = next(jobs, None)
        if second is None:
            yield work(first[0])
            return
        first.append(second)
    crew = Crew(
        work,
        attrgetter("bytes_"),
        helpers=ahead.threads - 1,
        most=ahead.bytes_,
        most_jobs=ahead.jobs,
    )
    yield from crew.map(chain(first, jobs))


def _threaded(work: Callable[[Job], R], jobs: Iterator[Job], ahead: _Ahead) -> Iterator[R]:
    """Do jobs that wait for a network, all in threads: the caller does none itself."""
    pool = ThreadPoolExecutor(ahead.threads, thread_name_prefix="lancetable-scan")
    waiting: deque[tuple[Future[R], int]] = deque()
    pending = 0
    try:
        for job in jobs:
            while waiting and (pending + job.bytes_ > ahead.bytes_ or len(waiting) == ahead.jobs):
                future, bytes_ = waiting.popleft()
                yield future.result()
                pending -= bytes_
            waiting.append((pool.submit(work, job), job.bytes_))
            pending += job.bytes_
        while waiting:
            yield waiting.popleft()[0].result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
