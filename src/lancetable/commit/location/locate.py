"""Locate a table by its address, and choose how its versions are made.

``s3+ddb://bucket/folder?ddbTableName=NAME`` is a table in S3 whose versions are recorded in a
DynamoDB table.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.store import Credentials, Durability, TableLocation
from lancetable.store.access import access_from

if TYPE_CHECKING:
    from lancetable.commit.location.external import CommitLock
    from lancetable.store.manifests import ManifestStore

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
        from lancetable.commit.location.external import LockedLocation  # noqa: PLC0415

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
