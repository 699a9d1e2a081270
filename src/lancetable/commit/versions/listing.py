"""List the versions of a table by the names of their manifests."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from lancetable.commit.manifest_cache import ManifestCache
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.errors import CorruptError, LanceTableError
from lancetable.format.limits import read_limits
from lancetable.format.manifest import WriterVersion
from lancetable.format.manifest.codec import decode_heading
from lancetable.format.manifest.names import VERSIONS, Scheme, parse_manifest_name
from lancetable.store import ByteRange, Entry, Store, spread

_DETAILS: "ManifestCache[VersionInfo]" = ManifestCache()


class VersionInfo(NamedTuple):
    """One version in a list; the last three fields are set only when details are requested."""

    version: int
    path: str
    size: int
    timestamp: datetime | None = None
    writer: WriterVersion | None = None
    operation: str | None = None


def list_versions(snapshot: Snapshot, *, detail: bool = False) -> list[VersionInfo]:
    """Return the versions of the snapshot's branch, oldest first.

    With ``detail`` each manifest is read for its time, its writer and its operation.

    Raises:
        CorruptError: both naming schemes are used, or a manifest that was read is damaged.
    """
    store = snapshot.store
    if not detail:
        return listed(store)

    def detailed(found: tuple[VersionInfo, Entry]) -> VersionInfo:
        info, entry = found
        return _DETAILS.get(store, entry, lambda: _detailed(store, info))

    return spread(detailed, listed_entries(store), store.width)


def _detailed(store: Store, info: VersionInfo) -> VersionInfo:
    data = manifest_view(store, info)
    heading = decode_heading(data, shown(store, info.path))
    info = info._replace(timestamp=heading.timestamp, writer=heading.writer)
    try:
        transaction = read_transaction(store, heading, info.path, data)
    except LanceTableError:
        return info
    return info._replace(operation=transaction.operation_name if transaction else None)


def manifest_view(store: Store, info: VersionInfo) -> memoryview:
    """Return the content of a manifest file without decoding it."""
    file = store.open(info.path, size=info.size)
    read_limits().check_open(file.size, info.path)
    return file.read_ranges([ByteRange(0, file.size)])[0]


def newest_in_order(store: Store) -> list[VersionInfo] | None:
    """Return the newest versions, newest first, with one request; ``None`` if not possible.

    Names of the second scheme count downward, so the newest comes first.
    """
    entries = store.first(VERSIONS)
    if entries is None:
        return None
    names = [parse_manifest_name(entry.path.removeprefix(f"{VERSIONS}/")) for entry in entries]
    found = [
        VersionInfo(name.version, entry.path, entry.size)
        for name, entry in zip(names, entries, strict=True)
        if name is not None and name.scheme is Scheme.V2
    ]
    if any(name is not None and name.scheme is Scheme.V1 for name in names):
        return None
    return sorted(found, reverse=True)


def listed(store: Store) -> list[VersionInfo]:
    """Return the versions by listing, oldest first, detached ones left out.

    Raises:
        CorruptError: both naming schemes are used.
    """
    return [info for info, _ in listed_entries(store)]


def listed_entries(store: Store) -> list[tuple[VersionInfo, Entry]]:
    """Return the versions by listing, each with the entry of its manifest.

    Raises:
        CorruptError: both naming schemes are used.
    """
    return versions_among(store, store.list(VERSIONS))


def detached_version(path: str) -> int | None:
    """Return the number of a detached version by the path of its manifest; ``None`` for others."""
    name = path.removeprefix(f"{VERSIONS}/")
    parsed = parse_manifest_name(name) if name.startswith("d") else None
    return None if parsed is None or parsed.scheme is not Scheme.DETACHED else parsed.version


def versions_among(store: Store, entries: Iterable[Entry]) -> list[tuple[VersionInfo, Entry]]:
    """Return the versions among listed files, oldest first, detached ones left out.

    Raises:
        CorruptError: both naming schemes are used.
    """
    found: list[tuple[VersionInfo, Entry]] = []
    first_of: dict[Scheme, str] = {}
    skipped, scheme = len(VERSIONS) + 1, None
    for entry in entries:
        path = entry.path
        name = parse_manifest_name(path[skipped:])
        if name is None or name.scheme is Scheme.DETACHED:
            continue
        if name.scheme is not scheme:
            scheme = name.scheme
            first_of.setdefault(scheme, path)
        found.append((VersionInfo(name.version, path, entry.size), entry))
    if len(first_of) > 1:
        first, second = sorted(first_of.values())
        raise CorruptError(
            f"manifests follow two naming schemes, as in {first!r} and {second!r}; finish the "
            "migration of the table, or remove the files of the scheme it does not use",
            path=shown(store, VERSIONS),
        )
    found.sort()
    return found


def version_time(store: Store, info: VersionInfo) -> datetime | None:
    """Return the time that a manifest records."""
    return decode_heading(manifest_view(store, info), shown(store, info.path)).timestamp
