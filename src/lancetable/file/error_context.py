"""Turn any error that damaged bytes cause into one that names the file and the place."""

import pyarrow as pa

from lancetable.errors import (
    CorruptError,
    InputError,
    LimitError,
    ShortageError,
    UnsupportedError,
)

DECODING_FAILURES = (ValueError, IndexError, OverflowError, MemoryError, pa.ArrowException)


class Placed:
    """Names file and place in errors; whatever damaged bytes cause becomes one clear error."""

    __slots__ = ("path", "where")

    def __init__(self, path: str, where: str) -> None:
        self.path = path
        self.where = where

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, cause: BaseException | None, _: object) -> None:
        if isinstance(cause, Exception):
            clear = explained(cause, self.path, self.where)
            if clear is not cause:
                raise clear from cause


def explained(cause: Exception, path: str, where: str) -> Exception:
    """Return the error to raise for one that came up while bytes were decoded."""
    if isinstance(cause, CorruptError | LimitError):
        return cause.at(path, where)
    if isinstance(cause, UnsupportedError):
        return (
            cause if str(cause).startswith(path) else UnsupportedError(f"{path}: {where}: {cause}")
        )
    if isinstance(cause, InputError) or not isinstance(cause, DECODING_FAILURES):
        return cause
    if isinstance(cause, MemoryError):
        # Sizes were checked against the bytes at hand, so this says nothing about the file.
        return ShortageError(f"{path}: {where}: not enough memory to decode it ({cause})")
    return CorruptError(f"{where}: the bytes cannot be decoded ({cause})", path=path)
