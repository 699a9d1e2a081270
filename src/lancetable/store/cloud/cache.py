"""Caches of immutable files on a local disk, and of small objects in memory.

The folder on disk is shared by all processes that name it. Files are kept in blocks. A block is a
file of its own: its bytes, then a checksum of four bytes, little-endian. One rename puts the
complete file in place, so readers need no lock; a block that is missing, truncated or damaged is
fetched again. When the cache is full, the least recently used blocks are removed. Only files with
the names of blocks are removed; other files in the folder stay.

Small objects are kept by the entity tag of their content. A listing contains the tag of each
object. When the tag is unchanged, the bytes are the same and are not fetched again, so reopening a
table costs one request.
"""

import contextlib
import hashlib
import os
import re
import stat
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from lancetable.store.base import ByteRange, ReadableFile

BLOCK = 256 * 1024
_CHECKSUM = 4
_MUTABLE = ("_versions/", "_refs/")
"""Names whose content may differ after a table is recreated in the same place."""

_BLOCK_NAME = re.compile(r"[0-9a-f]{40}-[0-9]+")
_STAGED_NAME = re.compile(r"\.[0-9a-f]{32}")
_STAGED_SECONDS = 3600.0
"""Temporary blocks older than this were left by a process that died."""

_caches: dict[tuple[str, int], "DiskCache"] = {}
_lock = threading.Lock()


def is_cacheable(path: str) -> bool:
    """Return whether the content of an object never changes."""
    return not path.startswith(_MUTABLE)


def cache_of(folder: str, most: int) -> "DiskCache":
    """Return the cache in a folder."""
    with _lock:
        return _caches.setdefault((folder, most), DiskCache(Path(folder), most))


class DiskCache:
    """Blocks of files in a folder, of about ``most`` bytes together."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._unchecked = most
        self._guard = threading.Lock()

    def read(self, name: str, size: int) -> bytes | None:
        """Return a block of ``size`` bytes, or ``None`` when it is missing or damaged."""
        path = self._path(name)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        block, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
        if len(block) != size or zlib.crc32(block).to_bytes(_CHECKSUM, "little") != checksum:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return block

    def write(self, name: str, block: memoryview) -> None:
        """Store a block; errors of the disk are ignored."""
        path = self._path(name)
        staged = path.with_name(f".{uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with staged.open("wb") as file:
                file.write(block)
                file.write(zlib.crc32(block).to_bytes(_CHECKSUM, "little"))
            staged.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                staged.unlink()
            return
        self._account(len(block))

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _account(self, written: int) -> None:
        """Check the size of the folder whenever a sixteenth of the limit was written."""
        with self._guard:
            self._unchecked += written
            if self._unchecked < self._most // 16:
                return
            self._unchecked = 0
        self._evict()

    def _evict(self) -> None:
        blocks = sorted(self._blocks())
        total = sum(size for _, size, _ in blocks)
        for _, size, path in blocks:
            if total <= self._most:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size

    def _blocks(self) -> Iterator[tuple[float, int, Path]]:
        now = time.time()
        for path in self._folder.glob("[0-9a-f][0-9a-f]/*"):
            is_block = _BLOCK_NAME.fullmatch(path.name) and path.name[:2] == path.parent.name
            if not is_block and not _STAGED_NAME.fullmatch(path.name):
                continue
            with contextlib.suppress(OSError):
                status = path.lstat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                if is_block:
                    yield status.st_mtime, status.st_size, path
                elif status.st_mtime < now - _STAGED_SECONDS:
                    path.unlink()


class CachedFile:
    """A file whose blocks are read from the disk cache first."""

    __slots__ = ("_cache", "_file", "_name", "size")

    is_mapped = False

    def __init__(self, file: ReadableFile, cache: DiskCache, identity: str) -> None:
        self._file = file
        self._cache = cache
        self.size = file.size
        self._name = hashlib.sha256(f"{identity}\0{file.size}".encode()).hexdigest()[:40]

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return the bytes of each range, fetching only blocks that are not on the disk."""
        numbers = sorted(
            {
                number
                for start, stop in ranges
                if stop > start
                for number in range(start // BLOCK, (stop - 1) // BLOCK + 1)
            }
        )
        blocks: dict[int, bytes | memoryview] = {}
        missing: list[int] = []
        for number in numbers:
            found = self._cache.read(self._block_name(number), self._length(number))
            if found is None:
                missing.append(number)
            else:
                blocks[number] = found
        if missing:
            fetched = self._file.read_ranges([self._range(number) for number in missing])
            for number, block in zip(missing, fetched, strict=True):
                self._cache.write(self._block_name(number), block)
                blocks[number] = block
        return [_cut(blocks, one) for one in ranges]

    def _block_name(self, number: int) -> str:
        return f"{self._name}-{number}"

    def _range(self, number: int) -> ByteRange:
        return ByteRange(number * BLOCK, min((number + 1) * BLOCK, self.size))

    def _length(self, number: int) -> int:
        start, stop = self._range(number)
        return stop - start


def _cut(blocks: dict[int, bytes | memoryview], wanted: ByteRange) -> memoryview:
    start, stop = wanted
    if stop <= start:
        return memoryview(b"")
    first, last = start // BLOCK, (stop - 1) // BLOCK
    offset = first * BLOCK
    if first == last:
        return memoryview(blocks[first])[start - offset : stop - offset].toreadonly()
    joined = b"".join(blocks[number] for number in range(first, last + 1))
    return memoryview(joined)[start - offset : stop - offset]


MOST_BYTES = 32 * 1024 * 1024
LARGEST = MOST_BYTES // 8


class Kept:
    """Contents by key and tag; the least recently used are dropped first."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._contents: OrderedDict[object, tuple[str, bytes]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._contents.clear()
            self._bytes = 0

    def find(self, key: object, tag: str) -> bytes | None:
        """Return the content of an object if its tag matches."""
        with self._lock:
            found = self._contents.get(key)
            if found is None or found[0] != tag:
                return None
            self._contents.move_to_end(key)
            return found[1]

    def keep(self, key: object, tag: str | None, content: bytes) -> None:
        """Remember the content of an object, unless it is large or has no tag."""
        if not tag or len(content) > LARGEST:
            return
        with self._lock:
            _, old = self._contents.pop(key, ("", b""))
            self._contents[key] = (tag, content)
            self._bytes += len(content) - len(old)
            while self._bytes > self._most:
                _, (_, gone) = self._contents.popitem(last=False)
                self._bytes -= len(gone)
