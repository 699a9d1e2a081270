"""Run the steps of a change, and undo what they wrote when one of them fails.

A step that fails hands its error back like a result. Then no further task is begun, those under
way are waited for, and what all of them wrote is undone before the error is raised.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from lancetable.commit.leases import extend_lease
from lancetable.commit.publish import discard
from lancetable.errors import UnknownOutcomeError
from lancetable.operations.run.runner import Runner
from lancetable.store import Store

Task = TypeVar("Task")
Result = TypeVar("Result")


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
