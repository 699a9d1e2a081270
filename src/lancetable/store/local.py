"""The local file system: mapped memory for large files, one read for small ones.

A warm range of a mapped file costs a fraction of a microsecond. Opening a map costs more than
reading a small file whole, and keeps a descriptor open, so small files are simply read. Only
regular files are read, and links below the root are not followed (``confined.py``).

Creating a file that must not exist yet is a hard link: the content is complete, without a name or
under another, before the link makes it visible, and of many links to one name exactly one succeeds.
Without hard links it is a rename that does not replace. Where that is missing too, creation fails:
a file that is created first and written afterwards would stay incomplete when the writer dies.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from enum import Enum

from lancetable.errors import CorruptError, InputError, ShortageError, StoreError
from lancetable.store.access import Confined
from lancetable.store.base import Entry, ReadableFile, WritableFile, too_large
from lancetable.store.new_file import (
    SAFELY,
    LocalFile,
    NotNamedError,
    create_if_absent,
    create_new,
    failure,
    name_if_absent,
    remove,
    sync_folder,
    taken,
    translated,
)
from lancetable.store.opened import MemoryFile, large_file

MAP_FROM_BYTES = 64 * 1024
_ALWAYS_FITS = 1 << 30
"""Up to this size the available memory is not checked."""
_IS_LINK = {errno.ELOOP, errno.EMLINK}


class Durability(Enum):
    """The point at which a write counts as done."""

    OS = "os"
    """Once the operating system has the bytes; a power cut may lose the last versions."""
    FSYNC = "fsync"
    """Once file and folder are on the disk; a power cut loses nothing that was reported."""


class LocalStore:
    """Files below one folder."""

    __slots__ = ("__weakref__", "_confined", "_is_durable", "_reads", "root")

    lists_in_order = False
    width = 1

    def __init__(
        self,
        root: str,
        durability: Durability = Durability.OS,
        *,
        confined: Confined | None = None,
        reads: str | None = None,
    ) -> None:
        self.root = root
        self._is_durable = durability is Durability.FSYNC
        self._confined = confined or Confined(root)
        self._reads = reads

    def full(self, path: str, *, for_writing: bool = False) -> str:
        """Return the path of a file in the file system; ``for_writing`` for writing and removing.

        Raises:
            InputError: its folder is reached through a link to a place that is not allowed.
        """
        folder = path.rpartition("/")[0]
        if for_writing or folder not in self._confined.passed:
            self._confined.check(folder)
        return f"{self.root}/{path}" if path else self.root

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Map the file, or read it when it is small."""
        full = self.full(path)
        descriptor = self._opened(full)
        try:
            status = _regular(descriptor, full)
            length = status.st_size
            if length < MAP_FROM_BYTES:
                return MemoryFile(_read_all(descriptor, length))
            return large_file(descriptor, status, full, self._reads)
        except OSError as cause:
            raise translated(cause, full) from cause
        finally:
            os.close(descriptor)

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return the whole file."""
        full = self.full(path)
        descriptor = self._opened(full)
        size = 0
        try:
            size = _regular(descriptor, full).st_size
            if most is not None and size > most:
                raise too_large(size, most, full)
            if size > _ALWAYS_FITS and size > _memory():
                raise _too_large_for_memory(full, size)
            return _read_all(descriptor, size)
        except StoreError:
            raise
        except OSError as cause:
            raise translated(cause, full) from cause
        except MemoryError as cause:
            raise _too_large_for_memory(full, size) from cause
        finally:
            os.close(descriptor)

    def _opened(self, full: str) -> int:
        """Return a descriptor of a file; a link is followed to allowed places only."""
        try:
            try:
                return os.open(full, os.O_RDONLY | SAFELY)
            except OSError as cause:
                if cause.errno not in _IS_LINK:
                    raise
            return os.open(self._confined.target(full), os.O_RDONLY | SAFELY)
        except OSError as cause:
            raise translated(cause, full) from cause

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""
        full = self.full(path)
        try:
            found = os.lstat(full)
            if stat.S_ISLNK(found.st_mode):
                found = os.lstat(self._confined.target(full))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as cause:
            raise translated(cause, full) from cause
        return not stat.S_ISDIR(found.st_mode)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the files below a folder; nothing when the folder does not exist."""
        pending = [prefix.strip("/")]
        while pending:
            folder = pending.pop()
            if folder not in self._confined.passed:
                self._confined.check(folder)
            full = f"{self.root}/{folder}" if folder else self.root
            try:
                entries = os.scandir(full)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as cause:
                raise translated(cause, full) from cause
            with entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    status = self._status(entry)
                    if status is None:
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        pending.append(path)
                    else:
                        yield Entry(path, status.st_size, status.st_mtime)

    def _status(self, entry: "os.DirEntry[str]") -> os.stat_result | None:
        """Return the status of a folder entry; a link that is not followed counts as a file."""
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                with contextlib.suppress(InputError, FileNotFoundError):
                    return os.lstat(self._confined.target(entry.path))
        except FileNotFoundError:
            return None
        except OSError as cause:
            raise translated(cause, entry.path) from cause
        return status

    def first(self, prefix: str) -> None:
        """Return ``None``: folders have no order."""

    def create(self, path: str) -> WritableFile:
        """Start a new file, making its folder if needed."""
        full = self.full(path, for_writing=True)
        return LocalFile(full, create_new(full), is_durable=self._is_durable)

    def put(self, path: str, content: bytes) -> None:
        """Write a temporary file and rename it."""
        full = self.full(path, for_writing=True)
        staged = self._stage(full, content)
        try:
            os.replace(staged, full)  # noqa: PTH105 - a Path costs more than the call
            self._settle(full)
        except OSError as cause:
            remove(staged)
            raise translated(cause, full) from cause

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write over a file in place.

        Renaming a new file over an old one makes some file systems wait for the disk, which takes
        longer than the rest of a small commit.
        """
        full = self.full(path, for_writing=True)
        try:
            descriptor = os.open(full, os.O_WRONLY | os.O_CREAT | SAFELY, 0o666)
            try:
                status = os.fstat(descriptor)
                is_own = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
                if is_own:
                    os.write(descriptor, content)
            finally:
                os.close(descriptor)
        except OSError as cause:
            if cause.errno not in {*_IS_LINK, errno.ENXIO}:
                raise translated(cause, full) from cause
            is_own = False
        if not is_own:
            # A link, a pipe, or a hard link to another file: replace it instead of writing into it.
            self.put(path, content)

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write an unnamed or temporary file and link it to the name in one step."""
        full = self.full(path, for_writing=True)
        if os.path.lexists(full):
            # Most losers of a race are detected here, before a file is written for nothing.
            raise taken(full)
        try:
            if not create_if_absent(full, content, is_durable=self._is_durable):
                self._put_staged(full, content)
        except FileExistsError:
            raise taken(full) from None
        except NotNamedError as cause:
            raise failure(cause, full, is_certain=True) from cause
        except StoreError:
            raise
        except OSError as cause:
            raise translated(cause, full) from cause
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
            remove(staged)

    def copy(self, source: str, target: str) -> None:
        """Copy a file."""
        self.put(target, self.read(source))

    def require_atomic_creation(self) -> None:
        """Do nothing: a hard link is atomic."""

    def delete(self, path: str) -> None:
        """Remove a file."""
        full = self.full(path, for_writing=True)
        try:
            os.unlink(full)  # noqa: PTH108
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as cause:
            raise translated(cause, full) from cause

    def _stage(self, full: str, content: bytes) -> str:
        staged = f"{full}.tmp{os.urandom(4).hex()}"
        file = LocalFile(staged, create_new(staged), is_durable=self._is_durable)
        file.write([content])
        file.close()
        return staged

    def _settle(self, full: str) -> None:
        """Flush the folder entry to the disk."""
        if self._is_durable:
            try:
                sync_folder(full)
            except OSError as cause:
                raise StoreError(f"{full}: {cause.strerror or cause}") from cause


def _regular(descriptor: int, full: str) -> os.stat_result:
    """Return the status of an open file, which must be a regular file."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError
    raise CorruptError("a pipe, a socket or a device, not a regular file", path=full)


def _memory() -> int:
    """Return the bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


def _too_large_for_memory(full: str, size: int) -> ShortageError:
    return ShortageError(f"{full}: not enough memory to read its {size} bytes")


def _read_all(descriptor: int, length: int) -> bytes:
    """Read to the end; a single call returns at most 2 GiB."""
    content = os.read(descriptor, length + 1)
    if len(content) >= length:
        return content
    parts = [content]
    while part := os.read(descriptor, length + 1):
        parts.append(part)
    return b"".join(parts)
