"""What the rest of the library expects of a place that keeps bytes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from lancetable.errors import CorruptError
from lancetable.store.ranges import ByteRange

Bytes: TypeAlias = bytes | bytearray | memoryview
Credentials: TypeAlias = Callable[[], Mapping[str, Any]]
"""Gives credentials anew; ``credentials.py`` tells what they look like."""


def too_large(size: int, most: int, place: str) -> CorruptError:
    """Return the error of a small object that is not small."""
    return CorruptError(f"has {size} bytes, expected at most {most}", path=place)


class Entry(NamedTuple):
    """One object of a listing; ``modified`` is seconds since the epoch."""

    path: str
    size: int
    modified: float


class ReadableFile(Protocol):
    """One immutable object, opened for reading at any position."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    @property
    def is_mapped(self) -> bool:
        """True when a range of any size costs nothing until its bytes are touched."""
        ...

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return the bytes of each range; all lie inside the file."""
        ...


class WritableFile(Protocol):
    """A new object in the making; it counts as written only once it is closed."""

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end."""
        ...

    def close(self) -> None:
        """Finish the object."""
        ...

    def abort(self) -> None:
        """Give up and remove what was written."""
        ...


class Store(Protocol):
    """Objects below one root, named by relative paths with ``/`` between the parts."""

    @property
    def root(self) -> str:
        """The root as the user would write it; used in messages."""
        ...

    @property
    def width(self) -> int:
        """How many requests are worth having under way at once: 1 where bytes are at hand."""
        ...

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Open one object; a known ``size`` may save a request.

        Raises:
            FileNotFoundInStoreError: there is no such object.
        """
        ...

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return the whole content of one object, which has at most so many bytes.

        Raises:
            FileNotFoundInStoreError: there is no such object.
            CorruptError: it is larger; nothing of it was read.
        """
        ...

    def exists(self, path: str) -> bool:
        """Say whether there is such an object."""
        ...

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder at any depth, in no particular order."""
        ...

    @property
    def lists_in_order(self) -> bool:
        """True when the newest manifest is found by the first names of a folder's listing."""
        ...

    def first(self, prefix: str) -> Sequence[Entry] | None:
        """Return the first objects of a folder in the order of their names, found by one request.

        ``None`` when the store lists in no order, and the folder has more than it tells at once.
        """
        ...

    def create(self, path: str) -> WritableFile:
        """Start a new object under a name that nobody else uses."""
        ...

    def put(self, path: str, content: bytes) -> None:
        """Write an object, replacing one that is there; readers see the old or the new bytes."""
        ...

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write a short object that is only a hint: it may be seen half written or get lost.

        The content must not be shorter than that of the object it replaces.
        """
        ...

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write an object that must not be there yet: of many writers exactly one succeeds.

        Raises:
            ExistsError: there is such an object; nothing was written.
            StoreError: it failed; whether the object is there must be found out.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Write an object with the content of another, replacing one that is there.

        Raises:
            FileNotFoundInStoreError: there is no such source.
        """
        ...

    def require_atomic_creation(self) -> None:
        """Make sure that :meth:`put_if_absent` keeps its promise, before a table relies on it.

        Raises:
            UnsupportedError: several writers could succeed.
            StoreError: it could not be found out, or nothing can be written here.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens when it is not there."""
        ...
