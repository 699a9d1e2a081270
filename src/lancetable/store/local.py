"""The local file system: mapped memory for large files, one read for small ones.

A warm range of a mapped file costs a fraction of a microsecond. Opening a map costs more than
reading a small file whole, and keeps a descriptor open, so small files are simply read.
"""

import mmap
import os
from collections.abc import Iterator, Sequence

from lancetable.errors import FileNotFoundInStoreError, StoreError
from lancetable.store.base import Entry, ReadableFile
from lancetable.store.ranges import ByteRange

MAP_FROM_BYTES = 64 * 1024


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


class LocalStore:
    """Files below one folder."""

    __slots__ = ("root",)

    def __init__(self, root: str) -> None:
        self.root = root

    def _full(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Map the file, or read it when it is small."""
        full = self._full(path)
        try:
            descriptor = os.open(full, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as cause:
            raise _translated(cause, full) from cause
        try:
            length = os.fstat(descriptor).st_size
            if length < MAP_FROM_BYTES:
                return MemoryFile(_read_all(descriptor, length))
            return MemoryFile(mmap.mmap(descriptor, length, access=mmap.ACCESS_READ))
        except OSError as cause:
            raise _translated(cause, full) from cause
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes:
        """Return the whole file."""
        full = self._full(path)
        try:
            descriptor = os.open(full, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                return _read_all(descriptor, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        except OSError as cause:
            raise _translated(cause, full) from cause

    def exists(self, path: str) -> bool:
        """Say whether the file is there."""
        try:
            os.stat(self._full(path))  # noqa: PTH116 - a Path costs ten times the call
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as cause:
            raise _translated(cause, self._full(path)) from cause
        return True

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
    return StoreError(f"{path}: {cause.strerror or cause}")
