"""Which service, which bucket and which folder an address names.

=====================================================  =======================================
address                                                names
=====================================================  =======================================
``s3://bucket/folder``                                 Amazon S3 and whatever speaks like it
``gs://bucket/folder``                                 Google Cloud Storage
``az://container/folder``                              Azure; the account is a setting
``abfss://container@account.dfs.core…/folder``         Azure; also ``abfs``
``http://host/folder``, ``https://…``                  any web server, for reading only
``memory://name/folder``                               this process
=====================================================  =======================================
"""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from lancetable.errors import InputError, UnsupportedError
from lancetable.store.settings import Service

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
        InputError: it names no bucket.
    """
    scheme, _, rest = uri.partition("://")
    service = _SERVICES.get(scheme.lower())
    if service is None:
        known = ", ".join(f"{name}://" for name in _SERVICES)
        raise UnsupportedError(f"{uri}: there is no store {scheme}://; known are paths and {known}")
    if service is Service.HTTP:
        parts = urlsplit(uri)
        return Address(service, f"{parts.scheme}://{parts.netloc}", unquote(parts.path).strip("/"))
    bucket, _, folder = rest.partition("/")
    account = ""
    if service is Service.AZURE and "@" in bucket:
        bucket, _, host = bucket.partition("@")
        account = host.partition(".")[0]
    if not bucket:
        raise InputError(f"{uri}: the address names no bucket; write {scheme}://bucket/folder")
    if "?" in folder or "#" in folder:
        raise InputError(
            f"{uri}: an address of a table has no '?' or '#'; say settings in storage_options"
        )
    return Address(service, bucket, folder.strip("/"), account)
