"""Credential providers: functions that are called before credentials expire.

A provider is a function without arguments. It returns a mapping with the names of ``settings.py``
(``aws_access_key_id``, ``azure_storage_sas_token``, …) and, when they do not last, ``expires_at``:
a time with a zone, or milliseconds since 1970 as ``expires_at_millis``. It is called again before
that. A provider that is named as ``module:function`` is found wherever the code runs, also on the
executors of Spark; a function that is passed itself must be one that pickle finds.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from lancetable.errors import InputError
from lancetable.store.base import Credentials
from lancetable.store.cloud.settings import Service, settle

_TIMES = ("expires_at", "expires_at_millis")


def named_provider(name: str) -> Credentials:
    """Return the function that ``module:function`` names.

    Raises:
        InputError: there is no such function.
    """
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as cause:
        raise InputError(
            f"the credential provider {name!r} cannot be found; name it as 'module:function'"
        ) from cause
    if not callable(found):
        raise InputError(f"the credential provider {name!r} is not callable")
    return found  # type: ignore[no-any-return]


class Asked:
    """A credential provider adapted to the client library of a service."""

    __slots__ = ("provider", "service")

    def __init__(self, provider: Credentials, service: Service) -> None:
        self.provider = provider
        self.service = service

    def __call__(self) -> dict[str, object]:
        """Call the provider and translate its result."""
        given = dict(self.provider())
        expires = _expiry(given)
        named = {name: str(value) for name, value in given.items() if name not in _TIMES}
        said = settle(self.service, named).config
        return {**_SHAPES[self.service](said), "expires_at": expires}


def _expiry(given: Mapping[str, Any]) -> datetime | None:
    when = given.get("expires_at")
    if given.get("expires_at_millis") is not None:
        when = datetime.fromtimestamp(int(given["expires_at_millis"]) / 1000, UTC)
    if when is None or (isinstance(when, datetime) and when.tzinfo is not None):
        return when
    raise InputError(
        f"the credential provider returned expires_at={when!r}; it must have a time zone"
    )


def _s3(said: Mapping[str, str]) -> dict[str, object]:
    _need(said, "access_key_id", "secret_access_key")
    return {
        "access_key_id": said["access_key_id"],
        "secret_access_key": said["secret_access_key"],
        "token": said.get("session_token"),
    }


def _gcs(said: Mapping[str, str]) -> dict[str, object]:
    _need(said, "bearer_token")
    return {"token": said["bearer_token"]}


def _azure(said: Mapping[str, str]) -> dict[str, object]:
    for name, shape in (("sas_key", "sas_token"), ("account_key", "access_key"), ("token",) * 2):
        if name in said:
            return {shape: said[name]}
    _need(said, "sas_key")
    return {}


def _nobody(_: Mapping[str, str]) -> dict[str, object]:
    raise InputError("this kind of store does not support a credential provider")


def _need(said: Mapping[str, str], *names: str) -> None:
    missing = [name for name in names if name not in said]
    if missing:
        raise InputError(f"the credential provider did not return {' and '.join(missing)}")


_SHAPES: dict[Service, Callable[[Mapping[str, str]], dict[str, object]]] = {
    Service.S3: _s3,
    Service.GCS: _gcs,
    Service.AZURE: _azure,
    Service.HTTP: _nobody,
    Service.MEMORY: _nobody,
}
