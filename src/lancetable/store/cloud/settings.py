"""Settings of a store: the keys of ``storage_options`` and their aliases.

A setting has the name that object_store and pylance give it, with or without the prefix of its
service (``aws_``, ``azure_``, ``google_``), in any case; the names of fsspec's file systems are
accepted, too. Settings that are not given are taken from the environment of the process.

======================  ==========================================================================
setting of our own      meaning
======================  ==========================================================================
``connect_timeout``     seconds that opening a connection may take
``read_timeout``        seconds without a byte of an answer after which an attempt has failed
``request_timeout``     seconds that one attempt may take in all
``retry_timeout``       seconds after which a request that keeps failing is given up
``max_retries``         most retries of a request; limited only by time when not given
``max_requests``        most concurrent requests of one process
``part_bytes``          size of the parts that large files are uploaded in
``upload_parts``        number of parts of one file that are uploaded at a time
``merge_gap_bytes``     holes of up to this size are read to save a request
``request_bytes``       larger reads are divided into several requests
``cache_dir``           folder of a cache of immutable files; no cache when not given
``cache_bytes``         size of that cache
======================  ==========================================================================
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from enum import Enum
from math import isfinite
from typing import NamedTuple
from urllib.parse import parse_qs

from lancetable.errors import InputError
from lancetable.store.access import ALLOW, CONFINE
from lancetable.store.opened import LOCAL_READS

KiB = 1024
MiB = 1024 * KiB


class Service(Enum):
    """The kinds of object stores."""

    S3 = "s3"
    GCS = "gs"
    AZURE = "az"
    HTTP = "http"
    MEMORY = "memory"


class Caller(NamedTuple):
    """Authorisation of requests, used to explain why they are refused."""

    is_anonymous: bool = False
    sas_expiry: str = ""
    """The expiry time in the given SAS token."""


NOBODY = Caller()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of requests: sizes, numbers and times."""

    connect_timeout: float = 5.0
    read_timeout: float = 20.0
    request_timeout: float = 60.0
    retry_timeout: float = 60.0
    max_retries: int | None = None
    max_requests: int = 64
    part_bytes: int = 16 * MiB
    upload_parts: int = 4
    merge_gap_bytes: int = 256 * KiB
    request_bytes: int = 8 * MiB
    cache_dir: str = ""
    cache_bytes: int = 10 * 1024 * MiB
    caller: Caller = NOBODY


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one store, grouped by the code that reads them."""

    config: Mapping[str, str]
    client: Mapping[str, str]
    limits: Limits
    provider: str | None = None
    """``module:function`` that returns credentials; see ``credentials.py``."""


_PREFIXES = {Service.S3: "aws_", Service.GCS: "google_", Service.AZURE: "azure_storage_"}
_CLIENT_NAMES = """
allow_http allow_invalid_certificates http1_only http2_only pool_idle_timeout
pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes root_certificate
randomize_addresses user_agent
"""
_S3_NAMES = """
access_key_id endpoint endpoint_url_s3 bucket checksum_algorithm conditional_put
container_credentials_relative_uri container_credentials_full_uri
container_authorization_token_file copy_if_not_exists default_region disable_tagging
disable_bulk_delete imdsv1_fallback metadata_endpoint region request_payer role_arn
role_session_name s3_express secret_access_key server_side_encryption session_token
skip_signature sse_bucket_key_enabled sse_customer_key_base64 sse_kms_key_id sts_endpoint
unsigned_payload virtual_hosted_style_request web_identity_token_file
"""
_GCS_NAMES = """
service_account service_account_key base_url bearer_token bucket application_credentials
skip_signature
"""
_AZURE_NAMES = """
account_name account_key client_id client_secret credential_type tenant_id authority_host
sas_key token use_emulator use_fabric_endpoint encryption_key endpoint msi_endpoint
object_id msi_resource_id federated_token_file use_azure_cli skip_signature container_name
disable_tagging fabric_token_service_url fabric_workload_host fabric_session_token
fabric_cluster_identifier
"""
_CLIENT = frozenset(_CLIENT_NAMES.split())
_CONFIG: dict[Service, frozenset[str]] = {
    Service.S3: frozenset(_S3_NAMES.split()),
    Service.GCS: frozenset(_GCS_NAMES.split()),
    Service.AZURE: frozenset(_AZURE_NAMES.split()),
    Service.HTTP: frozenset(),
    Service.MEMORY: frozenset(),
}
# Other names: those of fsspec's file systems, of pylance, and short forms that object_store takes.
_SYNONYMS: dict[Service, dict[str, str | None]] = {
    Service.S3: {
        "key": "access_key_id",
        "secret": "secret_access_key",
        "token": "session_token",
        "endpoint_url": "endpoint",
        "endpoint_override": "endpoint",
        "region_name": "region",
        "anon": "skip_signature",
        "profile": None,
        "server_side_encryption_kms_key_id": "sse_kms_key_id",
    },
    Service.GCS: {
        "endpoint": "base_url",
        "endpoint_url": "base_url",
        "storage_token": "bearer_token",
        "token": "bearer_token",
        "service_account_path": "service_account",
        "anon": "skip_signature",
        "project": None,
    },
    Service.AZURE: {
        "access_key": "account_key",
        "master_key": "account_key",
        "sas_token": "sas_key",
        "bearer_token": "token",
        "authority_id": "tenant_id",
        "endpoint_url": "endpoint",
        "account_host": None,
        "anon": "skip_signature",
    },
    Service.HTTP: {},
    Service.MEMORY: {},
}
_LIMITS = {
    "client_max_retries": "max_retries",
    "client_retry_timeout": "retry_timeout",
    "timeout": "request_timeout",
    **{one.name: one.name for one in fields(Limits) if one.name != "caller"},
}
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0}
"""Longest ending first."""
PROVIDER = "credential_provider"
ELSEWHERE = frozenset(
    {"dynamodb_endpoint", "dynamodb_endpoint_url", PROVIDER, ALLOW, CONFINE, LOCAL_READS}
)
"""Settings that other modules read from the same mapping."""


def settle(service: Service, options: Mapping[str, str]) -> Settings:
    """Parse the options of a store; those of other services are ignored.

    Raises:
        InputError: no service has such an option, or its value is not a number.
    """
    config: dict[str, str] = {}
    client: dict[str, str] = {}
    limits: dict[str, str] = {}
    for given, value in options.items():
        name, text = given.strip().lower(), str(value)
        if name in _LIMITS:
            limits[_LIMITS[name]] = text
            continue
        short = _short(service, name)
        if short in _CLIENT:
            client[short] = text
        elif short in _CONFIG[service]:
            config[short] = text
        elif short in _SYNONYMS[service]:
            meant = _SYNONYMS[service][short]
            if meant is not None:
                config.setdefault(meant, text)
        elif name not in ELSEWHERE and not _is_known(name):
            raise _unknown(given)
    made = _limits(limits, _caller(config))
    return Settings(config, client, made, options.get(PROVIDER))


def _caller(config: Mapping[str, str]) -> Caller:
    is_anonymous = config.get("skip_signature", "").lower() == "true"
    token = parse_qs(config.get("sas_key", "").lstrip("?"))
    return Caller(is_anonymous, token.get("se", [""])[0])


def carried_over(options: Mapping[str, str], service: str, account: str) -> dict[str, str]:
    """Return the options that also apply to another service or another Azure account.

    Settings of requests do. Settings of a service, credentials among them, do only when they were
    given for it: they have its prefix and, for Azure, name the account.
    """
    is_meant = service != Service.AZURE.value or account_of(options) == account
    prefix = {"s3": "aws_", "gs": "google_", "az": "azure_"}.get(service) if is_meant else None
    return {
        name: value
        for name, value in options.items()
        if (low := name.strip().lower()) in _LIMITS
        or low in _CLIENT
        or low in {ALLOW, CONFINE}
        or (prefix is not None and low.startswith(prefix))
    }


def account_of(options: Mapping[str, str]) -> str:
    """Return the Azure account named in the options or the environment."""
    said = settle(Service.AZURE, options).config.get("account_name")
    return said or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")


def _short(service: Service, name: str) -> str:
    prefix = _PREFIXES.get(service, "")
    if service is Service.AZURE and not name.startswith(prefix):
        prefix = "azure_"
    return name.removeprefix(prefix) if prefix else name


def _is_known(name: str) -> bool:
    return name in _CLIENT or any(
        _short(service, name) in (_CONFIG[service] | _CLIENT | set(_SYNONYMS[service]))
        for service in Service
    )


def _unknown(name: str) -> InputError:
    known = {*_CLIENT, *_LIMITS, *ELSEWHERE}
    for service in Service:
        prefix = _PREFIXES.get(service, "")
        known |= {f"{prefix}{one}" for one in _CONFIG[service]} | _CONFIG[service]
    close = get_close_matches(name.lower(), known, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else "docs/storage.md lists all of them"
    return InputError(f"there is no storage option {name!r}; {hint}")


def _limits(given: Mapping[str, str], caller: Caller) -> Limits:
    values: dict[str, object] = {"caller": caller}
    for one in fields(Limits):
        if one.name not in given:
            continue
        text = given[one.name]
        if one.name == "cache_dir":
            values[one.name] = text
            continue
        number = _seconds(text) if one.name.endswith("timeout") else _number(text)
        if number < (0 if one.name == "max_retries" else 1e-3):
            raise InputError(f"the storage option {one.name!r} is {text!r}; give a number above 0")
        values[one.name] = number if one.name.endswith("timeout") else int(number)
    return Limits(**values)  # type: ignore[arg-type]


def _number(text: str) -> float:
    """Return a finite number, or a negative one for text that is not a number."""
    try:
        number = float(text)
    except ValueError:
        return -1.0
    return number if isfinite(number) else -1.0


def _seconds(text: str) -> float:
    """Return a time as object_store writes it, such as ``500ms`` or ``1m``; seconds if unmarked."""
    text = text.strip().lower()
    unit = next((one for one in _UNITS if text.endswith(one)), "")
    return _number(text.removesuffix(unit)) * _UNITS.get(unit, 1.0)
