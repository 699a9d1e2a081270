"""List the versions of a table by the names of their manifests, and select one by time.

Values read from manifests are kept as long as their store is in use. The manifest of a version
never changes. It is identified by its path, its size and the time of its last change, which a
listing gives; a file that was replaced is read again.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.errors import CorruptError, InputError, LanceTableError
from lancetable.format.limits import read_limits
from lancetable.format.manifest import WriterVersion
from lancetable.format.manifest.codec import decode_heading
from lancetable.format.manifest.names import VERSIONS, Scheme, parse_manifest_name
from lancetable.store import ByteRange, Entry, Store, spread

if TYPE_CHECKING:
    from weakref import WeakKeyDictionary


MOST = 20_000
"""The cache is cleared at this number of entries; each takes about a kilobyte."""

Value = TypeVar("Value")


class ManifestCache(Generic[Value]):
    """Values computed from manifest files, for each store."""

    def __init__(self) -> None:
        self._stores: WeakKeyDictionary[Store, dict[tuple[object, ...], Value]] | None = None

    def get(self, store: Store, entry: Entry, make: Callable[[], Value], *also: object) -> Value:
        """Return the value of a file, computed if needed; ``also`` is part of its key."""
        if self._stores is None:
            from weakref import WeakKeyDictionary  # noqa: PLC0415 - not needed to open a table

            self._stores = WeakKeyDictionary()
        try:
            known = self._stores.setdefault(store, {})
        except TypeError:  # a store that cannot be referred to weakly
            return make()
        key = (*entry, *also)
        value = known.get(key)
        if value is None:
            value = make()
            if len(known) >= MOST:
                known.clear()
            known[key] = value
        return value


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


Item = TypeVar("Item")


def parse_time(as_of: datetime | str, name: str = "as_of") -> datetime:
    """Return a time as a datetime, which may lack a time zone; ``name`` names the argument.

    Raises:
        InputError: it is neither a datetime nor its ISO text.
    """
    if isinstance(as_of, str):
        try:
            as_of = datetime.fromisoformat(as_of)
        except ValueError:
            raise InputError(
                f"{name} is {as_of!r}, which is not a time; "
                "write it like '2026-01-31T12:00:00+00:00'"
            ) from None
    if not isinstance(as_of, datetime):
        raise InputError(f"{name} is {as_of!r}; give a datetime or its ISO text")
    return as_of


def parse_moment(as_of: datetime | str) -> datetime:
    """Return ``as_of`` with a time zone: a time without one is local time, as in Python.

    Raises:
        InputError: it is neither a datetime nor its ISO text.
    """
    time = parse_time(as_of)
    if time.tzinfo is not None:
        return time
    try:
        return time.astimezone()
    except (OverflowError, OSError, ValueError):
        # datetime.min and datetime.max leave the range of datetime in some zones.
        return time.replace(tzinfo=UTC)


def newest_at(
    moment: datetime,
    versions: Sequence[Item],
    time_of: Callable[[Item], datetime | None],
    width: int,
) -> Item | None:
    """Return the newest version, in commit order, whose time is not after a moment.

    Times need not follow the order of commits: the clock of one writer may be behind that of
    another, or may have been set back. So the versions are read from the newest on, in rounds that
    grow, and none is skipped because of the times of its neighbours.

    Args:
        moment: the time.
        versions: all versions, oldest first.
        time_of: reads the time of a version; one without a time counts as old.
        width: how many versions are read at the same time.
    """
    end, size = len(versions), 1
    while end > 0:
        start = max(0, end - size)
        times = spread(time_of, versions[start:end], width)
        for index in range(end - 1, start - 1, -1):
            time = times[index - start]
            if time is None or time <= moment:
                return versions[index]
        end, size = start, size * 2
    return None
