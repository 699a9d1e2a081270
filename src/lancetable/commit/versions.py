"""Which manifest is asked for: the latest, a number, a tag, a branch, a time.

The latest version is found without listing when a hint names a version that exists: from there the
next names are tried until one is missing. The hint may be wrong in any way; then the folder is
listed.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lancetable.commit.as_of import newest_at, parse_moment
from lancetable.commit.manifest_cache import Seen
from lancetable.commit.numbered import Found, decoded, numbered
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.errors import (
    CorruptError,
    FileNotFoundInStoreError,
    InputError,
    LanceTableError,
    NotFoundError,
    StoreError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lancetable.format.limits import read_limits
from lancetable.format.manifest import WriterVersion
from lancetable.format.manifest.codec import decode_heading
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.names import (
    DETACHED_BIT,
    HINT,
    VERSIONS,
    Scheme,
    manifest_path,
    parse_manifest_name,
)
from lancetable.fragment.source import read_whole
from lancetable.store import ByteRange, Entry, Store, TableLocation, spread

HINT_MOST = 4096
_MAX_PROBES = 64
_DETAILS: "Seen[VersionInfo]" = Seen()
_TIMES: "Seen[datetime | None]" = Seen()


class VersionInfo(NamedTuple):
    """One version in a list; what stands in its manifest is there only when asked for."""

    version: int
    path: str
    size: int
    timestamp: datetime | None = None
    writer: WriterVersion | None = None
    operation: str | None = None


def load(
    location: TableLocation,
    *,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    as_of: datetime | str | None = None,
) -> Snapshot:
    """Open one version of a table: the latest, or the one asked for.

    Raises:
        InputError: the wishes contradict each other.
        TableNotFoundError: there is no table.
        VersionNotFoundError: there is no such version, or it was cleaned away.
        RefNotFoundError: there is no such tag or branch.
        CorruptError: a file that was needed is damaged.
        UnsupportedError: the version needs something this release cannot read.
    """
    if (version, tag, as_of).count(None) < 2:
        raise InputError("ask for one of version, tag and as_of, not for several")
    place = location
    if tag is not None or branch is not None:
        place, branch, version = _named(location, tag, branch, version)
    store = place.open()
    found = _find(location, store, branch, version, as_of)
    try:
        manifest = decoded(store, found)
    except CorruptError as cause:
        if version is not None or as_of is not None:
            raise
        raise CorruptError(
            f"{cause.message}; open an older version, or let repair_table make one to read",
            path=cause.path,
        ) from cause
    return Snapshot(location, store, manifest, found.path, branch or manifest.branch)


def _named(
    location: TableLocation, tag: str | None, branch: str | None, version: int | None
) -> tuple[TableLocation, str | None, int | None]:
    """Return the folder and the branch that are asked for, and the version a tag stands for."""
    from lancetable.commit import refs  # noqa: PLC0415 - seldom needed

    if tag is not None:
        if branch is not None:
            raise InputError(f"tag {tag!r} belongs to a branch by itself; leave the branch out")
        named = refs.read_tag(location.open(), tag)
        version, branch = named.version, named.branch
    if branch is None or branch == refs.MAIN:
        return location, None, version
    return location.child(refs.branch_folder(branch)), branch, version


def check_may_change(location: TableLocation, *branches: str | None) -> None:
    """Check that this release may change the names of a table, and of the branches they lead to.

    The latest versions of the main history and of the branches decide. One that is damaged or
    missing does not refuse anything.

    Raises:
        UnsupportedError: a latest version needs something of its writers that is not known.
    """
    for branch in dict.fromkeys((None, *branches)):
        try:
            manifest = load(location, branch=branch).manifest
        except (CorruptError, NotFoundError):
            continue
        check_writable(manifest.reader_flags, manifest.writer_flags)


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
    """Return the content of a manifest file, of which little may be looked at."""
    file = store.open(info.path, size=info.size)
    read_limits().check_open(file.size, info.path)
    return file.read_ranges([ByteRange(0, file.size)])[0]


def _find(
    location: TableLocation,
    store: Store,
    branch: str | None,
    version: int | None,
    as_of: datetime | str | None,
) -> Found:
    if version is not None:
        found = numbered(store, version)
    elif as_of is not None:
        found = _at_time(store, parse_moment(as_of))
    else:
        found = _latest(store)
    if found is not None:
        return found
    is_told = version is None and as_of is None and store.lists_in_order
    versions = [] if is_told else listed(store)
    if not versions:
        raise _no_table(location, store, branch)
    if version is None and as_of is None:
        # The first version was made while we looked.
        return _find(location, store, branch, version, as_of)
    wish = f"version {version}" if version is not None else f"version as of {as_of}"
    raise VersionNotFoundError(f"{store.root} has no {wish}; {_kept(store, versions, as_of)}")


def _no_table(location: TableLocation, store: Store, branch: str | None) -> LanceTableError:
    if branch is not None:
        from lancetable.commit import refs  # noqa: PLC0415 - seldom needed

        main = location.open()
        if any(True for _ in main.list(VERSIONS)):
            return refs.missing_branch(main, branch)
        store = main
    return TableNotFoundError(
        f"there is no table at {store.root}: no manifest was found in its folder {VERSIONS}"
    )


def _kept(store: Store, versions: Sequence[VersionInfo], as_of: object) -> str:
    """Say which versions exist, as ranges; others may have been cleaned away."""
    if as_of is not None:
        oldest = versions[0]
        time = _time(store, oldest)
        return f"the oldest that is kept, {oldest.version}, is from {time}"
    ranges: list[list[int]] = []
    for info in versions:
        if ranges and info.version == ranges[-1][1] + 1:
            ranges[-1][1] = info.version
        else:
            ranges.append([info.version, info.version])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in ranges]
    if len(texts) > 8:
        texts = [*texts[:3], "…", *texts[-4:]]
    return f"it was never written or was cleaned away, there are: {', '.join(texts)}"


def _latest(store: Store) -> Found | None:
    if store.lists_in_order:
        newest = newest_in_order(store)
        if newest is None:
            return _latest_listed(store)
        if not newest:
            return None
        return Found(newest[0].version, newest[0].path, read_whole(store, newest[0].path))
    hinted = read_hint(store)
    if hinted is not None:
        found = numbered(store, hinted)
        if found is not None:
            return _newest_after(store, found)
    return _latest_listed(store)


def _newest_after(store: Store, found: Found) -> Found | None:
    newest = found.version
    while store.exists(manifest_path(newest + 1, found.scheme)):
        newest += 1
        if newest - found.version > _MAX_PROBES:
            return _latest_listed(store)
    if newest == found.version:
        return found
    path = manifest_path(newest, found.scheme)
    return Found(newest, path, read_whole(store, path))


def _latest_listed(store: Store) -> Found | None:
    versions = listed(store)
    if not versions:
        return None
    newest = versions[-1]
    return Found(newest.version, newest.path, read_whole(store, newest.path))


def read_hint(store: Store) -> int | None:
    """Return the version that the hint file names; its content is one JSON number in braces."""
    try:
        content = store.read(HINT, most=HINT_MOST)
    except (FileNotFoundInStoreError, CorruptError, InputError):
        return None
    except StoreError as cause:
        # A file that may not be read is no hint; a store that does not answer finds nothing else.
        if not cause.is_certain:
            raise
        return None
    digits = content.partition(b'"version"')[2].strip(b": }\t\r\n")
    if not digits.isdigit() or len(digits) > 19:
        return None
    version = int(digits)
    return version if 1 <= version < DETACHED_BIT else None


def newest_in_order(store: Store) -> list[VersionInfo] | None:
    """Return the newest versions, newest first, by one request; ``None`` when that does not tell.

    Names of the second scheme count downward, so that they begin with the newest.
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
    """Return the versions by listing with what the listing says of their manifests.

    Raises:
        CorruptError: both naming schemes are used.
    """
    return versions_among(store, store.list(VERSIONS))


def detached_version(path: str) -> int | None:
    """Return the number of a version that stands outside of the history, by the path of a file."""
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


def _at_time(store: Store, moment: datetime) -> Found | None:
    def time_of(found: tuple[VersionInfo, Entry]) -> datetime | None:
        info, entry = found
        return _TIMES.get(store, entry, lambda: _time(store, info))

    newest = newest_at(moment, listed_entries(store), time_of, store.width)
    if newest is None:
        return None
    info = newest[0]
    return Found(info.version, info.path, read_whole(store, info.path))


def _time(store: Store, info: VersionInfo) -> datetime | None:
    return decode_heading(manifest_view(store, info), shown(store, info.path)).timestamp
