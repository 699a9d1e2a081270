"""Names of the files of a table, and checks that reject unsafe names.

=========  ================================================  ============================
scheme     name in ``_versions``                             recognised by
=========  ================================================  ============================
V1         ``{version}.manifest``                            any other number of digits
V2         ``{2^64-1-version}.manifest``, padded to 20       exactly 20 digits
detached   ``d{version}.manifest``, bit 63 of version set    the leading ``d``
=========  ================================================  ============================
"""

import enum
from typing import NamedTuple

from lancetable.errors import CorruptError
from lancetable.format.manifest.model import DeletionFile

VERSIONS = "_versions"
TRANSACTIONS = "_transactions"
DATA = "data"
DELETIONS = "_deletions"
INDICES = "_indices"
BLOB_DATASET = "_blobs"
HINT = f"{VERSIONS}/latest_version_hint.json"
SUFFIX = ".manifest"

MAX_VERSION = 2**64 - 1
DETACHED_BIT = 1 << 63
_V2_DIGITS = 20


class Scheme(enum.Enum):
    """The ways to name a manifest."""

    V1 = "V1"
    V2 = "V2"
    DETACHED = "detached"


class ManifestName(NamedTuple):
    """The parsed name of a manifest."""

    version: int
    scheme: Scheme


def manifest_path(version: int, scheme: Scheme) -> str:
    """Return the path of a version's manifest below the table."""
    if scheme is Scheme.V2:
        return f"{VERSIONS}/{MAX_VERSION - version:020d}{SUFFIX}"
    if scheme is Scheme.DETACHED:
        return f"{VERSIONS}/d{version}{SUFFIX}"
    return f"{VERSIONS}/{version}{SUFFIX}"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Return what a file name says; ``None`` when it is no manifest's name."""
    if not name.endswith(SUFFIX):
        return None
    stem = digits = name[: -len(SUFFIX)]
    if stem.startswith("d"):
        digits = stem[1:]
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _V2_DIGITS:
        return None
    number = int(digits)
    if number > MAX_VERSION:
        return None
    if stem != digits:
        return ManifestName(number, Scheme.DETACHED) if number & DETACHED_BIT else None
    if len(digits) == _V2_DIGITS:
        return ManifestName(MAX_VERSION - number, Scheme.V2)
    return ManifestName(number, Scheme.V1)


def deletion_path(fragment_id: int, file: DeletionFile) -> str:
    """Return the path of a deletion file below the root that holds it."""
    if file.fragment_id is not None:
        fragment_id = file.fragment_id
    return f"{DELETIONS}/{fragment_id}-{file.read_version}-{file.id}.{file.kind.value}"


def data_path(path: str) -> str:
    """Return the path of a data file below a dataset root.

    Raises:
        CorruptError: the stored path climbs out of its folder.
    """
    return f"{DATA}/{checked_path(path, 'data file')}"


def transaction_path(name: str) -> str:
    """Return the path of a transaction file below the table.

    Raises:
        CorruptError: the stored name climbs out of its folder.
    """
    return f"{TRANSACTIONS}/{checked_path(name, 'transaction file')}"


def transaction_name(read_version: int, uuid: str) -> str:
    """Return the name of a transaction file in its folder."""
    return f"{read_version}-{uuid}.txn"


def index_folder(uuid: str) -> str:
    """Return the folder of an index segment below the root that holds it."""
    return f"{INDICES}/{uuid}"


def checked_path(path: str, what: str) -> str:
    """Return a path that stays below its folder; ``what`` is named in the message.

    Raises:
        CorruptError: the path is empty, absolute, a drive, an address, or climbs with ``..``.
    """
    if (
        not path
        or path[0] in "/~"
        or "\\" in path
        or "\0" in path
        or ":" in path.partition("/")[0]
        or "://" in path
        or (".." in path and ".." in path.split("/"))
    ):
        raise CorruptError(
            f"the {what} path {path!r} does not stay inside its folder and is not followed"
        )
    return path
