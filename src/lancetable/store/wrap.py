"""A store that wraps another one, to change what happens at each call."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from lancetable.store.base import ByteRange, Bytes, Entry, ReadableFile, Store, WritableFile

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: object) -> object:
        """Replace the decorator that typing has only from Python 3.12 on."""
        return method


_T = TypeVar("_T")


class WrappedStore:
    """Passes every call on; a subclass decides in :meth:`call` what happens around it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    @property
    def root(self) -> str:
        """The root of the wrapped store."""
        return self.inner.root

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        """Run one call of the wrapped store; ``verb`` is the name of the method."""
        return action()

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Open an object; reading its ranges counts as calls of its own."""
        file = self.call("open", path, lambda: self.inner.open(path, size=size))
        return _WrappedReadable(self, path, file)

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return an object."""
        return self.call("read", path, lambda: self.inner.read(path, most=most))

    def exists(self, path: str) -> bool:
        """Return whether the object exists."""
        return self.call("exists", path, lambda: self.inner.exists(path))

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        return iter(self.call("list", prefix, lambda: [*self.inner.list(prefix)]))

    @property
    def width(self) -> int:
        """The value of the wrapped store."""
        return self.inner.width

    @property
    def lists_in_order(self) -> bool:
        """The value of the wrapped store."""
        return self.inner.lists_in_order

    def first(self, prefix: str) -> Sequence[Entry] | None:
        """Return the first objects of a folder."""
        return self.call("first", prefix, lambda: self.inner.first(prefix))

    def create(self, path: str) -> WritableFile:
        """Start an object; writing and closing it count as calls of their own."""
        file = self.call("create", path, lambda: self.inner.create(path))
        return _WrappedWritable(self, path, file)

    def put(self, path: str, content: bytes) -> None:
        """Write an object."""
        self.call("put", path, lambda: self.inner.put(path, content))

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write a hint."""
        self.call("put_loosely", path, lambda: self.inner.put_loosely(path, content))

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write an object that must not exist yet."""
        self.call("put_if_absent", path, lambda: self.inner.put_if_absent(path, content))

    def copy(self, source: str, target: str) -> None:
        """Copy an object."""
        self.call("copy", source, lambda: self.inner.copy(source, target))

    def require_atomic_creation(self) -> None:
        """Delegate to the wrapped store."""
        self.inner.require_atomic_creation()

    def delete(self, path: str) -> None:
        """Remove an object."""
        self.call("delete", path, lambda: self.inner.delete(path))


class _WrappedReadable:
    def __init__(self, store: WrappedStore, path: str, file: ReadableFile) -> None:
        self._store = store
        self._path = path
        self._file = file
        self.inner: ReadableFile = getattr(file, "inner", file)

    @property
    def size(self) -> int:
        return self._file.size

    @property
    def is_mapped(self) -> bool:
        return self._file.is_mapped

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        return self._store.call("read_ranges", self._path, lambda: self._file.read_ranges(ranges))


class _WrappedWritable:
    def __init__(self, store: WrappedStore, path: str, file: WritableFile) -> None:
        self._store = store
        self._path = path
        self._file = file

    def write(self, parts: Sequence[Bytes]) -> None:
        self._store.call("write", self._path, lambda: self._file.write(parts))

    def close(self) -> None:
        self._store.call("close", self._path, self._file.close)

    def abort(self) -> None:
        self._file.abort()
