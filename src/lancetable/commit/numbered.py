"""Find the manifest of a version by its number."""

from typing import NamedTuple, cast

from lancetable.errors import CorruptError, FileNotFoundInStoreError, InputError
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.codec import decode_manifest
from lancetable.format.manifest.names import DETACHED_BIT, MAX_VERSION, Scheme, manifest_path
from lancetable.fragment.source import read_whole
from lancetable.store import Store


class Found(NamedTuple):
    """A manifest file and its content."""

    version: int
    path: str
    data: bytes
    scheme: Scheme = Scheme.V2
    """The naming scheme, if the manifest was found by its number."""


def check_number(version: int) -> None:
    """Check the number of a version.

    Raises:
        InputError: it is not a whole number in the range of versions.
    """
    number = cast("object", version)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_VERSION:
        raise InputError(f"version is {version!r}; give a whole number from 1")


def numbered(store: Store, version: int) -> Found | None:
    """Return the manifest of a version, detached or not; None when there is none.

    Raises:
        InputError: the number is not a valid version.
    """
    check_number(version)
    schemes = (Scheme.DETACHED,) if version & DETACHED_BIT else (Scheme.V2, Scheme.V1)
    for scheme in schemes:
        path = manifest_path(version, scheme)
        try:
            return Found(version, path, read_whole(store, path), scheme)
        except FileNotFoundInStoreError:
            continue
    return None


def decoded(store: Store, found: Found) -> Manifest:
    """Return the manifest in a file.

    Raises:
        CorruptError: it is damaged, or of another version than its name says.
        UnsupportedError: it needs a feature that this release does not know.
    """
    path = f"{store.root}/{found.path}"
    manifest = decode_manifest(found.data, path)
    if manifest.version != found.version:
        raise CorruptError(
            f"the name says version {found.version}, the content version {manifest.version}",
            path=path,
        )
    return manifest
