"""Clients of object stores: one set per bucket and settings, shared by all tables in a process.

A client keeps its connections open, so that reopening a table needs no handshakes. The least
recently used clients are dropped when there are many, as with tokens that change every hour. The
threads of the clients do not survive a fork, so a process that was forked after the first request
gets an error instead of waiting forever. An endpoint
that the user names is checked first.
"""

import json
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from lancetable.errors import InputError, UnsupportedError
from lancetable.store.base import Credentials
from lancetable.store.cloud.address import Address
from lancetable.store.cloud.credentials import Asked, named_provider
from lancetable.store.cloud.errors import is_client_error, quoted
from lancetable.store.cloud.settings import MiB, Service, Settings, settle

_ENDPOINT_OPTIONS = {
    Service.S3: ("endpoint", "endpoint_url_s3"),
    Service.GCS: ("base_url",),
    Service.AZURE: ("endpoint",),
}
_ENDPOINT_VARIABLES = {
    Service.S3: ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
    Service.GCS: ("GOOGLE_BASE_URL",),
    Service.AZURE: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_URL = re.compile(
    r"https?://(?:[^/?#\s@]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#\s@:\[\]\\]+)(:\d{1,5})?(/[^?#\s\\]*)?"
)
_EMULATOR = "http://127.0.0.1:10000"


def endpoint_of(service: Service, config: Mapping[str, str]) -> str:
    """Return the endpoint that the user named; empty for the public one of the service."""
    if config.get("use_emulator", "").lower() == "true":
        return _EMULATOR
    for name in _ENDPOINT_OPTIONS.get(service, ()):
        if config.get(name):
            return config[name]
    for name in _ENDPOINT_VARIABLES.get(service, ()):
        if os.environ.get(name):
            return os.environ[name]
    return _google_endpoint(config) if service is Service.GCS else ""


def _google_endpoint(config: Mapping[str, str]) -> str:
    """Return the endpoint in a service account, as used for emulators."""
    text = config.get("service_account_key") or os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY", "")
    file = config.get("service_account") or os.environ.get("GOOGLE_SERVICE_ACCOUNT", "")
    try:
        account = json.loads(text or Path(file).read_text(encoding="utf-8")) if text or file else {}
    except (OSError, ValueError):
        return ""  # the client library reports the error
    found = account.get("gcs_base_url") if isinstance(account, dict) else None
    return found if isinstance(found, str) else ""


def allows_http(address: Address, settings: Settings) -> bool:
    """Return whether the user named an endpoint without encryption."""
    endpoint = endpoint_of(address.service, settings.config)
    return endpoint.startswith("http:") or address.bucket.startswith("http:")


def check_endpoint(address: Address, settings: Settings, endpoint: str) -> None:
    """Check that an endpoint that was named can be used.

    Raises:
        InputError: it is not a valid address, or not one for this bucket.
    """
    if not endpoint:
        return
    found = _URL.fullmatch(endpoint)
    if found is None:
        raise InputError(
            f"the endpoint {quoted(endpoint)!r} is not a valid address; write it with its scheme, "
            "such as https://host or http://localhost:9000"
        )
    if (
        endpoint.startswith("http:")
        and settings.client.get("allow_http", "true").lower() == "false"
    ):
        raise InputError(
            f"the endpoint {quoted(endpoint)!r} is not encrypted and allow_http is false; use "
            "https, or set allow_http=true"
        )
    hosted = settings.config.get("virtual_hosted_style_request", "").lower() == "true"
    if hosted and not found.group(1).lower().startswith(f"{address.bucket.lower()}."):
        raise InputError(
            "with virtual_hosted_style_request=true the endpoint must begin with the bucket, such "
            f"as https://{address.bucket}.host; it is {quoted(endpoint)!r}"
        )


Client: TypeAlias = Any
"""A store of obstore; its classes have no common type."""

MOST_CONNECTIONS = 64
LARGE_BODY = MiB
"""Larger bodies are sent without a timeout for the first byte of the answer."""
_FIRST_PAUSE = timedelta(milliseconds=100)
_LONGEST_PAUSE = timedelta(seconds=5)
_MANY = 1000
"""Retry limit of a client that is bounded by time alone."""
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
"""Prefixes of the environment variables that clients read."""

_connections: "OrderedDict[object, Connection]" = OrderedDict()
_numbers = count()
_lock = threading.Lock()
_making = threading.Lock()
_owner: int | None = None


class Connection:
    """The clients of one bucket.

    ``client`` and ``slow`` send each request once, so that the caller sees the result of every
    attempt. ``slow`` has no timeout for the first byte of an answer, which would include the time
    for sending a large body. ``uploader`` retries requests itself; it sends multipart uploads.
    """

    __slots__ = ("_address", "_credentials", "_made", "client", "endpoint", "number", "settings")

    def __init__(
        self, address: Address, settings: Settings, credentials: Credentials | None
    ) -> None:
        self._address = address
        self._credentials = credentials
        self._made: dict[str, Client] = {}
        self.settings = settings
        self.endpoint = endpoint_of(address.service, settings.config)
        check_endpoint(address, settings, self.endpoint)
        self.client: Client = _made(address, settings, credentials)
        self.number = next(_numbers)
        """Identifies this connection among all of the process, including dropped ones."""

    @property
    def is_memory(self) -> bool:
        """True when the objects are in the memory of this process."""
        return self._address.service is Service.MEMORY

    @property
    def slow(self) -> Client:
        """The client for single requests that take long."""
        return self._lazily("slow", is_slow=True)

    @property
    def uploader(self) -> Client:
        """The client for multipart uploads."""
        return self._lazily("uploader", is_slow=True, repeats=True)

    def client_for(self, body: int) -> Client:
        """Return the client that sends a body of this size."""
        return self.client if body <= LARGE_BODY else self.slow

    def _lazily(self, name: str, *, is_slow: bool, repeats: bool = False) -> Client:
        if self.is_memory:
            return self.client
        with _making:
            if name not in self._made:
                self._made[name] = _made(
                    self._address,
                    self.settings,
                    self._credentials,
                    is_slow=is_slow,
                    repeats=repeats,
                )
        return self._made[name]


def connection_of(
    address: Address, options: Mapping[str, str], credentials: Credentials | None
) -> Connection:
    """Return the clients of a bucket, and the settings they were made with.

    Raises:
        InputError: a setting is unknown or has an invalid value.
    """
    check_process()
    # All folders of a web server or bucket share one connection.
    given = (frozenset(options.items()), credentials, _environment())
    key = (address[:2], address.account, given)
    with _lock:
        found = _connections.get(key)
        if found is None:
            settings = settle(address.service, options)
            found = _connections[key] = Connection(address, settings, credentials)
        _connections.move_to_end(key)
        _forget_oldest()
    return found


def _forget_oldest() -> None:
    """Drop clients that were not used lately, but keep ``memory://``, which holds the only copy."""
    spare = len(_connections) - MOST_CONNECTIONS
    if spare <= 0:
        return
    removable = [key for key, one in _connections.items() if not one.is_memory]
    for key in removable[:spare]:
        del _connections[key]


def check_process() -> None:
    """Check that this process was not forked after its first request.

    Raises:
        UnsupportedError: this process was forked from one that had used an object store.
    """
    global _owner  # noqa: PLW0603 - one process, one owner
    if _owner is None:
        _owner = os.getpid()
    elif _owner != os.getpid():
        raise UnsupportedError(
            "this process was forked from one that had used an object store, and clients do not "
            "survive a fork; use the start method 'spawn', or fork before the first request"
        )


def _environment() -> frozenset[tuple[str, str]]:
    """Return the environment variables that clients read; other values need another client."""
    return frozenset(item for item in os.environ.items() if item[0].startswith(_VARIABLES))


def _made(
    address: Address,
    settings: Settings,
    credentials: Credentials | None,
    *,
    is_slow: bool = False,
    repeats: bool = False,
) -> Client:
    service, bucket, _, account = address
    if service is Service.MEMORY:
        return _store_class(service)()
    config = {_full(service, name): value for name, value in settings.config.items()}
    if account:
        config.setdefault("account_name", account)
    if service is Service.S3:
        # Objects are removed one by one; not every service supports bulk deletion.
        config.setdefault("disable_bulk_delete", "true")
    asked = _asked(settings, is_slow=is_slow, repeats=repeats)
    if allows_http(address, settings):
        asked["client_options"].setdefault("allow_http", "true")
    if credentials is None and settings.provider is not None:
        credentials = named_provider(settings.provider)
    if credentials is not None:
        asked["credential_provider"] = Asked(credentials, service)
    kind = _store_class(service)
    make = partial(kind.from_url, bucket) if service is Service.HTTP else partial(kind, bucket)
    if service is not Service.HTTP:
        asked["config"] = config
    try:
        return make(**asked)
    except BaseException as cause:
        if not is_client_error(cause):
            raise
        text = quoted(str(cause).partition("\n\nDebug source")[0])
        raise InputError(f"{quoted(bucket)}: the storage options cannot be used: {text}") from None


def _asked(settings: Settings, *, is_slow: bool, repeats: bool) -> dict[str, Any]:
    limits = settings.limits
    retries = _MANY if limits.max_retries is None else limits.max_retries
    client = {
        "timeout": _milliseconds(limits.request_timeout),
        "connect_timeout": _milliseconds(limits.connect_timeout),
        **settings.client,
    }
    if not is_slow:
        client["read_timeout"] = _milliseconds(limits.read_timeout)
    return {
        "client_options": client,
        "retry_config": {
            "max_retries": retries if repeats else 0,
            "retry_timeout": timedelta(seconds=limits.retry_timeout),
            "backoff": {"init_backoff": _FIRST_PAUSE, "max_backoff": _LONGEST_PAUSE, "base": 2},
        },
    }


def _milliseconds(seconds: float) -> str:
    return f"{max(1, round(seconds * 1000))}ms"


def _store_class(service: Service) -> Any:  # noqa: ANN401
    # Imported lazily: only object stores need the client library.
    from obstore import store  # noqa: PLC0415

    kinds = {
        Service.S3: store.S3Store,
        Service.GCS: store.GCSStore,
        Service.AZURE: store.AzureStore,
        Service.HTTP: store.HTTPStore,
        Service.MEMORY: store.MemoryStore,
    }
    return kinds[service]


def _full(service: Service, name: str) -> str:
    return f"aws_{name}" if service is Service.S3 and name == "endpoint_url_s3" else name
