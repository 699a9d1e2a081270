"""What a store's refusal means, and what the user can do about it.

The client library gives long texts that hold the answer of the service. The status and the code in
it tell the cause; each known cause has one sentence that says what to set.
"""

import re
from typing import NamedTuple

from lancetable.errors import ExistsError, FileNotFoundInStoreError, LanceTableError, StoreError

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_TEXT = re.compile(r"<Message>([^<]*)</Message>")
_DETAILS = "\n\nDebug source"
_PROVIDER = "credential provider"
_METADATA = "169.254.169.254"
"""Where a machine in a cloud is asked for credentials when none were given."""
_NO_CREDENTIALS = (
    "no credentials were found; set them in storage_options or in the environment, or set "
    "skip_signature=true for public data"
)
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})

# Causes that a service names itself, and what helps; the first that is found counts.
_EXPIRED = "the credentials have expired; get new ones, or pass a credential provider"
_REGION = "the bucket is in another region; set aws_region to it"
_CAUSES = {
    "NoSuchBucket": "there is no such bucket; check its name, the region and the endpoint",
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
    "InvalidBucketName": "buckets cannot be called so; check the address",
    "AuthenticationFailed": (
        "the account key, the SAS token or this machine's clock is wrong; set "
        "azure_storage_account_key or azure_storage_sas_token"
    ),
    "AuthorizationFailure": (
        "the account does not let this caller in; check azure_storage_account_key and its firewall"
    ),
    "AuthorizationPermissionMismatch": (
        "the SAS token or the role lacks a permission; grant reading, listing and writing"
    ),
    "InvalidAuthenticationInfo": "the token is not valid or has expired; get a new one",
    "AccessDenied": (
        "the credentials do not allow it; grant reading, listing and writing of the bucket"
    ),
    "NotImplemented": (
        "the service does not offer this kind of request; use an external manifest store"
    ),
}
_STATUSES = {
    301: _REGION,
    401: "the service does not know the caller; set credentials in storage_options",
    403: "the credentials do not allow it; set others, or grant reading, listing and writing",
    404: "there is no such bucket; check its name, the region and the endpoint",
}


class Refusal(NamedTuple):
    """What is known about a failed request."""

    status: int | None
    code: str
    text: str

    @property
    def is_transient(self) -> bool:
        """True when the same request may work a little later."""
        return self.status is None or self.status in _TRANSIENT


def read_refusal(cause: BaseException) -> Refusal:
    """Read the status and the code of an answer out of an error's text."""
    text = str(cause).partition(_DETAILS)[0]
    status = _STATUS.search(text)
    code = _CODE.search(text)
    name = code.group(1) if code else next((one for one in _CAUSES if one in text), "")
    if "redirect without LOCATION" in text:
        return Refusal(301, "PermanentRedirect", text)
    return Refusal(int(status.group(1)) if status else None, name, text)


def translated(cause: BaseException, place: str) -> LanceTableError:
    """Return the error of this library for one of the client library; ``place`` is the object."""
    refusal = read_refusal(cause)
    kind = type(cause).__name__
    if kind == "AlreadyExistsError":
        return ExistsError(f"{place}: there is such an object already")
    is_missing = isinstance(cause, FileNotFoundError) or kind == "NotFoundError"
    if is_missing and refusal.code not in {"NoSuchBucket", "ContainerNotFound"}:
        return FileNotFoundInStoreError(f"{place}: there is no such object")
    advice = _advice(refusal)
    if advice is not None:
        return StoreError(f"{place}: {advice}", is_certain=True)
    if refusal.status is None:
        return StoreError(f"{place}: {_connection(refusal.text)}")
    told = _TEXT.search(refusal.text)
    what = told.group(1) if told else refusal.text.rpartition(" - ")[2][:200].strip()
    certain = not refusal.is_transient
    hint = "" if certain else "; it was tried again in vain, try later"
    return StoreError(
        f"{place}: the store answered {refusal.status}, {what}{hint}", is_certain=certain
    )


def _advice(refusal: Refusal) -> str | None:
    """Say what helps, when the cause is known; then it is certain that nothing was done."""
    if _PROVIDER in refusal.text:
        told = refusal.text.partition(_PROVIDER)[2].strip(" :\n").partition("\n")[0]
        return f"the credential provider failed: {told}"
    if _METADATA in refusal.text:
        return _NO_CREDENTIALS
    advice = _CAUSES.get(refusal.code) or _STATUSES.get(refusal.status or 0)
    if advice is None or not refusal.code:
        return advice
    return f"{advice} ({refusal.code})"


def _connection(text: str) -> str:
    first = text.partition("\n")[0]
    if "builder error" in text:
        return "the endpoint is no https address; set allow_http=true to allow http"
    if "error sending request" in text or "connect" in text.lower():
        return "the store cannot be reached; check the endpoint, the network and allow_http"
    return f"the request failed: {first[:300]}"
