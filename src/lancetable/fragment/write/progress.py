"""Progress of an operation, reported to a callback.

All tasks of one write share a running total. The callback is called by one thread at a time. When
it raises, every task of the write ends with that exception, and the files are removed as after any
other failure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an operation is."""

    done: int = 0
    """How many units are done: rows that are written or rewritten, files, versions."""
    total: int | None = None
    """How many there are; None when that is not known."""
    unit: str = "rows"
    bytes: int = 0
    """Bytes of data files written; rows that wait for their page are not counted yet."""
    files: int = 0
    """Data files that are finished."""


ProgressCallback: TypeAlias = Callable[[Progress], None]


class RunningTotal:
    """What all tasks of an operation did together, and the callback it is reported to."""

    __slots__ = ("_callback", "_error", "_lock", "_so_far")

    def __init__(self, callback: ProgressCallback, total: int | None = None) -> None:
        self._callback = callback
        self._lock = Lock()
        self._so_far = Progress(total=total)
        self._error: BaseException | None = None

    def __call__(self, progress: Progress) -> None:
        """Add what one task wrote since its last call, and report the total.

        Raises:
            BaseException: what the callback raised, now or before.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            total = self._so_far
            self._so_far = Progress(
                done=total.done + progress.done,
                total=total.total,
                bytes=total.bytes + progress.bytes,
                files=total.files + progress.files,
            )
            try:
                self._callback(self._so_far)
            except BaseException as error:
                self._error = error
                raise
