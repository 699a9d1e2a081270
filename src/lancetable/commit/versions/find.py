"""Find and open a version: the latest, or one by number, tag, branch or time.

The latest version is found without listing when a hint names a version that exists: from there the
next names are tried until one is missing. The hint may be wrong in any way; then the folder is
listed.
"""

from collections.abc import Sequence
from datetime import datetime

from lancetable.commit.snapshot import Found, Snapshot, decoded, numbered
from lancetable.commit.versions.listing import (
    ManifestCache,
    VersionInfo,
    listed,
    listed_entries,
    newest_at,
    newest_in_order,
    parse_moment,
    version_time,
)
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
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.names import DETACHED_BIT, HINT, VERSIONS, manifest_path
from lancetable.fragment.source import read_whole
from lancetable.store import Entry, Store, TableLocation

HINT_MOST = 4096
_MAX_PROBES = 64
_TIMES: "ManifestCache[datetime | None]" = ManifestCache()


def load(
    location: TableLocation,
    *,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    as_of: datetime | str | None = None,
) -> Snapshot:
    """Open one version of a table, by default the latest.

    Raises:
        InputError: more than one of version, tag and as_of is given, or a branch with a tag.
        TableNotFoundError: there is no table.
        VersionNotFoundError: the version does not exist, or was cleaned away.
        RefNotFoundError: the tag or branch does not exist.
        CorruptError: a file that was needed is damaged.
        UnsupportedError: the version needs a feature that this release does not know.
    """
    if (version, tag, as_of).count(None) < 2:
        raise InputError("give only one of version, tag and as_of")
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
            f"{cause.message}; open an older version, or run repair_table",
            path=cause.path,
        ) from cause
    return Snapshot(location, store, manifest, found.path, branch or manifest.branch)


def _named(
    location: TableLocation, tag: str | None, branch: str | None, version: int | None
) -> tuple[TableLocation, str | None, int | None]:
    """Return the location and the branch to open, and the version that a tag names."""
    from lancetable.commit import refs  # noqa: PLC0415 - seldom needed

    if tag is not None:
        if branch is not None:
            raise InputError(f"tag {tag!r} names its branch itself; leave branch out")
        named = refs.read_tag(location.open(), tag)
        version, branch = named.version, named.branch
    if branch is None or branch == refs.MAIN:
        return location, None, version
    return location.child(refs.branch_folder(branch)), branch, version


def check_may_change(location: TableLocation, *branches: str | None) -> None:
    """Check that this release may change tags and branches of a table.

    The latest versions of the main history and of the branches decide; one that is damaged or
    missing is ignored.

    Raises:
        UnsupportedError: a latest version needs a writer feature that this release does not know.
    """
    for branch in dict.fromkeys((None, *branches)):
        try:
            manifest = load(location, branch=branch).manifest
        except (CorruptError, NotFoundError):
            continue
        check_writable(manifest.reader_flags, manifest.writer_flags)


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
    is_known = version is None and as_of is None and store.lists_in_order
    versions = [] if is_known else listed(store)
    if not versions:
        raise _no_table(location, store, branch)
    if version is None and as_of is None:
        # The first version was made meanwhile.
        return _find(location, store, branch, version, as_of)
    requested = f"version {version}" if version is not None else f"version as of {as_of}"
    raise VersionNotFoundError(f"{store.root} has no {requested}; {_kept(store, versions, as_of)}")


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
    """Describe which versions exist, as ranges."""
    if as_of is not None:
        oldest = versions[0]
        time = version_time(store, oldest)
        return f"the oldest one, {oldest.version}, is from {time}"
    ranges: list[list[int]] = []
    for info in versions:
        if ranges and info.version == ranges[-1][1] + 1:
            ranges[-1][1] = info.version
        else:
            ranges.append([info.version, info.version])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in ranges]
    if len(texts) > 8:
        texts = [*texts[:3], "…", *texts[-4:]]
    return f"it was never written or was cleaned away; existing: {', '.join(texts)}"


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
    """Return the version that the hint file names; ``None`` when there is no valid hint."""
    try:
        content = store.read(HINT, most=HINT_MOST)
    except (FileNotFoundInStoreError, CorruptError, InputError):
        return None
    except StoreError as cause:
        # A hint that may not be read is ignored; a store that fails would not find versions either.
        if not cause.is_certain:
            raise
        return None
    digits = content.partition(b'"version"')[2].strip(b": }\t\r\n")
    if not digits.isdigit() or len(digits) > 19:
        return None
    version = int(digits)
    return version if 1 <= version < DETACHED_BIT else None


def _at_time(store: Store, moment: datetime) -> Found | None:
    def time_of(found: tuple[VersionInfo, Entry]) -> datetime | None:
        info, entry = found
        return _TIMES.get(store, entry, lambda: version_time(store, info))

    newest = newest_at(moment, listed_entries(store), time_of, store.width)
    if newest is None:
        return None
    info = newest[0]
    return Found(info.version, info.path, read_whole(store, info.path))
