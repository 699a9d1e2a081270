"""A store that is a dictionary: for tests, and for tables that never touch a disk."""

from collections.abc import Iterator, Mapping

from lancetable.errors import FileNotFoundInStoreError
from lancetable.store.base import Entry, ReadableFile
from lancetable.store.local import MemoryFile


class MemoryStore:
    """Objects held in memory."""

    def __init__(self, objects: Mapping[str, bytes] | None = None) -> None:
        self.root = "memory:"
        self.objects: dict[str, bytes] = dict(objects or {})

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Return the object as a file."""
        return MemoryFile(self.read(path))

    def read(self, path: str) -> bytes:
        """Return the content of one object."""
        try:
            return self.objects[path]
        except KeyError:
            raise FileNotFoundInStoreError(f"{path}: there is no such object in memory") from None

    def exists(self, path: str) -> bool:
        """Say whether there is such an object."""
        return path in self.objects

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        for path, content in list(self.objects.items()):
            if path.startswith(folder):
                yield Entry(path, len(content), 0.0)
