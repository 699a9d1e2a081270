"""How are versions made where only a lock keeps writers apart: the format's last resort.

The lock is a function of the user: given a version, it returns a context manager that lets one
writer in at a time, on all machines. All writers of the table must use the same lock.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

from lancetable.commit.external import version_of
from lancetable.errors import ExistsError
from lancetable.store import Store, TableLocation
from lancetable.store.wrap import WrappedStore

CommitLock: TypeAlias = Callable[[int], AbstractContextManager[object]]


class LockedStore(WrappedStore):
    """A store whose manifests are created under a lock."""

    def __init__(self, inner: Store, lock: CommitLock) -> None:
        super().__init__(inner)
        self._lock = lock

    def put_if_absent(self, path: str, content: bytes) -> None:
        """Look whether a version is there, and make it, while nobody else may."""
        version = version_of(path)
        if version is None:
            self.inner.put_if_absent(path, content)
            return
        with self._lock(version):
            if self.inner.exists(path):
                raise ExistsError(f"{self.root}/{path}: there is such an object already")
            self.inner.put(path, content)

    def require_atomic_creation(self) -> None:
        """Return quietly: the lock decides."""


class LockedLocation(TableLocation):
    """A table whose versions are made under a lock."""

    def __init__(self, place: TableLocation, lock: CommitLock) -> None:
        super().__init__(place.uri, place.options, place.durability, place.credentials)
        self.lock = lock

    def open(self) -> Store:
        """Return the store of this folder, its manifests created under the lock."""
        return LockedStore(super().open(), self.lock)
