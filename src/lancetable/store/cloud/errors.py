"""Translate errors of the client library into errors of this library.

The client library raises long texts that contain the answer of the service. Its status and code
identify the cause; each known cause has one sentence that names the setting to change. The text
continues with details of the connection, which show whether the request was sent at all.

Secrets are removed from all text that is shown: addresses, messages and log lines.
"""

import re
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from lancetable.errors import ExistsError, FileNotFoundInStoreError, LanceTableError, StoreError
from lancetable.store.cloud.settings import NOBODY, Caller

HIDDEN = "***"
MOST_CHARACTERS = 300
"""Longest part of a message that comes from a server or a client library."""

# Order matters: a header may hold what looks like a query parameter.
_PATTERNS = (
    # user:password@host; a container before '@' has no colon, and a port is followed by a path.
    (
        re.compile(r"(://)[^/\s:@]*:(?!\d{1,5}(?:[/?#\s\"']|$))[^\s@]*@"),
        rf"\1{HIDDEN}@",
    ),
    (re.compile(r"(?i)\b(bearer|basic|sharedkey)\s+[\w.:~+/=-]{16,}"), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"(?i)(?<![a-z0-9])((?:x-amz-|x-goog-)?(?:sig|signature|credential|security-token|"
            r"session[-_]token|access[-_]?token|sas[-_]?token|account[-_]?key|secret[-_]access[-_]key|"
            r"client[-_]secret|password)\s*[=:]\s*)(?!\*\*\*)[^&;\s\"'<>]+"
        ),
        rf"\1{HIDDEN}",
    ),
)


def hide_secrets(text: str) -> str:
    """Return the text with passwords, signatures, keys and tokens replaced by ``***``."""
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    return text


def quoted(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return external text as one short line without secrets, for use in a message."""
    # Truncate first: a secret that is cut off is still recognised by its beginning.
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    line = hide_secrets(line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,100})</Code>")
_TEXT = re.compile(r"<Message>([^<]*)</Message>")
_KIND = re.compile(r"HttpError \{\s+kind: (\w+)")
_REASON = re.compile(r'(?:message|error): "([^"]*)"')
_RETRIES = re.compile(r"\bretries: (\d+),")
_CALLER = re.compile(r"(?i)user|account|access_?key|auth")
"""Occurs in codes of an answer 404 that concern the caller, not the object."""
_DETAILS = "\n\nDebug source"
_PROVIDER = "credential provider"
_METADATA = "169.254.169.254"
"""The host that provides the credentials of a cloud machine when none were given."""
_NO_CREDENTIALS = (
    "no credentials were found; set them in storage_options or in the environment, or set "
    "skip_signature=true to read public data"
)
_ANONYMOUS = "skip_signature=true allows reading only; set credentials to write"
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_REFUSED = frozenset({429})
"""Transient answers that mean that nothing was done."""
_UNKNOWN_HOST = "Name or service not known"
_LONGEST = 20_000
"""Number of characters of an error's text that are examined."""


class Verb(Enum):
    """Kinds of requests, with the permissions they need on S3, Google and Azure."""

    READ = ("reading", "s3:GetObject", "storage.objects.get", "Read")
    LIST = ("listing", "s3:ListBucket", "storage.objects.list", "List")
    WRITE = ("writing", "s3:PutObject", "storage.objects.create and .delete", "Write")
    CREATE = ("creating objects", "s3:PutObject", "storage.objects.create", "Write")
    COPY = ("copying", "s3:GetObject and s3:PutObject", "storage.objects.get and .create", "Write")
    DELETE = ("deleting", "s3:DeleteObject", "storage.objects.delete", "Delete")

    @property
    def has_effect(self) -> bool:
        """True for requests that change the store."""
        return self not in {Verb.READ, Verb.LIST}

    def permission(self, place: str) -> str:
        """Return the permission that the service of an address requires."""
        _, s3, google, azure = self.value
        scheme = place.partition("://")[0]
        if scheme.startswith("s3"):
            return s3
        return google if scheme in {"gs", "gcs"} else azure


# Causes that a service names, and the remedy; the first match counts.
_EXPIRED = "the credentials have expired; get new ones, or pass a credential provider"
_REGION = "the bucket is in another region; set aws_region to it"
_NO_BUCKET = "there is no such bucket; check its name, the region and the endpoint"
_CAUSES = {
    "NoSuchBucket": _NO_BUCKET,
    "ContainerNotFound": "there is no such container; check its name and the account",
    "InvalidAccessKeyId": "the key is not known; set aws_access_key_id, or check the endpoint",
    "SignatureDoesNotMatch": "the secret does not belong to the key; set aws_secret_access_key",
    "ExpiredToken": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "InvalidToken": "the session token is not valid; set aws_session_token to the one of the key",
    "RequestTimeTooSkewed": "the clock of this machine is wrong; set it, or requests are refused",
    "AuthorizationHeaderMalformed": "the region is wrong; set aws_region to that of the bucket",
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "InvalidBucketName": "the bucket name is not valid; check the address",
    "AuthenticationFailed": (
        "the account key, the SAS token or this machine's clock is wrong; set "
        "azure_storage_account_key or azure_storage_sas_token"
    ),
    "AuthorizationFailure": (
        "the account rejects this caller; check azure_storage_account_key or "
        "azure_storage_sas_token, and the firewall of the account"
    ),
    "InvalidAuthenticationInfo": "the token is not valid or has expired; get a new one",
    "NotImplemented": (
        "the service does not offer this kind of request; use an external manifest store"
    ),
}
_DENIED = frozenset({"AccessDenied", "AuthorizationPermissionMismatch"})
_STATUSES = {
    301: _REGION,
    401: "the service does not recognise the caller; set credentials in storage_options",
}
_MISSING = frozenset({"NoSuchKey", "BlobNotFound", "ResourceNotFound", "NotFound", ""})
"""Codes of an answer 404 that concern the object itself."""


class Refusal(NamedTuple):
    """A failed request: status, code and details of the answer."""

    status: int | None
    code: str
    text: str
    kind: str = ""
    """The client library's name for the failure of a request without an answer."""
    details: str = ""

    @property
    def is_transient(self) -> bool:
        """True when the same request may work a little later."""
        if self.kind == "Panic" or "builder error" in self.text or _UNKNOWN_HOST in self.details:
            return False
        return self.status is None or self.status in _TRANSIENT

    @property
    def may_have_worked(self) -> bool:
        """True unless it is known that this attempt had no effect."""
        retries = _RETRIES.search(self.details)
        if retries is not None and int(retries.group(1)):
            return True
        if self.status is None:
            return self.kind != "Connect" and "builder error" not in self.text
        return self.status in _TRANSIENT - _REFUSED


def is_client_error(cause: BaseException) -> bool:
    """Return whether an exception comes from the client library; its panics are BaseExceptions."""
    if isinstance(cause, MemoryError):
        return False
    return isinstance(cause, Exception) or type(cause).__name__ == "PanicException"


def read_refusal(cause: BaseException) -> Refusal:
    """Read the status and the code of an answer out of an error's text."""
    text, _, details = str(cause).partition(_DETAILS)
    text, details = text[:_LONGEST], details[:_LONGEST]
    if type(cause).__name__ == "PanicException":
        return Refusal(None, "", text, "Panic")
    status = _STATUS.search(text)
    code = _CODE.search(text)
    known = (*_CAUSES, *_DENIED)
    answer = text.partition(" - ")[2] or text
    name = code.group(1) if code else next((one for one in known if one in answer), "")
    if "redirect without LOCATION" in text:
        return Refusal(301, "PermanentRedirect", text)
    kind = _KIND.search(details)
    number = int(status.group(1)) if status else None
    return Refusal(number, name, text, kind.group(1) if kind else "", details)


def translated(
    cause: BaseException, place: str, verb: Verb = Verb.READ, caller: Caller = NOBODY
) -> LanceTableError:
    """Return the error of this library for one of the client library; ``place`` is the object."""
    refusal = read_refusal(cause)
    kind = type(cause).__name__
    if kind == "AlreadyExistsError":
        return ExistsError(f"{place}: the object already exists")
    is_missing = isinstance(cause, FileNotFoundError) or kind == "NotFoundError"
    is_object = refusal.code not in _CAUSES and not _CALLER.search(refusal.code)
    if is_missing and is_object and verb not in {Verb.WRITE, Verb.CREATE}:
        return FileNotFoundInStoreError(f"{place}: there is no such object")
    advice = _advice(refusal, place, verb, caller)
    if advice is not None:
        return StoreError(f"{place}: {advice}", is_certain=True)
    if refusal.status is None:
        certain = not refusal.is_transient and not refusal.may_have_worked
        return StoreError(f"{place}: {_connection(refusal)}", is_certain=certain)
    found = _TEXT.search(refusal.text)
    what = quoted(found.group(1) if found else refusal.text.rpartition(" - ")[2])
    named = f" ({refusal.code})" if refusal.code and refusal.code not in what else ""
    certain = not refusal.is_transient
    hint = "" if certain else "; retries also failed, try again later"
    return StoreError(
        f"{place}: the store answered {refusal.status}, {what}{named}{hint}", is_certain=certain
    )


def _advice(refusal: Refusal, place: str, verb: Verb, caller: Caller) -> str | None:
    """Return the remedy when the cause is known; then it is certain that nothing was done."""
    if _PROVIDER in refusal.text:
        found = refusal.text.partition(_PROVIDER)[2].strip(" :\n").partition("\n")[0]
        return f"the credential provider failed: {quoted(found)}"
    if _METADATA in refusal.text:
        if refusal.status in _TRANSIENT:
            return None
        return _ANONYMOUS if caller.is_anonymous else _NO_CREDENTIALS
    unauthorised = _unauthorised(caller) if refusal.status in {401, 403} else None
    if unauthorised is not None:
        return unauthorised
    if refusal.code in _DENIED or (refusal.status == 403 and refusal.code not in _CAUSES):
        advice: str | None = (
            f"the credentials do not allow {verb.value[0]}; grant {verb.permission(place)}, or set "
            "other credentials"
        )
    elif refusal.status == 404 and refusal.code in _MISSING:
        advice = _NO_BUCKET
    elif refusal.status == 404 and _CALLER.search(refusal.code):
        advice = _CAUSES["InvalidAccessKeyId"]
    else:
        advice = _CAUSES.get(refusal.code) or _STATUSES.get(refusal.status or 0)
    if advice is None or not refusal.code:
        return advice
    return f"{advice} ({refusal.code})"


def _unauthorised(caller: Caller) -> str | None:
    """Describe what is wrong with the authorisation, when the settings show it."""
    if caller.is_anonymous:
        return (
            "the store refuses requests without a signature; set credentials instead of "
            "skip_signature=true"
        )
    try:
        expiry = datetime.fromisoformat(caller.sas_expiry)
    except ValueError:
        return None
    if expiry.tzinfo is None:
        expiry = expiry.replace(tzinfo=UTC)
    if expiry > datetime.now(UTC):
        return None
    return f"the SAS token expired at {caller.sas_expiry}; set azure_storage_sas_token to a new one"


def _connection(refusal: Refusal) -> str:
    if refusal.kind == "Panic":
        return (
            f"the store client rejected the address or a setting ({quoted(refusal.text)}); check "
            "the bucket name and the endpoint"
        )
    if "builder error" in refusal.text:
        return "the endpoint is not an https address; set allow_http=true to allow http"
    reason = _REASON.search(refusal.details)
    why = reason.group(1) if reason else refusal.kind
    if _UNKNOWN_HOST in refusal.details:
        return f"the host name of the store is not known; check the endpoint ({quoted(why)})"
    if refusal.kind == "Timeout":
        return "the store did not answer in time; check the endpoint, or raise read_timeout"
    if "error sending request" in refusal.text or "connect" in refusal.text.lower():
        reason_given = f" ({quoted(why)})" if why else ""
        return (
            "the store cannot be reached; check the endpoint, the network and "
            f"allow_http{reason_given}"
        )
    return f"the request failed: {quoted(refusal.text.partition(chr(10))[0])}"
