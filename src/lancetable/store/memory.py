"""An in-memory store, for tests and for tables that are never written to a disk."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from lancetable.errors import ExistsError, FileNotFoundInStoreError
from lancetable.store.base import Bytes, Entry, ReadableFile, WritableFile, too_large
from lancetable.store.opened import MemoryFile


class MemoryStore:
    """Objects held in memory, shared with the stores of subfolders."""

    lists_in_order = False
    width = 1

    def __init__(
        self, objects: Mapping[str, bytes] | None = None, *, root: str = "memory:"
    ) -> None:
        self.root = root
        self.objects: dict[str, bytes] = dict(objects or {})
        self._modified: dict[str, float] = {}
        self._lock = threading.Lock()

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Return the object as a file."""
        return MemoryFile(self.read(path))

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return the content of one object."""
        try:
            content = self.objects[path]
        except KeyError:
            raise FileNotFoundInStoreError(f"{path}: there is no such object in memory") from None
        if most is not None and len(content) > most:
            raise too_large(len(content), most, path)
        return content

    def exists(self, path: str) -> bool:
        """Return whether the object exists."""
        return path in self.objects

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        for path, content in list(self.objects.items()):
            if path.startswith(folder):
                yield Entry(path, len(content), self._modified.get(path, 0.0))

    def first(self, prefix: str) -> None:
        """Return ``None``, as for local folders."""

    def create(self, path: str) -> WritableFile:
        """Start a new object."""
        return _Draft(self, path)

    def put(self, path: str, content: bytes) -> None:
        """Write an object."""
        with self._lock:
            self._modified[path] = time.time()
            self.objects[path] = bytes(content)

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write an object."""
        self.put(path, content)

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write an object that must not exist yet."""
        with self._lock:
            if path in self.objects:
                raise ExistsError(f"{path}: the object already exists")
            self._modified[path] = time.time()
            self.objects[path] = bytes(content)

    def copy(self, source: str, target: str) -> None:
        """Copy an object."""
        self.put(target, self.read(source))

    def require_atomic_creation(self) -> None:
        """Do nothing: a lock makes it atomic."""

    def delete(self, path: str) -> None:
        """Remove an object."""
        self.objects.pop(path, None)


class _Draft:
    """A new object being written."""

    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._parts: list[bytes] = []
        self._is_closed = False

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end."""
        self._parts.extend(bytes(part) for part in parts)

    def close(self) -> None:
        """Make the object visible."""
        self._is_closed = True
        self._store.put(self._path, b"".join(self._parts))

    def abort(self) -> None:
        """Discard what was written."""
        self._parts.clear()
        if self._is_closed:
            self._store.delete(self._path)
