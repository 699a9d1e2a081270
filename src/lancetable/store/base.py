"""Protocols of stores and files, byte ranges, and requests in parallel."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from lancetable.errors import CorruptError


class ByteRange(NamedTuple):
    """The bytes ``[start, stop)`` of one file."""

    start: int
    stop: int


def merge_neighbours(
    ranges: Sequence[ByteRange], *, gap: int, most: int | None = None
) -> list[ByteRange]:
    """Return few ranges that cover all given ones, bridging holes of up to ``gap`` bytes.

    A hole is not bridged when that would make a range of more than ``most`` bytes.
    """
    merged: list[ByteRange] = []
    for wanted in sorted(ranges):
        last = merged[-1] if merged else None
        if last is None or not _belongs(last, wanted, gap, most):
            merged.append(wanted)
        else:
            merged[-1] = ByteRange(last.start, max(last.stop, wanted.stop))
    return merged


def _belongs(last: ByteRange, wanted: ByteRange, gap: int, most: int | None) -> bool:
    if wanted.start <= last.stop:
        return True
    if wanted.start > last.stop + gap:
        return False
    return most is None or wanted.stop - last.start <= most


def divide(range_: ByteRange, most: int) -> list[ByteRange]:
    """Cut a range into equal pieces of at most ``most`` bytes."""
    size = range_.stop - range_.start
    pieces = max(-(-size // most), 1)
    each = -(-size // pieces)
    starts = range(range_.start, range_.stop, max(each, 1)) if size else [range_.start]
    return [ByteRange(start, min(start + each, range_.stop)) for start in starts]


Item = TypeVar("Item")
Result = TypeVar("Result")


def spread(work: Callable[[Item], Result], items: Iterable[Item], width: int) -> list[Result]:
    """Return the results of all items in order, with up to ``width`` of them under way.

    After an error no further item is begun.
    """
    given = list(items)
    if width < 2 or len(given) < 2:
        return list(map(work, given))
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - opening a table waits

    with ThreadPoolExecutor(min(width, len(given)), "lancetable-spread") as pool:
        futures = [pool.submit(work, item) for item in given]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


Bytes: TypeAlias = bytes | bytearray | memoryview
Credentials: TypeAlias = Callable[[], Mapping[str, Any]]
"""Returns fresh credentials; ``credentials.py`` describes the format."""


def too_large(size: int, most: int, place: str) -> CorruptError:
    """Return the error of an object that exceeds its size limit."""
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
    """A new object being written; it exists only once it is closed."""

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end."""
        ...

    def close(self) -> None:
        """Finish the object."""
        ...

    def abort(self) -> None:
        """Abort and remove what was written."""
        ...


class Store(Protocol):
    """Objects below one root, named by relative paths with ``/`` between the parts."""

    @property
    def root(self) -> str:
        """The root as the user would write it; used in messages."""
        ...

    @property
    def width(self) -> int:
        """Useful number of concurrent requests: 1 where bytes are local."""
        ...

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Open one object; a known ``size`` may save a request.

        Raises:
            FileNotFoundInStoreError: there is no such object.
        """
        ...

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return the whole content of one object of at most ``most`` bytes.

        Raises:
            FileNotFoundInStoreError: there is no such object.
            CorruptError: it is larger; nothing of it was read.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether the object exists."""
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

        ``None`` when the store lists in no order and the folder has more than one page.
        """
        ...

    def create(self, path: str) -> WritableFile:
        """Start a new object under a name that nobody else uses."""
        ...

    def put(self, path: str, content: bytes) -> None:
        """Write or replace an object; readers see either the old or the new bytes."""
        ...

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write a short object that is only a hint: it may be lost, or be read when half written.

        The content must not be shorter than that of the object it replaces.
        """
        ...

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write an object that must not exist yet: of many writers exactly one succeeds.

        Raises:
            ExistsError: there is such an object; nothing was written.
            StoreError: it failed; the caller must check whether the object exists.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing an existing target.

        Raises:
            FileNotFoundInStoreError: there is no such source.
        """
        ...

    def require_atomic_creation(self) -> None:
        """Verify that :meth:`put_if_absent` is atomic, before a table relies on it.

        Raises:
            UnsupportedError: several writers could succeed.
            StoreError: the check failed, or the store is not writable.
        """
        ...

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        ...
