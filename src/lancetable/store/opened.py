"""Local files opened for reading: held in memory, mapped, or read range by range.

If a mapped file is truncated while it is open, a signal ends the whole process as soon as a missing
byte is read. So its size is checked before ranges are returned and before returned bytes are read
again, and files of network and user-space file systems, where other machines may truncate files
unnoticed, are not mapped at all.
"""

import mmap
import os
from collections.abc import Sequence
from functools import lru_cache

from lancetable.errors import CorruptError, InputError, StoreError
from lancetable.store.base import ByteRange, ReadableFile

LOCAL_READS = "local_reads"
AUTO, MAPPED, COPIED = "auto", "mapped", "copied"
_WILL_NEED: int | None = getattr(mmap, "MADV_WILLNEED", None)
_TAIL_BYTES = 64 * 1024
"""The end of a data file, where its metadata starts to be read."""
_NETWORK = "acfs afs beegfs ceph cifs coda davfs gfs gfs2 gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs"
_HOSTS = "9p prl_fs smb3 smbfs vboxsf virtiofs"
_REMOTE = frozenset(f"{_NETWORK} {_HOSTS}".split())
_USER_SPACE = "fuse."


class MemoryFile:
    """A file whose bytes are in memory, read or mapped."""

    __slots__ = ("_map", "_path", "_view", "is_file_map", "size")

    is_mapped = True

    def __init__(self, content: bytes | mmap.mmap, path: str = "") -> None:
        self._view = memoryview(content)
        self._map = content if isinstance(content, mmap.mmap) else None
        self._path = path
        self.size = len(self._view)
        self.is_file_map = self._map is not None
        """True when the bytes are those of a file on the disk, not a copy of them."""

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return a view of each range."""
        view = self._view
        if self.is_file_map:
            self.check_size()
        return [view[start:stop] for start, stop in ranges]

    def check_size(self) -> None:
        """Check that no bytes were lost.

        Raises:
            CorruptError: the file was truncated since it was mapped.
        """
        if self._map is not None and self._map.size() < self.size:
            raise self._cut()

    def _cut(self) -> CorruptError:
        size = 0 if self._map is None else self._map.size()
        return CorruptError(
            f"the file was truncated from {self.size} to {size} bytes while it was open; if other "
            f"machines write here, set the storage option {LOCAL_READS}={COPIED!r}",
            path=self._path,
        )

    def will_need(self, start: int, stop: int) -> None:
        """Start reading bytes from the disk in the background."""
        if _WILL_NEED is not None and self._map is not None:
            first = start - start % mmap.PAGESIZE
            self._map.madvise(_WILL_NEED, first, max(stop - first, 1))


class CopiedFile:
    """A file whose ranges are read on request."""

    __slots__ = ("_descriptor", "_path", "size")

    is_mapped = False

    def __init__(self, descriptor: int, size: int, path: str) -> None:
        self._descriptor = os.dup(descriptor)
        self._path = path
        self.size = size

    def __del__(self) -> None:
        descriptor = getattr(self, "_descriptor", -1)
        if descriptor >= 0:
            os.close(descriptor)

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Read each range.

        Raises:
            CorruptError: the file ends before a range does.
            StoreError: the file system failed.
        """
        return [memoryview(self._read(start, stop)) for start, stop in ranges]

    def _read(self, start: int, stop: int) -> bytes:
        parts = []
        while start < stop:
            try:
                part = os.pread(self._descriptor, stop - start, start)
            except OSError as cause:
                raise StoreError(f"{self._path}: {cause.strerror or cause}") from cause
            if not part:
                raise CorruptError(
                    f"the file ends at byte {start} and had {self.size} when it was opened",
                    path=self._path,
                )
            parts.append(part)
            start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def large_file(
    descriptor: int, status: os.stat_result, path: str, reads: str | None
) -> ReadableFile:
    """Return a file that is too large to be read whole, mapped where that is safe.

    ``reads`` is the storage option, if given; otherwise the environment variable applies.
    """
    length = status.st_size
    if reads is None:
        reads = checked_reads(os.environ.get("LANCETABLE_LOCAL_READS", AUTO))
    if reads == COPIED or (reads == AUTO and is_remote(status.st_dev)):
        return CopiedFile(descriptor, length, path)
    file = MemoryFile(mmap.mmap(descriptor, length, access=mmap.ACCESS_READ), path)
    file.will_need(length - _TAIL_BYTES, length)
    return file


def will_need(file: ReadableFile, start: int, stop: int) -> None:
    """Start reading bytes of a mapped file from the disk; other files are ignored."""
    if isinstance(file, MemoryFile):
        file.will_need(start, stop)


def check_size(file: ReadableFile) -> None:
    """Check that a mapped file lost no bytes.

    Raises:
        CorruptError: it was truncated since it was mapped.
    """
    inner = getattr(file, "inner", file)
    if isinstance(inner, MemoryFile) and inner.is_file_map:
        inner.check_size()


def mapped_file(file: ReadableFile) -> MemoryFile | None:
    """Return the mapped file that a file is or wraps; None when it is not mapped."""
    inner = getattr(file, "inner", file)
    return inner if isinstance(inner, MemoryFile) and inner.is_file_map else None


@lru_cache(maxsize=256)
def is_remote(device: int) -> bool:
    """Return whether a device is a network or user-space file system."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:  # noqa: PTH123
            lines = mounts.read().splitlines()
    except OSError:
        return False
    for line in lines:
        fields, _, rest = line.partition(" - ")
        if fields.split(" ", 3)[2:3] == [number]:
            return is_remote_kind(rest.partition(" ")[0])
    return False


def is_remote_kind(kind: str) -> bool:
    """Return whether a kind of file system is a network or user-space file system."""
    return kind in _REMOTE or kind.startswith(_USER_SPACE)


def checked_reads(given: str) -> str:
    """Return how local files are read.

    Raises:
        InputError: there is no such way.
    """
    wanted = given.strip().lower()
    if wanted not in {AUTO, MAPPED, COPIED}:
        raise InputError(f"{LOCAL_READS} is {given!r}; use {AUTO!r}, {MAPPED!r} or {COPIED!r}")
    return wanted
