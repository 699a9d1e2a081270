"""Which versions came after the one that was read.

The names of the next versions are tried one by one. That misses versions only when those right
after ours were cleaned away; the hint tells, and when it cannot the folder is listed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.transaction import Transaction
from lancetable.commit.versions import listed, newest_in_order, read_hint
from lancetable.errors import (
    ConflictError,
    CorruptError,
    FileNotFoundInStoreError,
    InputError,
    VersionNotFoundError,
)
from lancetable.format.manifest.codec import decode_manifest
from lancetable.format.manifest.names import Scheme, manifest_path, parse_manifest_name
from lancetable.store import Store

_MOST_PROBES = 64
_LAG = 16
"""How far a hint may be behind because two writers refreshed it in the wrong order."""


@dataclass(frozen=True, slots=True)
class Tip:
    """A version, and the bytes of its manifest when they are at hand."""

    snapshot: Snapshot
    data: bytes | None = None

    def content(self) -> bytes:
        """Return the bytes of the manifest file."""
        if self.data is not None:
            return self.data
        return self.snapshot.store.read(self.snapshot.manifest_path)

    def transaction(self) -> Transaction | None:
        """Return how the version came about."""
        snapshot = self.snapshot
        path = snapshot.manifest_path
        return read_transaction(snapshot.store, snapshot.manifest, path, self.data)


def scheme_of(snapshot: Snapshot) -> Scheme:
    """Return how the manifests of the table are named.

    Raises:
        InputError: the version stands apart from the history, so that nothing can follow it.
    """
    name = parse_manifest_name(snapshot.manifest_path.rpartition("/")[2])
    if name is None or name.scheme is Scheme.DETACHED:
        raise InputError(
            f"version {snapshot.version} is detached; check out a version of the history to write"
        )
    return name.scheme


def newer_versions(snapshot: Snapshot) -> list[int]:
    """Return the numbers of all later versions, oldest first.

    Raises:
        ConflictError: a version in between was cleaned away, so what it did is not known.
        VersionNotFoundError: the version itself is gone, and so is every later one.
    """
    store, scheme, version = snapshot.store, scheme_of(snapshot), snapshot.version
    if store.lists_in_order:
        return _newer_in_order(store, version)
    newest = version
    while newest - version <= _MOST_PROBES and store.exists(manifest_path(newest + 1, scheme)):
        newest += 1
    hinted = read_hint(store)
    if hinted is not None and version - _LAG <= hinted <= newest <= version + _MOST_PROBES:
        return list(range(version + 1, newest + 1))
    return _newer_listed(store, version)


def _newer_in_order(store: Store, version: int) -> list[int]:
    """Return later versions by one request, if their names are among the first."""
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
            "none after it; the table was removed or put back, open it again"
        )
    if found and found != list(range(version + 1, found[-1] + 1)):
        raise ConflictError(
            f"versions after {version} were cleaned away, so it cannot be told what they changed; "
            "open the table again",
            retryable=True,
        )
    return found


def load_next(snapshot: Snapshot, version: int, data: bytes | None = None) -> Tip:
    """Return a later version of the same table, from the bytes of its manifest if they are given.

    Raises:
        ConflictError: it was cleaned away meanwhile.
        CorruptError: its manifest is damaged.
        UnsupportedError: it needs something this release cannot read.
    """
    store, path = snapshot.store, manifest_path(version, scheme_of(snapshot))
    try:
        data = store.read(path) if data is None else data
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
    """Yield later versions one by one, each loaded when it is its turn.

    Raises:
        LanceTableError: as :func:`load_next`.
    """
    for version in versions:
        tip = load_next(tip.snapshot, version)
        yield tip
