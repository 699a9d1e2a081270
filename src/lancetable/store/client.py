"""Clients of object stores: one per bucket and settings, shared by all tables in a process.

A client keeps its connections open, so that a table that is opened again does not begin with
handshakes. The threads that serve clients do not survive a fork, so a process that was forked after
the first request is told so instead of waiting forever.
"""

import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeAlias

from lancetable.errors import InputError, UnsupportedError
from lancetable.store.address import Address
from lancetable.store.base import Credentials
from lancetable.store.credentials import Asked, named_provider
from lancetable.store.settings import Service, Settings, settle

Client: TypeAlias = Any
"""A store of obstore; its classes have no common type."""

_FIRST_PAUSE = timedelta(milliseconds=100)
_LONGEST_PAUSE = timedelta(seconds=15)
_LIKE_HTTP = ("endpoint", "base_url", "endpoint_url_s3")

_ENDPOINTS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_STORAGE_ENDPOINT")
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
"""How the names of variables begin that clients read."""

_clients: dict[object, tuple[Client, Settings]] = {}
_lock = threading.Lock()
_owner: int | None = None


def client_of(
    address: Address, options: Mapping[str, str], credentials: Credentials | None
) -> tuple[Client, Settings]:
    """Return the client of a bucket and the settings it was made with.

    Raises:
        InputError: a setting is not known or has a value that cannot be.
    """
    check_process()
    # A web server is one place whatever the folder, and so is a bucket.
    given = (frozenset(options.items()), credentials, _environment())
    key = (address[:2], address.account, given)
    with _lock:
        found = _clients.get(key)
        if found is None:
            settings = settle(address.service, options)
            found = _clients[key] = (_made(address, settings, credentials), settings)
    return found


def check_process() -> None:
    """Return quietly in the process that made the first request, which a fork of it is not.

    Raises:
        UnsupportedError: this process was forked from one that had used an object store.
    """
    global _owner  # noqa: PLW0603 - one process, one owner
    if _owner is None:
        _owner = os.getpid()
    elif _owner != os.getpid():
        raise UnsupportedError(
            "this process was forked from one that had used an object store, and clients do not "
            "survive that; start processes by 'spawn', or fork before the first request"
        )


def _environment() -> frozenset[tuple[str, str]]:
    """Return the part of the environment that clients read; another one needs another client."""
    return frozenset(item for item in os.environ.items() if item[0].startswith(_VARIABLES))


def _made(address: Address, settings: Settings, credentials: Credentials | None) -> Client:
    from obstore.exceptions import BaseError  # noqa: PLC0415 - only those with object stores pay
    from obstore.store import (  # noqa: PLC0415
        AzureStore,
        GCSStore,
        HTTPStore,
        MemoryStore,
        S3Store,
    )

    service, bucket, _, account = address
    if service is Service.MEMORY:
        return MemoryStore()
    config = {_full(service, name): value for name, value in settings.config.items()}
    if account:
        config.setdefault("account_name", account)
    if service is Service.S3:
        # Objects are removed one by one, and not every service knows the request for many.
        config.setdefault("disable_bulk_delete", "true")
    limits = settings.limits
    client = {"timeout": f"{round(limits.request_timeout * 1000)}ms", **settings.client}
    endpoints = [config.get(name, "") for name in _LIKE_HTTP]
    endpoints += [os.environ.get(name, "") for name in _ENDPOINTS]
    is_plain = any(endpoint.startswith("http:") for endpoint in endpoints)
    if is_plain or bucket.startswith("http:") or config.get("use_emulator") == "true":
        client.setdefault("allow_http", "true")
    asked: dict[str, Any] = {
        "client_options": client,
        "retry_config": {
            "max_retries": limits.max_retries,
            "retry_timeout": timedelta(seconds=limits.retry_timeout),
            "backoff": {"init_backoff": _FIRST_PAUSE, "max_backoff": _LONGEST_PAUSE, "base": 2},
        },
    }
    if credentials is None and settings.provider is not None:
        credentials = named_provider(settings.provider)
    if credentials is not None:
        asked["credential_provider"] = Asked(credentials, service)
    try:
        if service is Service.HTTP:
            return HTTPStore.from_url(bucket, **asked)
        kinds = {Service.S3: S3Store, Service.GCS: GCSStore, Service.AZURE: AzureStore}
        return kinds[service](bucket, config=config, **asked)
    except (BaseError, ValueError, TypeError) as cause:
        text = str(cause).partition("\n\nDebug source")[0]
        raise InputError(f"{bucket}: the storage options cannot be used: {text}") from cause


def _full(service: Service, name: str) -> str:
    return f"aws_{name}" if service is Service.S3 and name == "endpoint_url_s3" else name
