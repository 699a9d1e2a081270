"""Find and load the versions after the one that was read.

The names of the next versions are tried one by one. That misses versions only when those right
after ours were cleaned away; the hint shows that, and when it cannot the folder is listed. The
first commit of a process to a table also lists the folder, to find a mixture of naming schemes.

The version that was read is compared with the one that has its name now. If they differ, the table
was removed and created again, and nothing of the old one applies.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.transaction import Transaction
from lancetable.commit.versions import listed, newest_in_order, read_hint
from lancetable.errors import (
    ConflictError,
    CorruptError,
    FileNotFoundInStoreError,
    VersionNotFoundError,
)
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.codec import Heading, decode_heading, decode_manifest
from lancetable.format.manifest.names import Scheme, manifest_path
from lancetable.fragment.source import read_whole
from lancetable.store import Store

_MOST_PROBES = 64
_MOST_SEEN = 4096
_SEEN: dict[str, None] = {}
"""Tables whose folder of manifests this process has listed."""
_OTHER = {Scheme.V1: Scheme.V2, Scheme.V2: Scheme.V1}
_LAG = 16
"""How far a hint may lag behind because two writers refreshed it in the wrong order."""


@dataclass(frozen=True, slots=True)
class Tip:
    """A version, and the bytes of its manifest if they were read."""

    snapshot: Snapshot
    data: bytes | None = None

    def content(self) -> bytes:
        """Return the bytes of the manifest file."""
        if self.data is not None:
            return self.data
        return read_whole(self.snapshot.store, self.snapshot.manifest_path)

    def transaction(self) -> Transaction | None:
        """Return the transaction that made the version."""
        snapshot = self.snapshot
        path = snapshot.manifest_path
        return read_transaction(snapshot.store, snapshot.manifest, path, self.data)


def newer_versions(snapshot: Snapshot) -> list[int]:
    """Return the numbers of all later versions, oldest first.

    Raises:
        ConflictError: a version in between was cleaned away, so its changes are unknown.
        VersionNotFoundError: the version itself is gone, and so is every later one.
        CorruptError: the manifests follow two naming schemes.
    """
    store, scheme, version = snapshot.store, snapshot.scheme, snapshot.version
    if store.lists_in_order:
        return _newer_in_order(store, version)
    if _is_unseen(store) or _has_next(store, _OTHER[scheme], version):
        found = _newer_listed(store, version)
        _SEEN[store.root] = None
        return found
    newest = version
    while newest - version <= _MOST_PROBES and store.exists(manifest_path(newest + 1, scheme)):
        newest += 1
    hinted = read_hint(store)
    if hinted is not None and version - _LAG <= hinted <= newest <= version + _MOST_PROBES:
        return list(range(version + 1, newest + 1))
    return _newer_listed(store, version)


def _is_unseen(store: Store) -> bool:
    """Say whether the folder was not listed yet; with very many tables some are listed again."""
    if len(_SEEN) > _MOST_SEEN:
        _SEEN.clear()
    return store.root not in _SEEN


def _has_next(store: Store, scheme: Scheme, version: int) -> bool:
    """Look for the next version in another naming scheme, where that costs no request."""
    return store.width == 1 and store.exists(manifest_path(version + 1, scheme))


def check_base(snapshot: Snapshot) -> None:
    """Compare the version that was read with the one that has its name now.

    Raises:
        ConflictError: the table was removed and created again, or the version was cleaned away.
        VersionNotFoundError: the version is gone, and there is none after it.
        CorruptError: its manifest is damaged.
    """
    store, path = snapshot.store, snapshot.manifest_path
    try:
        heading = decode_heading(read_whole(store, path), shown(store, path))
    except FileNotFoundInStoreError:
        _newer_listed(store, snapshot.version)
        raise ConflictError(
            f"{shown(store, path)}: version {snapshot.version}, which the change builds on, was "
            "cleaned away or renamed; open the table again",
            retryable=True,
        ) from None
    if not is_same_version(snapshot.manifest, heading):
        raise removed_and_made_again(snapshot)


def check_follows(latest: Snapshot, before: Snapshot) -> None:
    """Check that the latest version belongs to the same table as an earlier one.

    Raises:
        ConflictError: the table was removed and created again.
    """
    if latest.version < before.version:
        raise removed_and_made_again(before)
    with contextlib.suppress(FileNotFoundInStoreError):
        path = shown(before.store, before.manifest_path)
        heading = decode_heading(read_whole(before.store, before.manifest_path), path)
        if not is_same_version(before.manifest, heading):
            raise removed_and_made_again(before)


def is_same_version(manifest: Manifest, found: Heading) -> bool:
    """Say whether two manifests belong to the same version of the same table."""
    return (
        manifest.version == found.version
        and manifest.transaction_file == found.transaction_file
        and manifest.timestamp == found.timestamp
    )


def removed_and_made_again(snapshot: Snapshot) -> ConflictError:
    """Return the error of a handle whose table was replaced by another."""
    return ConflictError(
        f"{snapshot.store.root}: the table was removed and created again since version "
        f"{snapshot.version} was read; nothing was changed, open the table again"
    )


def _newer_in_order(store: Store, version: int) -> list[int]:
    """Return later versions with one request, if their names are among the first."""
    newer = [info.version for info in newest_in_order(store) or ()]
    if version in newer:
        newer = newer[: newer.index(version)][::-1]
        if newer == list(range(version + 1, version + 1 + len(newer))):
            return newer
    return _newer_listed(store, version)


def _newer_listed(store: Store, version: int) -> list[int]:
    versions = [info.version for info in listed(store)]
    found = [one for one in versions if one > version]
    if not found and version not in versions:
        raise VersionNotFoundError(
            f"{store.root}: version {version}, which the change builds on, is gone, and there is "
            "none after it; the table was removed or replaced, open it again"
        )
    if found and found != list(range(version + 1, found[-1] + 1)):
        raise ConflictError(
            f"versions after {version} were cleaned away, so their changes are unknown; open the "
            "table again",
            retryable=True,
        )
    return found


def load_next(snapshot: Snapshot, version: int, data: bytes | None = None) -> Tip:
    """Return a later version of the same table, from the bytes of its manifest if given.

    Raises:
        ConflictError: it was cleaned away meanwhile.
        CorruptError: its manifest is damaged.
        UnsupportedError: it needs a feature that this release does not know.
    """
    store, path = snapshot.store, manifest_path(version, snapshot.scheme)
    try:
        data = read_whole(store, path) if data is None else data
    except FileNotFoundInStoreError:
        raise ConflictError(
            f"version {version} was cleaned away; open the table again", retryable=True
        ) from None
    manifest = decode_manifest(data, shown(store, path))
    if manifest.version != version:
        raise CorruptError(
            f"the name says version {version}, the content version {manifest.version}",
            path=shown(store, path),
        )
    return Tip(Snapshot(snapshot.location, store, manifest, path, snapshot.branch), data)


def load_all(tip: Tip, versions: Iterable[int]) -> Iterator[Tip]:
    """Yield later versions, each loaded when it is requested.

    Raises:
        LanceTableError: as :func:`load_next`.
    """
    for version in versions:
        tip = load_next(tip.snapshot, version)
        yield tip
