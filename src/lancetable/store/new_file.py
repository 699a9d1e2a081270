"""Create local files and translate errors of the operating system."""

import errno
import os
from collections.abc import Sequence

from lancetable.errors import ExistsError, FileNotFoundInStoreError, ShortageError, StoreError
from lancetable.store.atomic_create import write_all
from lancetable.store.base import Bytes

BINARY = getattr(os, "OBINARY", 0)
SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | BINARY
"""No link is followed, and a pipe without a reader or writer is opened without waiting for one."""
MOST_PARTS = 512
"""Most buffers that one system call may write; the usual limit is 1024."""
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT}
"""Out of descriptors, memory, disk space or quota: nothing is wrong with the file itself."""
_REFUSALS = frozenset(
    getattr(errno, name)
    for name in (
        "EACCES", "EBUSY", "EDQUOT", "EFBIG", "EINVAL", "ELOOP", "EMFILE", "EMLINK", "ENAMETOOLONG",
        "ENFILE", "ENOMEM", "ENOSPC", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EPERM", "EROFS", "EXDEV",
    )
    if hasattr(errno, name)
)  # fmt: skip
"""Errors with which a system refuses a request. After others, such as EIO or ESTALE of a network
file system, it may have been carried out."""


class LocalFile:
    """A new file being written."""

    __slots__ = ("_descriptor", "_is_durable", "_path")

    def __init__(self, path: str, descriptor: int, *, is_durable: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._is_durable = is_durable

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end; on failure remove the file."""
        try:
            for first in range(0, len(parts), MOST_PARTS):
                write_all(self._descriptor, parts[first : first + MOST_PARTS])
        except OSError as cause:
            self.abort()
            raise translated(cause, self._path) from cause

    def close(self) -> None:
        """Finish the file."""
        if self._descriptor < 0:
            return
        try:
            if self._is_durable:
                os.fsync(self._descriptor)
                sync_folder(self._path)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        except OSError as cause:
            self.abort()
            raise translated(cause, self._path) from cause

    def abort(self) -> None:
        """Abort and remove what was written."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        remove(self._path)


def create_new(full: str) -> int:
    """Return a descriptor of a new file, making its folder if needed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
    try:
        try:
            return os.open(full, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(full.rpartition("/")[0], exist_ok=True)  # noqa: PTH103
            return os.open(full, flags, 0o666)
    except FileExistsError:
        return _reopened(full)
    except NotADirectoryError as cause:
        raise StoreError(
            f"{full}: a part of this path is a file, not a folder; choose another place",
            is_certain=True,
        ) from cause
    except OSError as cause:
        raise translated(cause, full) from cause


def _reopened(full: str) -> int:
    """Open the empty file that a repeated request left: nobody else uses the name.

    A network file system may repeat a request whose answer was lost, and report that the file it
    created itself already exists.
    """
    try:
        descriptor = os.open(full, os.O_WRONLY | SAFELY)
    except OSError:
        raise taken(full) from None
    if os.fstat(descriptor).st_size:
        os.close(descriptor)
        raise taken(full)
    return descriptor


def taken(full: str) -> ExistsError:
    """Return the error of a name that is in use."""
    return ExistsError(f"{full}: the file already exists")


def sync_folder(full: str) -> None:
    """Flush the folder entry of a file to the disk."""
    descriptor = os.open(full.rpartition("/")[0] or "/", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(full: str) -> None:
    """Remove a file, ignoring errors."""
    try:
        os.unlink(full)  # noqa: PTH108
    except OSError:
        return


def translated(cause: OSError, path: str) -> FileNotFoundInStoreError | StoreError:
    """Translate an error of the operating system."""
    if isinstance(cause, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return FileNotFoundInStoreError(f"{path}: there is no such file")
    return failure(cause, path, is_certain=cause.errno in _REFUSALS)


def failure(cause: OSError, path: str, *, is_certain: bool) -> StoreError:
    """Return the error of a failed file system, or of exhausted resources."""
    kind = ShortageError if cause.errno in _SHORTAGES else StoreError
    return kind(f"{path}: {cause.strerror or cause}", is_certain=is_certain)
