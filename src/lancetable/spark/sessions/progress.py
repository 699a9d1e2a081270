"""Show the progress of Spark while a block of code runs: the tasks of its running stages.

A thread polls a classic session; a session over Connect reports its progress by itself.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lancetable.spark.kinds import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE = 0.2


class Observer(Protocol):
    """Takes the number of finished tasks and that of all known ones."""

    def __call__(self, done: int, total: int) -> None:
        """Take note."""
        ...


@contextmanager
def show_progress(
    spark: "SparkSession", label: str, console: Console | None = None
) -> Iterator[None]:
    """Show a bar with the tasks that Spark runs in a block of code, on terminals only."""
    screen = console or Console(file=sys.stderr)
    if not screen.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=screen, transient=True) as bars:
        bar = bars.add_task(label, total=None)

        def note(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        with observed(spark, note):
            yield


@contextmanager
def observed(spark: "SparkSession", observer: Observer) -> Iterator[None]:
    """Tell an observer how far Spark is with the stages that run in a block of code."""
    if is_connect(spark):
        handler = _handler(observer)
        spark.registerProgressHandler(handler)
        try:
            yield
        finally:
            spark.removeProgressHandler(handler)
        return
    over = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    thread = threading.Thread(target=_poll, args=(tracker, observer, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _handler(observer: Observer) -> Any:  # noqa: ANN401 - what Spark calls
    def handle(stages: Any, inflight_tasks: int, operation_id: object, done: bool) -> None:  # noqa: ANN401, FBT001
        del inflight_tasks, operation_id, done
        known = list(stages or ())
        if known:
            finished = sum(one.num_completed_tasks for one in known)
            observer(finished, sum(one.num_tasks for one in known))

    return handle


def _poll(tracker: Any, observer: Observer, over: threading.Event) -> None:  # noqa: ANN401
    while not over.wait(_PAUSE):
        infos = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
        known = [one for one in infos if one is not None]
        if known:
            finished = sum(one.numCompletedTasks for one in known)
            observer(finished, sum(one.numTasks for one in known))
