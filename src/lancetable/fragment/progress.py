"""Progress of a write, reported to a callback.

All tasks of one write share a running total. The callback is called by one thread at a time. When
it raises, every task of the write ends with that exception, and the files are removed as after any
other failure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class WriteProgress:
    """The progress of a write so far."""

    rows: int = 0
    bytes: int = 0
    """Bytes of data files; rows that wait for their page are not counted yet."""
    files: int = 0
    """Data files that are finished."""


ProgressCallback: TypeAlias = Callable[[WriteProgress], None]


class RunningTotal:
    """The total of all tasks of a write, and the callback that is told."""

    __slots__ = ("_callback", "_error", "_lock", "_so_far")

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback
        self._lock = Lock()
        self._so_far = WriteProgress()
        self._error: BaseException | None = None

    def __call__(self, progress: WriteProgress) -> None:
        """Add what one task wrote since its last call, and report the total.

        Raises:
            BaseException: what the callback raised, now or before.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            total = self._so_far
            self._so_far = WriteProgress(
                total.rows + progress.rows,
                total.bytes + progress.bytes,
                total.files + progress.files,
            )
            try:
                self._callback(self._so_far)
            except BaseException as error:
                self._error = error
                raise


def is_raised_by_callback(error: BaseException) -> bool:
    """Return whether an exception came out of the callback of a write."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code is not RunningTotal.__call__.__code__:
        step = step.tb_next
    return step is not None
