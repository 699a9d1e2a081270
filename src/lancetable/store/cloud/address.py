r"""Parse table addresses into service, bucket and folder.

=====================================================  =======================================
address                                                names
=====================================================  =======================================
``s3://bucket/folder``                                 Amazon S3 and compatible services
``gs://bucket/folder``                                 Google Cloud Storage
``az://container/folder``                              Azure; the account is a setting
``abfss://container@account.dfs.core…/folder``         Azure; also ``abfs``
``http://host/folder``, ``https://…``                  any web server, for reading only
``memory://name/folder``                               this process
=====================================================  =======================================

Percent escapes are decoded, as pylance does: ``s3://bucket/a%20b`` and ``s3://bucket/a b`` are one
folder. Characters that tools read in different ways (``\``, ``?``, ``#``, control characters,
space at the end) are refused; ``%3F``, ``%23`` and ``%20`` name a question mark, a number sign and
such a space.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from lancetable.errors import InputError, UnsupportedError
from lancetable.store.cloud.errors import hide_secrets, quoted
from lancetable.store.cloud.settings import Service

_BUCKET = re.compile(r"[A-Za-z0-9._$-]{1,255}")
_HOST = re.compile(r"(?:[^/@\s]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^/@\s:\[\]]+)(?::\d{1,5})?")
_ESCAPED = str.maketrans({"%": "%25", "#": "%23", "?": "%3F"})

_SERVICES = {
    "s3": Service.S3,
    "s3a": Service.S3,
    "gs": Service.GCS,
    "gcs": Service.GCS,
    "az": Service.AZURE,
    "azure": Service.AZURE,
    "abfs": Service.AZURE,
    "abfss": Service.AZURE,
    "http": Service.HTTP,
    "https": Service.HTTP,
    "memory": Service.MEMORY,
}


class Address(NamedTuple):
    """A folder of an object store."""

    service: Service
    bucket: str
    """The bucket or container; scheme and host of a web server."""
    folder: str
    account: str = ""


def parse_address(uri: str) -> Address:
    """Take an address apart.

    Raises:
        UnsupportedError: it names a kind of store that is not known.
        InputError: it names no bucket, or tools would read it in different ways.
    """
    scheme, _, rest = uri.partition("://")
    service = _SERVICES.get(scheme.strip().lower())
    if service is None:
        known = ", ".join(f"{name}://" for name in _SERVICES)
        raise UnsupportedError(
            f"{quoted(uri)}: unknown scheme {quoted(scheme, 40)}://; use a path or one of {known}"
        )
    check_characters(uri)
    bucket, _, escaped = rest.partition("/")
    folder = decoded_folder(uri, escaped)
    if service is Service.HTTP:
        if not _HOST.fullmatch(bucket):
            raise InputError(f"{quoted(uri)}: the address names no host; write {scheme}://host/…")
        return Address(service, f"{scheme.lower()}://{bucket}", folder)
    account = ""
    if service is Service.AZURE and "@" in bucket:
        bucket, _, host = bucket.partition("@")
        account = host.partition(".")[0]
    if not bucket:
        raise InputError(
            f"{quoted(uri)}: the address names no bucket; write {scheme}://bucket/folder"
        )
    if service is not Service.MEMORY and not _BUCKET.fullmatch(bucket):
        raise InputError(
            f"{quoted(uri)}: {quoted(bucket)!r} cannot be the name of a bucket; it has letters, "
            "digits, '.', '-' and '_'"
        )
    return Address(service, bucket, folder, account)


def check_characters(uri: str) -> None:
    """Check that an address has one reading only.

    Raises:
        InputError: it has a character that tools treat in different ways.
    """
    if "?" in uri or "#" in uri:
        raise InputError(
            f"{quoted(uri)}: the address of a table must not contain '?' or '#'; pass settings "
            "in storage_options, or write %3F or %23 for these characters in a folder name"
        )
    if "\\" in uri:
        raise InputError(f"{quoted(uri)}: an address must not contain a backslash; use '/'")
    if uri != uri.strip() or any(c < " " or c == "\x7f" for c in uri):
        raise InputError(
            f"{quoted(uri)!r}: an address must not contain control characters or begin or end "
            "with a space; write %20 for a space"
        )
    if not uri.isascii():
        _check_unicode(uri)


def decoded_folder(uri: str, escaped: str) -> str:
    """Return the folder of an address without percent escapes and outer slashes.

    Raises:
        InputError: the escapes are not UTF-8, or a part of the folder is not a valid name.
    """
    try:
        folder = unquote_to_bytes(escaped).decode() if "%" in escaped else escaped
    except UnicodeDecodeError:
        raise InputError(
            f"{quoted(uri)}: the percent escapes of the address are not valid UTF-8"
        ) from None
    folder = folder.strip("/")
    parts = folder.split("/") if folder else []
    if any(part in {"", ".", ".."} for part in parts):
        raise InputError(f"{quoted(uri)}: the folder has an empty part, '.' or '..'; remove it")
    if any(c < " " or c in "\\\x7f" for c in folder):
        raise InputError(
            f"{quoted(uri)}: a folder must not contain backslashes or control characters"
        )
    return folder


def written_address(uri: str, address: Address) -> str:
    """Return the canonical spelling of an address, used in messages and manifests.

    Different spellings of one folder give the same text, which reads back as the same folder. The
    password of a web server is hidden.
    """
    scheme, _, rest = uri.partition("://")
    host = rest.partition("/")[0]
    folder = address.folder.translate(_ESCAPED)
    if folder.endswith(" "):
        folder = f"{folder[:-1]}%20"
    return hide_secrets(f"{scheme}://{host}/{folder}".rstrip("/"))


def _check_unicode(uri: str) -> None:
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise InputError(f"{uri!a}: the address is not valid Unicode text") from None
