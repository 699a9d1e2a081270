"""Locate a table by its address, and choose how its versions are made.

``s3+ddb://bucket/folder?ddbTableName=NAME`` is a table in S3 whose versions are recorded in a
DynamoDB table.

A lock is for stores that cannot create an object atomically. It is provided by the user: given a
version, it returns a context manager that admits one writer at a time, on all machines. All writers
of the table must use the same lock.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from lancetable.commit.location.external import version_of
from lancetable.errors import ExistsError, InputError, StoreError
from lancetable.store import Credentials, Durability, Store, TableLocation
from lancetable.store.access import access_from
from lancetable.store.wrap import WrappedStore

if TYPE_CHECKING:
    from lancetable.store.manifests import ManifestStore


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
            from lancetable.commit.options import LOG  # loads logging

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


DYNAMODB = "s3+ddb://"
TABLE_NAME = "ddbTableName"


def locate(  # noqa: PLR0913 - each has a default
    uri: str,
    options: Mapping[str, str] | None = None,
    *,
    durability: Durability = Durability.OS,
    credentials: Credentials | None = None,
    manifest_store: "ManifestStore | None" = None,
    commit_lock: "CommitLock | None" = None,
    allow: Iterable[str] | None = None,
) -> TableLocation:
    """Return the location of a table.

    Raises:
        InputError: the address is incomplete, or both manifest_store and commit_lock are given.
    """
    settings = dict(options or {})
    if manifest_store is not None and commit_lock is not None:
        raise InputError("give only one of manifest_store and commit_lock")
    if uri.startswith(DYNAMODB):
        if manifest_store is not None or commit_lock is not None:
            raise InputError(
                f"{uri}: the address names the manifest store; give no other and no lock"
            )
        uri, manifest_store = _dynamodb(uri, settings, credentials)
    named: tuple[str, ...] = ()
    if settings or allow:
        named = access_from(settings, allow).allowed
    plain = TableLocation(uri, settings, durability, credentials, named)
    # Imported lazily, as most tables need neither.
    if manifest_store is not None:
        from lancetable.commit.location.external import ExternalLocation  # noqa: PLC0415

        return ExternalLocation(plain, manifest_store)
    if commit_lock is not None:
        return LockedLocation(plain, commit_lock)
    return plain


def _dynamodb(
    uri: str, options: Mapping[str, str], credentials: Credentials | None
) -> "tuple[str, ManifestStore]":
    # Imported lazily: an optional dependency.
    from urllib.parse import parse_qs  # noqa: PLC0415

    from lancetable.store.dynamodb import DynamoManifests  # noqa: PLC0415

    address, _, query = uri.partition("?")
    named = parse_qs(query)
    if list(named) != [TABLE_NAME] or len(named[TABLE_NAME]) != 1:
        raise InputError(
            f"{uri}: write {DYNAMODB}bucket/folder?{TABLE_NAME}=NAME with the name of the "
            "DynamoDB table"
        )
    plain = address.removeprefix(DYNAMODB)
    return f"s3://{plain}", DynamoManifests(named[TABLE_NAME][0], options, credentials)
