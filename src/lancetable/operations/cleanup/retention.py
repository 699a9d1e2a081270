"""Decide which versions stay, and record the reason.

A line is one history: the main one, or a branch. A version stays when it is the latest of its line,
young, one of the last few, tagged, the beginning of a branch, open in the caller, or under a
lease of another process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from lancetable.commit import refs
from lancetable.commit.leases import Lease
from lancetable.commit.snapshot import Snapshot, shown
from lancetable.commit.versions import (
    VersionInfo,
    detached_version,
    manifest_view,
    versions_among,
)
from lancetable.errors import CorruptError, InputError, UnsupportedError
from lancetable.format.manifest.codec import Heading, decode_heading, decode_manifest
from lancetable.format.manifest.names import VERSIONS
from lancetable.operations.cleanup.options import CleanupOptions
from lancetable.store import Store, TableLocation


class Line(NamedTuple):
    """One history: its branch (``None`` for the main one) and the store of its files."""

    branch: str | None
    store: Store


def lines_of(location: TableLocation) -> list[Line]:
    """Return all histories of a table, the main one first.

    Raises:
        CorruptError: the file of a branch is damaged.
    """
    return [
        Line(None, location.open()),
        *(
            Line(name, location.child(refs.branch_folder(name)).open())
            for name in refs.branches(location)
        ),
    ]


class Numbered(NamedTuple):
    """A manifest by its name, and when its file was written."""

    info: VersionInfo
    modified: float
    is_detached: bool


def manifests_of(store: Store) -> list[Numbered]:
    """Return all manifests of a line, detached ones too, oldest first.

    Raises:
        CorruptError: both naming schemes are used.
    """
    detached = []
    entries = []
    for entry in store.list(VERSIONS):
        name = detached_version(entry.path)
        if name is None:
            entries.append(entry)
        else:
            info = VersionInfo(name, entry.path, entry.size)
            detached.append(Numbered(info, entry.modified, is_detached=True))
    numbered = [
        Numbered(info, entry.modified, is_detached=False)
        for info, entry in versions_among(store, entries)
    ]
    return sorted([*numbered, *detached])


class Skimmed(NamedTuple):
    """A version of which only the heading was looked at, and the bytes of its manifest."""

    line: Line
    info: VersionInfo
    heading: Heading
    data: memoryview


def skim(line: Line, info: VersionInfo) -> Skimmed:
    """Look at the heading of a version.

    Raises:
        CorruptError: it is damaged.
        UnsupportedError: it uses a feature this release does not know.
        StoreError: the store failed, which proves nothing about the version.
    """
    try:
        data = manifest_view(line.store, info)
        return Skimmed(line, info, decode_heading(data, shown(line.store, info.path)), data)
    except (CorruptError, UnsupportedError) as cause:
        raise _unreadable(line, info, cause) from cause


def whole(skimmed: Skimmed, location: TableLocation) -> Snapshot:
    """Return a version of which the heading is known.

    Raises:
        CorruptError: it is damaged, so the files it needs are unknown.
        UnsupportedError: it uses a feature this release does not know.
    """
    line, info = skimmed.line, skimmed.info
    try:
        manifest = decode_manifest(bytes(skimmed.data), shown(line.store, info.path))
        len(manifest.fragments)  # a damaged list has to be noticed before anything is decided
    except (CorruptError, UnsupportedError) as cause:
        raise _unreadable(line, info, cause) from cause
    return Snapshot(location, line.store, manifest, info.path, line.branch)


def open_version(line: Line, location: TableLocation, info: VersionInfo) -> Snapshot:
    """Return one version of a line.

    Raises:
        CorruptError: it is damaged, so the files it needs are unknown.
        UnsupportedError: it uses a feature this release does not know.
        StoreError: the store failed, which proves nothing about the version.
    """
    return whole(skim(line, info), location)


def _unreadable(
    line: Line, info: VersionInfo, cause: CorruptError | UnsupportedError
) -> CorruptError | UnsupportedError:
    path = shown(line.store, info.path)
    text = (
        f"version {info.version} cannot be read, so it is not known which files it needs and "
        "nothing was removed"
    )
    if isinstance(cause, UnsupportedError):
        return UnsupportedError(f"{path}: {text}; use a release that reads it ({cause})")
    return CorruptError(f"{text}; repair the table first ({cause})", path=path)


@dataclass(frozen=True, slots=True)
class Retention:
    """Reasons to keep versions of one line."""

    options: CleanupOptions
    now: datetime
    names: dict[int, str]
    """Versions with tags and versions where branches begin, and what to call the reason."""
    leases: Sequence[Lease]
    latest: int
    last: frozenset[int]
    opened: int | None

    def reason(self, timestamp: datetime | None, found: Numbered) -> str | None:
        """Return why a version, made at a time, stays; ``None`` when it goes."""
        version = found.info.version
        certain = self._certain(version)
        if certain is not None:
            return certain
        if self.options.versions is not None:
            return None if version in self.options.versions else "not requested"
        if version in self.last:
            return f"one of the last {self.options.keep_last}"
        made = timestamp or datetime.fromtimestamp(found.modified, UTC)
        return "young" if self.now - made < self.options.older_than else None

    def _certain(self, version: int) -> str | None:
        if version == self.latest:
            return "latest"
        if version in self.names:
            return self.names[version]
        for lease in self.leases:
            if lease.covers(version):
                return f"lease of {lease.holder}"
        return "open here" if version == self.opened else None


def retention_of(
    line: Line,
    found: Sequence[Numbered],
    names: dict[int, str],
    options: CleanupOptions,
    *,
    opened: Snapshot,
    leases: Sequence[Lease],
) -> Retention:
    """Return what keeps versions of a line; ``leases`` are those that count.

    Raises:
        InputError: versions to remove are named that are not there or must stay.
    """
    history = [one.info.version for one in found if not one.is_detached]
    retention = Retention(
        options,
        datetime.now(UTC),
        names,
        leases,
        history[-1] if history else 0,
        frozenset(history[-options.keep_last :]),
        opened.version if opened.branch == line.branch else None,
    )
    if options.versions is not None:
        known = {one.info.version for one in found}
        for version in options.versions:
            if version not in known:
                raise InputError(f"version {version} is not there, so it cannot be removed")
            if version == retention.latest or version in names:
                reason = names.get(version, "it is the latest")
                raise InputError(f"version {version} cannot be removed: {reason}")
    return retention


def named_versions(location: TableLocation, branch: str | None) -> dict[int, str]:
    """Return the versions of a line that tags and branches refer to, and what keeps them."""
    found = {
        info.parent_version: f"branch {name!r} begins there"
        for name, info in refs.branches(location).items()
        if info.parent_branch == branch
    }
    for name, tag in refs.tags(location).items():
        if tag.branch == branch:
            found[tag.version] = f"tag {name!r}"
    return found


def clone_lines(clones: Sequence[str], location: TableLocation) -> Iterator[tuple[Line, str]]:
    """Yield the histories of clones, which have branches of their own."""
    for uri in clones:
        for line in lines_of(location.elsewhere(uri)):
            yield line, uri
