"""Create local files atomically: a new name appears with its full content or not at all.

Linux has files without a name. Such a file is written and then linked to its name: one change of
the folder, and a writer that dies before leaves nothing behind. Elsewhere the file has a temporary
name until it is complete; then it is linked to its own name, or renamed without hard links.

Python's own rename replaces an existing file. Linux and macOS have a call that does not; it is one
step for the file system, so no reader sees the name with incomplete content.

========  ======================  ==================================
system    call                    flag
========  ======================  ==================================
Linux     ``renameat2``           1, do not replace
macOS     ``renamex_np``          4, exclusive
Windows   the ordinary rename     none, it never replaces
========  ======================  ==================================
"""

import errno
import os
import sys
from collections.abc import Sequence

from lancetable.errors import ExistsError, FileNotFoundInStoreError, ShortageError, StoreError
from lancetable.store.base import Bytes

_NAMELESS: int = getattr(os, "O_TMPFILE", 0)
_WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EOPNOTSUPP}
_CANNOT_NAME = {*_WITHOUT_LINKS, errno.ENOENT, errno.EXDEV, errno.EACCES, errno.EINVAL}
"""Errors of linking an open file where that is not supported, or where ``/proc`` is missing."""
_CURRENT_FOLDER = -100
_LINUX_NO_REPLACE = 1
_MACOS_EXCLUSIVE = 4

CANNOT = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.ENOTTY}
)
"""Errors that mean that the file system does not support such a rename."""


class NotNamedError(OSError):
    """Raised when the content of a file could not be written; its name was not created."""


def create_if_absent(full: str, content: bytes, *, is_durable: bool) -> bool:
    """Create a file under a name that must be free, using a file without a name.

    Return ``False`` when the system or file system has no such files or cannot link them.

    Raises:
        FileExistsError: there is such a file.
        NotNamedError: the content could not be written; no file was created.
        OSError: linking failed; the caller must check whether the file exists.
    """
    if not _NAMELESS:
        return False
    try:
        descriptor = os.open(full.rpartition("/")[0] or "/", os.O_WRONLY | _NAMELESS, 0o666)
    except OSError:
        return False
    try:
        try:
            write_all(descriptor, [content])
            if is_durable:
                os.fsync(descriptor)
        except OSError as cause:
            raise NotNamedError(cause.errno, cause.strerror) from cause
        # Python follows the link to the open file only when a folder descriptor is passed.
        os.link(f"/proc/self/fd/{descriptor}", full, src_dir_fd=descriptor, follow_symlinks=True)
    except OSError as cause:
        if isinstance(cause, NotNamedError) or cause.errno not in _CANNOT_NAME:
            raise
        return False
    finally:
        os.close(descriptor)
    return True


def write_all(descriptor: int, parts: Sequence[Bytes]) -> None:
    """Write every byte; a single call may write fewer than it is given."""
    views = [memoryview(part).cast("B") for part in parts if len(part)]
    while views:
        written = os.writev(descriptor, views)
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if views and written:
            views[0] = views[0][written:]


def name_if_absent(staged: str, full: str) -> None:
    """Give a complete file its name, which must be free.

    Raises:
        FileExistsError: there is such a file.
        OSError: it failed, or the file system has no means to do it safely.
    """
    try:
        os.link(staged, full)
    except OSError as cause:
        if cause.errno not in _WITHOUT_LINKS:
            raise
    else:
        return
    try:
        rename_if_absent(staged, full)
    except OSError as cause:
        if cause.errno not in CANNOT:
            raise
        raise OSError(
            cause.errno,
            "the file system has neither hard links nor a rename that does not replace, so no "
            "version can be made safely; put the table on another file system",
        ) from cause


def rename_if_absent(source: str, target: str) -> None:
    """Move a file to a name that must be free.

    Raises:
        FileExistsError: there is such a file; nothing was moved.
        OSError: it failed; with a number of ``CANNOT`` when the file system cannot do it at all.
    """
    if sys.platform == "win32":
        os.rename(source, target)  # noqa: PTH104
        return
    code = _rename(os.fsencode(source), os.fsencode(target))
    if code:
        raise OSError(code, os.strerror(code), target)


def _rename(source: bytes, target: bytes) -> int:
    """Return the error number, 0 for none."""
    import ctypes  # noqa: PLC0415 - seldom needed, and a tenth of the time to open a table

    library = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(source, target, ctypes.c_uint(_MACOS_EXCLUSIVE))
        else:
            here = ctypes.c_int(_CURRENT_FOLDER)
            flag = ctypes.c_uint(_LINUX_NO_REPLACE)
            failed = library.renameat2(here, source, here, target, flag)
    except AttributeError:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0


BINARY = getattr(os, "O_BINARY", 0)
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
