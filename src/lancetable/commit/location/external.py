"""Make versions where an external manifest store decides which writer was first.

1. The manifest is put under a staged name with a random ending, ``{name}.manifest-{uuid}``.
2. The external store records it for the version, unless another is recorded: this is the commit.
3. The staged manifest is copied to its final name.
4. The external store records the final name, and the staged manifest is removed.

A reader that finds a version recorded as staged does steps 3 and 4 first, so that the table without
its external store is at most one version behind.

A lock is for stores that cannot create an object atomically. It is provided by the user: given a
version, it returns a context manager that admits one writer at a time, on all machines. All writers
of the table must use the same lock.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias, TypeVar
from uuid import uuid4

from lancetable.commit.options import LOG
from lancetable.errors import (
    CorruptError,
    ExistsError,
    FileNotFoundInStoreError,
    InputError,
    LanceTableError,
    StoreError,
)
from lancetable.format.manifest.names import (
    SUFFIX,
    VERSIONS,
    Scheme,
    parse_manifest_name,
)
from lancetable.store import Entry, Store, TableLocation
from lancetable.store.manifests import ManifestEntry, ManifestStore
from lancetable.store.wrap import WrappedStore

T = TypeVar("T")


def version_of(path: str) -> int | None:
    """Return the version whose manifest has this path; ``None`` for all other objects."""
    folder, _, name = path.rpartition("/")
    parsed = parse_manifest_name(name) if folder == VERSIONS else None
    return None if parsed is None or parsed.scheme is Scheme.DETACHED else parsed.version


class ExternalStore(WrappedStore):
    """A store whose manifests are recorded in an external store; other objects are unaffected."""

    def __init__(self, inner: Store, manifests: ManifestStore, base: str) -> None:
        super().__init__(inner)
        self._manifests = manifests
        self._base = base

    @property
    def lists_in_order(self) -> bool:
        """True: the external store knows the newest version."""
        return True

    def first(self, prefix: str) -> Sequence[Entry] | None:
        """Return the newest manifest, as the external store knows it."""
        if prefix != VERSIONS:
            return self.inner.first(prefix)
        newest = self._newest()
        return [] if newest is None else [newest]

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder, the newest manifest at its final name."""
        if prefix.strip("/") in {"", VERSIONS}:
            self._newest()
        return self.inner.list(prefix)

    def read(self, path: str, *, most: int | None = None) -> bytes:
        """Return an object; a manifest that is only staged is finished first."""
        return self._finished(path, lambda: self.inner.read(path, most=most))

    def exists(self, path: str) -> bool:
        """Say whether there is such an object; a recorded version is there."""
        return self.inner.exists(path) or self._finish_version(path)

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Make a version in four steps."""
        version = version_of(path)
        if version is None:
            self.inner.put_if_absent(path, content)
            return
        staged = f"{path}-{uuid4()}"
        try:
            self.inner.put(staged, content)
        except StoreError as cause:
            # No reader knows the staged name, so nothing was committed.
            self._discard(staged)
            raise StoreError(str(cause), is_certain=True) from cause
        entry = ManifestEntry(version, self._key(staged), len(content))
        self._record(entry, staged)
        # The version is committed; the next reader completes what fails now.
        with contextlib.suppress(Exception):
            self._finish(entry)

    def require_atomic_creation(self) -> None:
        """Do nothing: the external store decides."""

    def _record(self, entry: ManifestEntry, staged: str) -> None:
        """Record a version; the staged manifest stays as long as the record may name it.

        Raises:
            ExistsError: the version is recorded with another path, which may be the final one of
                this manifest: a reader may have finished it before the answer came.
            StoreError: it failed; ``is_certain`` is true when it was certainly not recorded.
        """
        try:
            self._manifests.put_if_absent(self._base, entry)
        except ExistsError:
            found = self._recorded(entry.version)
            if found is not None and found.path == entry.path:
                return
            if found is not None:
                self._discard(staged)
            raise
        except InputError:
            # The store is not set up correctly.
            self._discard(staged)
            raise
        except Exception as cause:
            if isinstance(cause, StoreError):
                if cause.is_certain:
                    self._discard(staged)
                raise
            # A custom manifest store may raise any error, and may have recorded the version.
            raise StoreError(f"{self.root}: the external manifest store failed: {cause}") from cause

    def _recorded(self, version: int) -> ManifestEntry | None:
        """Return the entry that was recorded first."""
        try:
            return self._manifests.get(self._base, version)
        except Exception as cause:
            raise StoreError(
                f"{self.root}: version {version} is recorded, but the external manifest store "
                f"cannot be read: {cause}"
            ) from cause

    def _key(self, path: str) -> str:
        return f"{self._base}/{path}" if self._base else path

    def _path(self, key: str) -> str:
        start = f"{self._base}/" if self._base else ""
        if not key.startswith(f"{start}{VERSIONS}/"):
            raise CorruptError(
                f"the external manifest store names {key!r}, which is not a manifest of this table",
                path=self.root,
            )
        return key.removeprefix(start)

    def _newest(self) -> Entry | None:
        """Return the newest manifest, finished."""
        recorded = self._manifests.latest(self._base)
        if recorded is not None:
            return self._finish(recorded)
        # The table is older than its external store, or the store cannot be searched.
        known = [
            (version, entry)
            for entry in self.inner.list(VERSIONS)
            if (version := version_of(entry.path)) is not None
        ]
        version, newest = max(known, default=(0, None))
        while (recorded := self._manifests.get(self._base, version + 1)) is not None:
            newest = self._finish(recorded)
            version += 1
        return newest

    def _finish(self, recorded: ManifestEntry) -> Entry:
        """Copy a recorded manifest to its final name, if it is still staged."""
        staged = self._path(recorded.path)
        final = f"{staged.partition(SUFFIX)[0]}{SUFFIX}"
        entry = Entry(final, recorded.size or 0, 0.0)
        if staged == final:
            return entry
        try:
            self.inner.copy(staged, final)
        except FileNotFoundInStoreError:
            # Another reader finished it meanwhile.
            if not self.inner.exists(final):
                raise CorruptError(
                    f"version {recorded.version} is recorded as {staged}, which is missing",
                    path=self.root,
                ) from None
            return entry
        self._manifests.put_if_present(self._base, recorded._replace(path=self._key(final)))
        self._discard(staged)
        return entry

    def _finish_version(self, path: str) -> bool:
        version = version_of(path)
        if version is None:
            return False
        recorded = self._manifests.get(self._base, version)
        if recorded is None:
            return False
        found = self._finish(recorded)
        # A manifest that is recorded under its final name but missing was cleaned away.
        return found.path == path and recorded.path != self._key(path)

    def _finished(self, path: str, action: Callable[[], T]) -> T:
        try:
            return action()
        except FileNotFoundInStoreError:
            if not self._finish_version(path):
                raise
        return action()

    def _discard(self, staged: str) -> None:
        with contextlib.suppress(LanceTableError):
            self.inner.delete(staged)


class ExternalLocation(TableLocation):
    """A table whose versions are recorded in an external manifest store."""

    def __init__(self, place: TableLocation, manifests: ManifestStore) -> None:
        super().__init__(place.uri, place.options, place.durability, place.credentials, place.allow)
        self.manifests = manifests

    def open(self) -> Store:
        """Return the store of this folder, its manifests recorded elsewhere."""
        inner = super().open()
        return ExternalStore(inner, self.manifests, base_of(inner))


def base_of(store: Store) -> str:
    """Return the folder of a store inside its bucket, by which its manifests are recorded."""
    folder = getattr(store, "folder", None)
    return str(folder) if folder is not None else store.root.lstrip("/")


CommitLock: TypeAlias = Callable[[int], AbstractContextManager[object]]


class LockedStore(WrappedStore):
    """A store whose manifests are created under a lock."""

    def __init__(self, inner: Store, lock: CommitLock) -> None:
        super().__init__(inner)
        self._lock = lock

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Make a version under the lock, unless it exists.

        Raises:
            ExistsError: it exists.
            StoreError: it failed; whether the version exists must be found out.
        """
        version = version_of(path)
        if version is None:
            self.inner.put_if_absent(path, content)
            return
        sent = made = False
        try:
            with self._lock(version):
                if not self.inner.exists(path):
                    sent = True
                    self.inner.put(path, content)
                    made = True
        except Exception as cause:
            # The lock may raise any error; only whether the version was written matters.
            if not made:
                place = f"{self.root}/{path}: under the commit lock: "
                is_certain = not sent or (isinstance(cause, StoreError) and cause.is_certain)
                raise StoreError(f"{place}{cause}", is_certain=is_certain) from cause
            LOG.warning("%s/%s was made, and its lock failed: %s", self.root, path, cause)
        if not sent:
            raise ExistsError(f"{self.root}/{path}: the object exists already")
        if not made:
            raise StoreError(
                f"{self.root}/{path}: the commit lock suppressed the error that prevented the write"
            )

    def require_atomic_creation(self) -> None:
        """Do nothing: the lock decides."""


class LockedLocation(TableLocation):
    """A table whose versions are made under a lock."""

    def __init__(self, place: TableLocation, lock: CommitLock) -> None:
        super().__init__(place.uri, place.options, place.durability, place.credentials, place.allow)
        self.lock = lock

    def open(self) -> Store:
        """Return the store of this folder, its manifests created under the lock."""
        return LockedStore(super().open(), self.lock)
