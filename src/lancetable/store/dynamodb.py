"""An external manifest store in DynamoDB, shared with upstream's writers.

=============  ====  =========================================================
attribute      type  content
=============  ====  =========================================================
``base_uri``   S     hash key: the folder of the table inside its bucket
``version``    N     range key
``path``       S     the manifest inside the bucket, staged or final
``committer``  S     which library wrote the entry
``size``       N     bytes of the manifest
=============  ====  =========================================================

The bucket is not part of the key: tables in equally named folders of two buckets need two DynamoDB
tables.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lancetable.errors import ExistsError, InputError, StoreError
from lancetable.store.base import Credentials
from lancetable.store.cloud.errors import quoted
from lancetable.store.cloud.settings import PROVIDER, Service, settle
from lancetable.store.manifests import ManifestEntry

COMMITTER = "lancetable"
_ABSENT = "attribute_not_exists(base_uri) AND attribute_not_exists(version)"
_PRESENT = "attribute_exists(base_uri) AND attribute_exists(version)"
_KEYS = [("base_uri", "HASH"), ("version", "RANGE")]

_RETRIES = 10
"""About a minute with the backoff of boto3."""
MOST_CLIENTS = 64

_clients: OrderedDict[object, Any] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class DynamoManifests:
    """Entries in one DynamoDB table; ``options`` are the storage options of the bucket."""

    table: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: Credentials | None = field(default=None, repr=False)

    def get(self, base: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version, read consistently."""
        found = self._call("get_item", Key=_key(base, version), ConsistentRead=True)
        return _entry(found["Item"]) if "Item" in found else None

    def latest(self, base: str) -> ManifestEntry | None:
        """Return the entry of the largest version, read consistently."""
        found = self._call(
            "query",
            KeyConditionExpression="base_uri = :base",
            ExpressionAttributeValues={":base": {"S": base}},
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )
        return _entry(found["Items"][0]) if found["Items"] else None

    def put_if_absent(self, base: str, entry: ManifestEntry) -> None:
        """Record a version; the condition lets one writer do so."""
        if not self._put(base, entry, _ABSENT):
            raise ExistsError(f"{base}: version {entry.version} is already recorded")

    def put_if_present(self, base: str, entry: ManifestEntry) -> None:
        """Record another path for a version."""
        self._put(base, entry, _PRESENT)

    def delete(self, base: str) -> None:
        """Forget all versions of a table."""
        while (entry := self.latest(base)) is not None:
            self._call("delete_item", Key=_key(base, entry.version))

    def _put(self, base: str, entry: ManifestEntry, condition: str) -> bool:
        item = {
            **_key(base, entry.version),
            "path": {"S": entry.path},
            "committer": {"S": COMMITTER},
        }
        if entry.size is not None:
            item["size"] = {"N": str(entry.size)}
        try:
            self._call("put_item", Item=item, ConditionExpression=condition)
        except _ConditionError:
            return False
        return True

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        from botocore.exceptions import (  # noqa: PLC0415 - an extra
            BotoCoreError,
            ClientError,
            NoCredentialsError,
        )

        client = self._client()
        try:
            answer: dict[str, Any] = getattr(client, method)(TableName=self.table, **arguments)
        except ClientError as cause:
            code = cause.response["Error"]["Code"]
            if code == "ConditionalCheckFailedException":
                raise _ConditionError from None
            raise self._refusal(cause, code) from cause
        except NoCredentialsError as cause:
            raise StoreError(
                f"DynamoDB table {self.table}: no credentials were found; set aws_access_key_id "
                "and aws_secret_access_key in storage_options",
                is_certain=True,
            ) from cause
        except BotoCoreError as cause:
            raise StoreError(f"DynamoDB table {self.table}: {quoted(str(cause))}") from None
        return answer

    def _refusal(self, cause: Any, code: str) -> StoreError:  # noqa: ANN401
        answer = cause.response.get("ResponseMetadata", {})
        status = answer.get("HTTPStatusCode", 500)
        # An earlier attempt that got no answer may have been carried out.
        is_certain = 400 <= status < 500 and not answer.get("RetryAttempts", 0)
        if code == "ResourceNotFoundException":
            text = (
                "there is no such table; create it with the keys base_uri (S, hash) and version "
                "(N, range)"
            )
        else:
            text = f"{quoted(cause.response['Error'].get('Message', code))} ({quoted(code)})"
        return StoreError(f"DynamoDB table {self.table}: {text}", is_certain=is_certain)

    def _client(self) -> Any:  # noqa: ANN401
        key = (os.getpid(), self.table, frozenset(self.options.items()), self.credentials)
        with _lock:
            client = _clients.get(key)
            if client is None:
                client = _made(self.options, self.credentials)
                self._check_keys(client)
                _clients[key] = client
                while len(_clients) > MOST_CLIENTS:
                    _clients.popitem(last=False)
            _clients.move_to_end(key)
        return client

    def _check_keys(self, client: Any) -> None:  # noqa: ANN401
        from botocore.exceptions import ClientError  # noqa: PLC0415

        try:
            described = client.describe_table(TableName=self.table)["Table"]
        except ClientError as cause:
            raise self._refusal(cause, cause.response["Error"]["Code"]) from cause
        found = [(one["AttributeName"], one["KeyType"]) for one in described["KeySchema"]]
        if sorted(found) != _KEYS:
            raise InputError(
                f"DynamoDB table {self.table} has the keys {found}; a manifest store needs "
                "base_uri (S, hash) and version (N, range)"
            )


class _ConditionError(Exception):
    """The condition of a request did not hold."""


def _key(base: str, version: int) -> dict[str, dict[str, str]]:
    return {"base_uri": {"S": base}, "version": {"N": str(version)}}


def _entry(item: Mapping[str, Any]) -> ManifestEntry:
    size = item.get("size", {}).get("N")
    return ManifestEntry(int(item["version"]["N"]), item["path"]["S"], int(size) if size else None)


def _made(options: Mapping[str, str], credentials: Credentials | None) -> Any:  # noqa: ANN401
    try:
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415
    except ImportError as cause:
        raise InputError(
            "a table with a DynamoDB manifest store needs boto3; install lancetable[dynamodb]"
        ) from cause
    named = {name.lower(): value for name, value in options.items()}
    settings = settle(Service.S3, options)
    said = settings.config
    retries = settings.limits.max_retries
    if retries is None:
        retries = _RETRIES
    session = boto3.Session()
    if credentials is None and PROVIDER in named:
        from lancetable.store.cloud.credentials import named_provider  # noqa: PLC0415

        credentials = named_provider(named[PROVIDER])
    keys: dict[str, str | None] = {}
    if credentials is not None:
        session = _refreshing(credentials)
    elif "access_key_id" in said:
        keys = {
            "aws_access_key_id": said["access_key_id"],
            "aws_secret_access_key": said.get("secret_access_key"),
            "aws_session_token": said.get("session_token"),
        }
    return session.client(
        "dynamodb",
        endpoint_url=named.get("dynamodb_endpoint")
        or named.get("dynamodb_endpoint_url")
        or os.environ.get("DYNAMODB_ENDPOINT"),
        region_name=said.get("region") or said.get("default_region"),
        config=Config(
            retries={"mode": "standard", "max_attempts": retries + 1},
            connect_timeout=settings.limits.connect_timeout,
            read_timeout=settings.limits.read_timeout,
        ),
        **keys,
    )


def _refreshing(credentials: Credentials) -> Any:  # noqa: ANN401
    """Return a session that calls the provider again before its credentials expire."""
    import boto3  # noqa: PLC0415
    from botocore.credentials import RefreshableCredentials  # noqa: PLC0415
    from botocore.session import get_session  # noqa: PLC0415

    from lancetable.store.cloud.credentials import Asked  # noqa: PLC0415

    asked = Asked(credentials, Service.S3)

    def fetch() -> dict[str, Any]:
        given: dict[str, Any] = dict(asked())
        expires = given["expires_at"]
        return {
            "access_key": given["access_key_id"],
            "secret_key": given["secret_access_key"],
            "token": given["token"],
            "expiry_time": expires.isoformat() if expires else "9999-01-01T00:00:00+00:00",
        }

    inner = get_session()
    inner._credentials = RefreshableCredentials.create_from_metadata(  # noqa: SLF001 - its only way
        metadata=fetch(), refresh_using=fetch, method="lancetable"
    )
    return boto3.Session(botocore_session=inner)
