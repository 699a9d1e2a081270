"""Check the endpoint at which a store is reached."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from lancetable.errors import InputError
from lancetable.store.address import Address
from lancetable.store.secrets import quoted
from lancetable.store.settings import Service, Settings

_OPTIONS = {
    Service.S3: ("endpoint", "endpoint_url_s3"),
    Service.GCS: ("base_url",),
    Service.AZURE: ("endpoint",),
}
_VARIABLES = {
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
    for name in _OPTIONS.get(service, ()):
        if config.get(name):
            return config[name]
    for name in _VARIABLES.get(service, ()):
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
