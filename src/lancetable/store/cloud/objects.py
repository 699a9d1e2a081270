"""Object stores: S3, Google, Azure, web servers and the memory of this process, through obstore.

Creating an object that must not exist yet is one conditional request, which the service decides.
Such a request is repeated after an attempt without an answer: when the name is then taken, its
content shows whether the first attempt succeeded.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from lancetable.errors import (
    ExistsError,
    FileNotFoundInStoreError,
    LanceTableError,
    StoreError,
    UnsupportedError,
)
from lancetable.store.base import (
    ByteRange,
    Credentials,
    Entry,
    ReadableFile,
    WritableFile,
    too_large,
)
from lancetable.store.cloud.address import Address, parse_address, written_address
from lancetable.store.cloud.cache import CachedFile, Kept, cache_of, is_cacheable
from lancetable.store.cloud.client import Client, Connection, connection_of
from lancetable.store.cloud.errors import Verb
from lancetable.store.cloud.fetch import Request, fetch_ranges, repeated
from lancetable.store.cloud.settings import KiB, Limits, Service
from lancetable.store.cloud.upload import Upload, put_whole

PAGE = 1000
"""Number of names that one request of a listing returns."""
WIDTH = 16
"""Enough to hide the time an answer takes; each of them may be divided further."""
WHOLE_BELOW = 1024 * KiB
"""Files below this are fetched whole with the first of their ranges."""

_PROBES = "_transactions/.probe-"
"""Name prefix of the objects that test conditional requests."""

_Page: TypeAlias = Sequence[Mapping[str, Any]]

KEPT = Kept()
_proven: set[object] = set()
_proven_lock = threading.Lock()


class ObjectStore:
    """Objects below one folder of a bucket."""

    __slots__ = (
        "_address",
        "_client",
        "_connection",
        "_credentials",
        "_is_express",
        "_limits",
        "_options",
        "_prefix",
        "_tags",
        "_uri",
        "root",
    )

    def __init__(
        self, uri: str, options: Mapping[str, str], credentials: Credentials | None = None
    ) -> None:
        self._uri = uri
        self._address: Address = parse_address(uri)
        self.root = written_address(uri, self._address)
        self._options = dict(options)
        self._credentials = credentials
        self._connection: Connection = connection_of(self._address, self._options, credentials)
        self._client: Client = self._connection.client
        settings = self._connection.settings
        self._limits: Limits = settings.limits
        self._is_express = settings.config.get("s3_express", "").lower() == "true"
        self._prefix = f"{self._address.folder}/" if self._address.folder else ""
        self._tags: dict[str, str] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # Clients hold connections; each process has its own.
        return ObjectStore, (self._uri, self._options, self._credentials)

    @property
    def width(self) -> int:
        """Useful number of concurrent requests of one reader."""
        return min(WIDTH, self._limits.max_requests)

    @property
    def folder(self) -> str:
        """The path of the root inside its bucket."""
        return self._address.folder

    def open(self, path: str, *, size: int | None = None) -> ReadableFile:
        """Open an object; with a known size no request is sent before the first range."""
        if not size:
            size = self._size(path)
        key = self._prefix + path
        file = ObjectFile(self._client, key, size, self._limits, self._shown(path))
        folder = self._limits.cache_dir
        if not folder or not is_cacheable(path):
            return file
        identity = f"{self._address.service.value}:{self._address.account}:{self._address.bucket}"
        return CachedFile(file, cache_of(folder, self._limits.cache_bytes), f"{identity}/{key}")

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return the whole object in one request, or in none when it was read before."""
        tag = self._tags.get(path)
        known = KEPT.find(self._identity(path), tag) if tag else None
        if known is not None:
            return known
        tag, content = repeated(partial(self._get, path, most), self._shown(path), self._limits)
        if path in self._tags:
            KEPT.keep(self._identity(path), tag, content)
        return content

    def _get(self, path: str, most: int | None = None) -> tuple[str | None, bytes]:
        found = self._client.get(self._prefix + path)
        if most is not None and found.meta["size"] > most:
            raise too_large(found.meta["size"], most, self._shown(path))
        return found.meta["e_tag"], bytes(found.bytes())

    def _identity(self, path: str) -> object:
        return self._connection.number, self._prefix + path

    def exists(self, path: str) -> bool:
        """Return whether the object exists."""
        try:
            self._size(path)
        except FileNotFoundInStoreError:
            return False
        return True

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder, in order where the service has one."""
        pages = _Pages(self, prefix)
        place = self._shown(prefix)
        while page := repeated(pages.next, place, self._limits, Verb.LIST):
            yield from self._entries(page)

    @property
    def lists_in_order(self) -> bool:
        """True except for web servers, which do not list, and S3 Express, which has no order."""
        return self._address.service is not Service.HTTP and not self._is_express

    def first(self, prefix: str) -> Sequence[Entry] | None:
        """Return the first page of a folder's listing, which is all of it or ordered by name."""
        pages = _Pages(self, prefix)
        page = repeated(pages.next, self._shown(prefix), self._limits, Verb.LIST)
        self._tags = {
            one["path"].removeprefix(self._prefix): one["e_tag"] for one in page if one["e_tag"]
        }
        entries = list(self._entries(page))
        names = [entry.path for entry in entries]
        return entries if len(names) < PAGE or names == sorted(names) else None

    def create(self, path: str) -> WritableFile:
        """Start a new object."""
        self._check_writable()
        return Upload(self._connection, self._prefix + path, self._shown(path))

    def put(self, path: str, content: bytes) -> None:
        """Write an object."""
        self._check_writable()
        put_whole(self._connection, self._prefix + path, content, self._shown(path))

    def put_loosely(self, path: str, content: bytes) -> None:
        """Write an object; there is no cheaper way."""
        self.put(path, content)

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Write an object that must not exist yet, by a condition the service checks."""
        self._check_writable()
        key = self._prefix + path
        client = self._connection.client_for(len(content))
        request = Request(self._shown(path), self._limits, Verb.CREATE)
        while True:
            try:
                made = request.run(
                    lambda: client.put(key, content, mode="create", use_multipart=False)
                )
            except ExistsError as taken:
                found = self._found(path, request, taken)
                if found == content:
                    return
                if found is not None:
                    raise
                # The service reported a conflict, but the object does not exist, or no longer.
                if not request.wait():
                    raise StoreError(
                        f"{self._shown(path)}: the store keeps reporting a conflict, although "
                        "there is no such object; try again later",
                        is_certain=not request.is_unanswered,
                    ) from None
            else:
                KEPT.keep(self._identity(path), made["e_tag"], content)
                return

    def _found(self, path: str, request: Request, taken: ExistsError) -> bytes | None:
        """Return the object that made a conditional request fail; ``None`` if there is none.

        Raises:
            ExistsError: it cannot be read, but this request did not write it.
            StoreError: it cannot be read, and may have been written by an attempt of this request.
        """
        try:
            return repeated(partial(self._get, path), self._shown(path), self._limits)[1]
        except FileNotFoundInStoreError:
            return None
        except LanceTableError as cause:
            if not request.is_unanswered:
                raise taken from None
            raise StoreError(
                f"{self._shown(path)}: an attempt to create it was not answered, and what is there "
                f"now cannot be read ({cause}); check whether it exists before trying again"
            ) from None

    def copy(self, source: str, target: str) -> None:
        """Copy an object inside the service."""
        self._check_writable()
        repeated(
            lambda: self._connection.slow.copy(self._prefix + source, self._prefix + target),
            self._shown(source),
            self._limits,
            Verb.COPY,
        )

    def delete(self, path: str) -> None:
        """Remove an object."""
        self._check_writable()
        try:
            repeated(
                lambda: self._client.delete(self._prefix + path),
                self._shown(path),
                self._limits,
                Verb.DELETE,
            )
        except FileNotFoundInStoreError:
            return

    def require_atomic_creation(self) -> None:
        """Test whether the service honours conditional requests.

        S3 is always tested, as many services imitate it; others when their endpoint was named. The
        test runs once per bucket and process. Its object lies where a cleanup removes files that no
        version refers to, so it may stay when the caller is not allowed to delete.
        """
        self._check_writable()
        is_public = not self._connection.endpoint
        if self._connection.is_memory or (is_public and self._address.service is not Service.S3):
            return
        key = (*self._address[:2], self._address.account, self._connection.endpoint)
        with _proven_lock:
            if key in _proven:
                return
        path = f"{_PROBES}{uuid4().hex}"
        self.put_if_absent(path, b"1")
        try:
            self.put_if_absent(path, b"2")
        except ExistsError:
            with _proven_lock:
                _proven.add(key)
            return
        finally:
            with contextlib.suppress(StoreError):
                self.delete(path)
        raise UnsupportedError(
            f"{self.root}: this endpoint ignores 'If-None-Match', so two writers could overwrite "
            "each other's versions; use an external manifest store (s3+ddb://… or manifest_store=)"
            " or a commit_lock"
        )

    def _size(self, path: str) -> int:
        key = self._prefix + path
        found = repeated(lambda: self._client.head(key), self._shown(path), self._limits)
        return int(found["size"])

    def listing(self, prefix: str, after: str | None = None) -> Iterator[_Page]:
        """Begin to list a folder, after a key when one is given."""
        if self._address.service is Service.HTTP:
            raise UnsupportedError(
                f"{self._shown(prefix)}: a web server cannot be listed; name a version, or "
                "copy the file _versions/latest_version_hint.json along with the table"
            )
        folder = f"{self._prefix}{prefix.strip('/')}".strip("/")
        found: Iterator[_Page] = iter(
            self._client.list(folder or None, offset=after, chunk_size=PAGE)
        )
        return found

    def _entries(self, page: _Page) -> Iterator[Entry]:
        for one in page:
            path = one["path"].removeprefix(self._prefix)
            yield Entry(path, one["size"], one["last_modified"].timestamp())

    def _check_writable(self) -> None:
        if self._address.service is Service.HTTP:
            raise UnsupportedError(
                f"{self.root}: tables on a web server can be read only; copy the table to write"
            )

    def _shown(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root


class _Pages:
    """A listing that resumes after a failure, so that it is never silently incomplete."""

    __slots__ = ("_last", "_pages", "_prefix", "_store")

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._pages: Iterator[_Page] | None = None
        self._last: str | None = None

    def next(self) -> _Page:
        """Return the next objects, none at the end."""
        pages, self._pages = self._pages, None
        if pages is None:
            pages = self._store.listing(self._prefix, self._last)
        page = next(pages, ())
        self._pages = pages
        if page:
            self._last = page[-1]["path"]
        return page


class ObjectFile:
    """One object, read in ranges; its last bytes are cached once fetched."""

    __slots__ = ("_client", "_end", "_key", "_limits", "_place", "size")

    is_mapped = False

    def __init__(self, client: Client, key: str, size: int, limits: Limits, place: str) -> None:
        self._client = client
        self._key = key
        self._limits = limits
        self._place = place
        self.size = size
        self._end = _End(size, memoryview(b""))

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return the bytes of each range, fetching those that are not cached together."""
        end = self._end
        if self.size <= WHOLE_BELOW and end.start:
            end = self._keep(ByteRange(0, self.size))
        elif len(ranges) == 1 and ranges[0].stop == self.size and _is_short(ranges[0]):
            end = self._keep(ranges[0])
        missing = [one for one in ranges if one.start < end.start]
        fetched = iter(self._fetch(missing) if missing else ())
        return [next(fetched) if one.start < end.start else end.cut(one) for one in ranges]

    def _fetch(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        return fetch_ranges(self._client, self._key, ranges, self._limits, self._place)

    def _keep(self, wanted: ByteRange) -> "_End":
        end = self._end
        if wanted.start < end.start:
            # Assigned at once: other threads see the old end or the new one.
            self._end = end = _End(wanted.start, self._fetch([wanted])[0])
        return end


class _End(NamedTuple):
    """The last bytes of a file."""

    start: int
    content: memoryview

    def cut(self, wanted: ByteRange) -> memoryview:
        return self.content[wanted.start - self.start : wanted.stop - self.start]


def _is_short(wanted: ByteRange) -> bool:
    return wanted.stop - wanted.start <= WHOLE_BELOW
