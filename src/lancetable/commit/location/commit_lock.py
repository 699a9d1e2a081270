"""Make versions under a lock, for stores that cannot create an object atomically.

The lock is provided by the user: given a version, it returns a context manager that admits one
writer at a time, on all machines. All writers of the table must use the same lock.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from lancetable.commit.location.external import version_of
from lancetable.commit.loop.rounds import LOG
from lancetable.errors import ExistsError, StoreError
from lancetable.store import Store, TableLocation
from lancetable.store.wrap import WrappedStore

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
