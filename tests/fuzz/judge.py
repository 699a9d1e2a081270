"""What may come out of damaged bytes: whole rows or one of few errors, soon, in little memory."""

import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pyarrow as pa

from lancetable.errors import CorruptError, NotFoundError, ShortageError, UnsupportedError

SECONDS = 5.0
MEGABYTE = 1 << 20
ALLOWED_MEMORY = 96 * MEGABYTE
VALUES = ("UTF8", "not fit in precision", "not within the acceptable range", "whole number of days")
IN_FILE = (CorruptError, ShortageError, UnsupportedError)
IN_TABLE = (*IN_FILE, NotFoundError)


class TooSlowError(BaseException):
    """A reading took longer than it may; not an Exception, so that nothing swallows it."""


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def judge(
    action: Callable[[], list[pa.Table]],
    allowed: tuple[type[Exception], ...],
    size: int,
    accept: Callable[[list[pa.Table]], str | None] = lambda _: None,
) -> str | None:
    """Run a reading of damaged bytes; return what is wrong with how it went, if anything.

    Args:
        action: reads, and returns the tables it found.
        allowed: the errors that may end it.
        size: bytes of what is read.
        accept: says what is wrong with tables that were read.
    """
    before = _peak()
    wrong = None
    try:
        with _limit(SECONDS):
            tables = action()
            wrong = _unsound(tables) or accept(tables)
    except allowed as cause:
        if _is_memory(cause):
            wrong = f"memory ran out: {_told(cause)}"
    except TooSlowError as cause:
        wrong = f"took longer than {SECONDS} s: {_told(cause)}"
    except Exception as cause:
        wrong = _told(cause)
    if wrong is None and _peak() - before > ALLOWED_MEMORY + 64 * size:
        wrong = f"took {(_peak() - before) // MEGABYTE} MB for {size} bytes"
    return wrong


def _is_memory(cause: BaseException | None) -> bool:
    while cause is not None:
        if isinstance(cause, (MemoryError, pa.ArrowMemoryError)):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _told(cause: BaseException) -> str:
    frames = traceback.extract_tb(cause.__traceback__)
    inside = [frame for frame in frames if "/lancetable/" in frame.filename]
    calls = " < ".join(
        f"{frame.filename.rpartition('/lancetable/')[2]}:{frame.lineno}"
        for frame in reversed(inside[-6:])
    )
    origin = cause.__cause__ or cause.__context__
    because = f" (from {type(origin).__name__}: {origin})" if origin is not None else ""
    return f"{type(cause).__name__}: {str(cause)[:200]}{because} at {calls}"


def _unsound(tables: list[pa.Table]) -> str | None:
    """Return why a table is not whole; values that their type would not allow are not judged."""
    for table in tables:
        for column in table.columns:
            for chunk in column.chunks:
                try:
                    chunk.validate(full=True)
                except pa.ArrowInvalid as cause:
                    if not any(words in str(cause) for words in VALUES):
                        return f"array of {chunk.type} is not sound: {cause}"
    return None
