"""The local file system: mapped memory for large files, one read for small ones.

A warm range of a mapped file costs a fraction of a microsecond. Opening a map costs more than
reading a small file whole, and keeps a descriptor open, so small files are simply read.

Creating a file that must not exist yet is a hard link: the content is complete, without a name or
under another, before the link makes it visible, and of many links to one name exactly one succeeds.
Without hard links it is a rename that does not replace; without that too it is refused, as a name
that is created first and filled afterwards stays behind half filled when the writer dies.
"""

import errno
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from enum import Enum

from lancetable.errors import (
    ExistsError,
    FileNotFoundInStoreError,
    ShortageError,
    StoreError,
)
from lancetable.store.base import Bytes, Entry, ReadableFile, WritableFile
from lancetable.store.naming import NotNamedError, create_if_absent, name_if_absent, write_all
from lancetable.store.ranges import ByteRange

MAP_FROM_BYTES = 64 * 1024
MOST_PARTS = 512
"""How many pieces of memory one system call may write; the usual limit is 1024."""
_WILL_NEED: int | None = getattr(mmap, "MADV_WILLNEED", None)
_TAIL_BYTES = 64 * 1024
"""The end of a data file, where its metadata starts to be read."""
_BINARY = getattr(os, "O_BINARY", 0)
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT}
"""Out of descriptors, memory, disk space or quota: nothing is wrong with the file itself."""
_NOT_A_LINK = getattr(os, "O_NOFOLLOW", 0)
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


class Durability(Enum):
    """When a write counts as done."""

    OS = "os"
    """Once the operating system has the bytes; a power cut may lose the last versions."""
    FSYNC = "fsync"
    """Once file and folder are on the disk; a power cut loses nothing that was reported."""


class MemoryFile:
    """A file whose bytes are at hand, read or mapped."""

    __slots__ = ("_view", "size")

    is_mapped = True

    def __init__(self, content: bytes | mmap.mmap) -> None:
        self._view = memoryview(content)
        self.size = len(self._view)

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return a view of each range."""
        view = self._view
        return [view[start:stop] for start, stop in ranges]

    def will_need(self, start: int, stop: int) -> None:
        """Have bytes read from the disk while something else is done."""
        content = self._view.obj
        if _WILL_NEED is not None and isinstance(content, mmap.mmap):
            first = start - start % mmap.PAGESIZE
            content.madvise(_WILL_NEED, first, max(stop - first, 1))


def will_need(file: ReadableFile, start: int, stop: int) -> None:
    """Have bytes of a mapped file read from the disk soon; files of other kinds are let be."""
    if isinstance(file, MemoryFile):
        file.will_need(start, stop)


def _mapped(descriptor: int, length: int) -> MemoryFile:
    file = MemoryFile(mmap.mmap(descriptor, length, access=mmap.ACCESS_READ))
    file.will_need(length - _TAIL_BYTES, length)
    return file


class LocalStore:
    """Files below one folder."""

    __slots__ = ("__weakref__", "_is_durable", "root")

    lists_in_order = False
    width = 1

    def __init__(self, root: str, durability: Durability = Durability.OS) -> None:
        self.root = root
        self._is_durable = durability is Durability.FSYNC

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Map the file, or read it when it is small."""
        full = self._full(path)
        try:
            descriptor = os.open(full, os.O_RDONLY | _BINARY)
        except OSError as cause:
            raise _translated(cause, full) from cause
        try:
            if size is not None and size < MAP_FROM_BYTES:
                content = os.read(descriptor, size + 1)
                if len(content) == size:
                    return MemoryFile(content)
                # The size was another one, or the call brought less than there is.
                os.lseek(descriptor, 0, os.SEEK_SET)
            length = os.fstat(descriptor).st_size
            if length < MAP_FROM_BYTES:
                return MemoryFile(_read_all(descriptor, length))
            return _mapped(descriptor, length)
        except OSError as cause:
            raise _translated(cause, full) from cause
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        full = self._full(path)
        try:
            descriptor = os.open(full, os.O_RDONLY | _BINARY)
            try:
                return _read_all(descriptor, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        except OSError as cause:
            raise _translated(cause, full) from cause

    def exists(self, path: str) -> bool:
        """Say whether the file is there."""
        try:
            found = os.stat(self._full(path))  # noqa: PTH116 - a Path costs ten times the call
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as cause:
            raise _translated(cause, self._full(path)) from cause
        return not stat.S_ISDIR(found.st_mode)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the files below a folder; nothing when the folder is not there."""
        pending = [prefix.strip("/")]
        while pending:
            folder = pending.pop()
            try:
                entries = os.scandir(self._full(folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as cause:
                raise _translated(cause, self._full(folder)) from cause
            with entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir():
                        pending.append(path)
                    else:
                        try:
                            status = entry.stat()
                        except FileNotFoundError:
                            continue
                        yield Entry(path, status.st_size, status.st_mtime)

    def first(self, prefix: str) -> None:
        """Return nothing: folders have no order."""

    def create(self, path: str) -> WritableFile:
        """Start a new file, making its folder if needed."""
        full = self._full(path)
        return LocalFile(full, _create_new(full), is_durable=self._is_durable)

    def put(self, path: str, content: bytes) -> None:
        """Write a file beside the name and move it there."""
        full = self._full(path)
        staged = self._stage(full, content)
        try:
            os.replace(staged, full)  # noqa: PTH105 - a Path costs more than the call
            self._settle(full)
        except OSError as cause:
            _remove(staged)
            raise _translated(cause, full) from cause

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write over a file in place.

        Moving a new file over an old one makes some file systems wait for the disk, which takes
        longer than all the rest of a small commit.
        """
        full = self._full(path)
        try:
            descriptor = os.open(full, os.O_WRONLY | os.O_CREAT | _BINARY, 0o666)
            try:
                os.write(descriptor, content)
            finally:
                os.close(descriptor)
        except OSError as cause:
            raise _translated(cause, full) from cause

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write a file without the name and give it the name in one step."""
        full = self._full(path)
        if os.path.lexists(full):
            # Who loses a race mostly learns it here, before a file is made for nothing.
            raise _taken(full)
        try:
            if not create_if_absent(full, content, is_durable=self._is_durable):
                self._put_staged(full, content)
        except FileExistsError:
            raise _taken(full) from None
        except NotNamedError as cause:
            raise _failure(cause, full, is_certain=True) from cause
        except StoreError:
            raise
        except OSError as cause:
            raise _translated(cause, full) from cause
        self._settle(full)

    def _put_staged(self, full: str, content: bytes) -> None:
        try:
            staged = self._stage(full, content)
        except StoreError as cause:
            # Nothing has the name yet.
            raise type(cause)(str(cause), is_certain=True) from cause
        try:
            name_if_absent(staged, full)
        finally:
            _remove(staged)

    def copy(self, source: str, target: str) -> None:
        """Write a file with the content of another."""
        self.put(target, self.read(source))

    def require_atomic_creation(self) -> None:
        """Return quietly: a hard link is atomic."""

    def delete(self, path: str) -> None:
        """Remove a file."""
        full = self._full(path)
        try:
            os.unlink(full)  # noqa: PTH108
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as cause:
            raise _translated(cause, full) from cause

    def _stage(self, full: str, content: bytes) -> str:
        staged = f"{full}.tmp{os.urandom(4).hex()}"
        file = LocalFile(staged, _create_new(staged), is_durable=self._is_durable)
        file.write([content])
        file.close()
        return staged

    def _settle(self, full: str) -> None:
        """Bring the folder entry to the disk."""
        if self._is_durable:
            try:
                _sync_folder(full)
            except OSError as cause:
                raise StoreError(f"{full}: {cause.strerror or cause}") from cause


class LocalFile:
    """A new file in the making."""

    __slots__ = ("_descriptor", "_is_durable", "_path")

    def __init__(self, path: str, descriptor: int, *, is_durable: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._is_durable = is_durable

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end; on failure nothing of the file stays."""
        try:
            for first in range(0, len(parts), MOST_PARTS):
                write_all(self._descriptor, parts[first : first + MOST_PARTS])
        except OSError as cause:
            self.abort()
            raise _translated(cause, self._path) from cause

    def close(self) -> None:
        """Finish the file."""
        if self._descriptor < 0:
            return
        try:
            if self._is_durable:
                os.fsync(self._descriptor)
                _sync_folder(self._path)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        except OSError as cause:
            self.abort()
            raise _translated(cause, self._path) from cause

    def abort(self) -> None:
        """Give up and remove what was written."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        _remove(self._path)


def _create_new(full: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
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
        raise _translated(cause, full) from cause


def _reopened(full: str) -> int:
    """Open the empty file that a repeated request left: nobody else uses the name.

    A network file system may repeat a request whose answer was lost, and report that its own file
    is in the way.
    """
    try:
        descriptor = os.open(full, os.O_WRONLY | _NOT_A_LINK | _BINARY)
    except OSError:
        raise _taken(full) from None
    if os.fstat(descriptor).st_size:
        os.close(descriptor)
        raise _taken(full)
    return descriptor


def _taken(full: str) -> ExistsError:
    return ExistsError(f"{full}: there is such a file already")


def _sync_folder(full: str) -> None:
    descriptor = os.open(full.rpartition("/")[0] or "/", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(full: str) -> None:
    try:
        os.unlink(full)  # noqa: PTH108
    except OSError:
        return


def _read_all(descriptor: int, length: int) -> bytes:
    """Read to the end; a single call returns at most 2 GiB."""
    content = os.read(descriptor, length + 1)
    if len(content) >= length:
        return content
    parts = [content]
    while part := os.read(descriptor, length + 1):
        parts.append(part)
    return b"".join(parts)


def _translated(cause: OSError, path: str) -> FileNotFoundInStoreError | StoreError:
    if isinstance(cause, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return FileNotFoundInStoreError(f"{path}: there is no such file")
    return _failure(cause, path, is_certain=cause.errno in _REFUSALS)


def _failure(cause: OSError, path: str, *, is_certain: bool) -> StoreError:
    kind = ShortageError if cause.errno in _SHORTAGES else StoreError
    return kind(f"{path}: {cause.strerror or cause}", is_certain=is_certain)
