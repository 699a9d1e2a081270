"""Plan which versions and files a cleanup removes.

1. List the files, then the versions: a file that is committed in between counts as needed.
2. Decide for each version whether it stays; note the files of those that stay as needed, and of
   those that go as known.
3. A file that nothing needs goes when it is known, or when it is old enough that no writer can be
   at work on it still.

Only folders of the format are looked into, and only as far as they lie inside the table.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from lancetable.commit.branch.branching import leftovers
from lancetable.commit.leases import Lease, active_leases, leases_of
from lancetable.commit.leases.records import LEASES
from lancetable.commit.refs import REFS, branch_folder
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.errors import CorruptError, InputError, TableNotFoundError
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.codec import decode_file_names
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.names import (
    DATA,
    DELETIONS,
    HINT,
    INDICES,
    TRANSACTIONS,
    VERSIONS,
    parse_manifest_name,
)
from lancetable.format.schema.model import Schema
from lancetable.operations.cleanup.options import (
    Amount,
    CleanupOptions,
    KeptVersion,
)
from lancetable.operations.cleanup.references import References
from lancetable.operations.cleanup.retention import (
    Line,
    Numbered,
    Skimmed,
    clone_lines,
    lines_of,
    manifests_of,
    named_versions,
    open_version,
    retention_of,
    skim,
    whole,
)
from lancetable.store import Entry
from lancetable.store.copy import real_root, stays_inside

FOLDERS = (TRANSACTIONS, DATA, DELETIONS, INDICES, LEASES, VERSIONS)
_DEPTHS = {TRANSACTIONS: 0, DATA: 1, DELETIONS: 0, INDICES: 8, LEASES: 0, VERSIONS: 0}
"""How deep the files of a folder lie; what lies deeper is nothing that is known."""

TEMPORARY = ".json.tmp"
"""In the names of files that a killed writer left beside the file of a tag or a branch."""

SMALL_MANIFEST_BYTES = 4096
_NO_FIELDS = Schema(())

_WHOLE = {INDICES: "index", LEASES: "lease"}
_ENDINGS = {
    (TRANSACTIONS, ".txn"): "transaction",
    (DATA, ".lance"): "data",
    (DATA, ".blob"): "blob",
    (DELETIONS, ".arrow"): "deletion",
    (DELETIONS, ".bin"): "deletion",
}


class Doomed(NamedTuple):
    """A file to remove; ``version`` is that of a manifest."""

    line: Line
    path: str
    kind: str
    size: int
    version: int | None = None


@dataclass(slots=True)
class CleanupPlan:
    """Everything that a cleanup found out."""

    snapshot: Snapshot
    options: CleanupOptions
    needed: References = field(default_factory=References)
    known: References = field(default_factory=References)
    kept: list[KeptVersion] = field(default_factory=list)
    manifests: list[Doomed] = field(default_factory=list)
    files: list[Doomed] = field(default_factory=list)
    young: dict[str, Amount] = field(default_factory=dict)
    replaced_at: float = 0.0
    """When the youngest version that goes was followed by another, by the store's clock."""

    def doomed(self) -> list[Doomed]:
        """Return all files to remove, in the order in which they go."""
        return [*self.manifests, *self.files]


def plan_cleanup(snapshot: Snapshot, options: CleanupOptions, now: float) -> CleanupPlan:
    """Find out what a cleanup would remove at a time, given by the clock of the store.

    Raises:
        CorruptError: a version cannot be read, so the files it needs are unknown.
        InputError: versions are named that must stay, or a clone is not there.
        UnsupportedError: a version needs something of its writers that is not known.
    """
    check_writable(snapshot.manifest.reader_flags, snapshot.manifest.writer_flags)
    location = snapshot.location
    lines = lines_of(location)
    cleaned = [one for one in lines if options.all_branches or one.branch == snapshot.branch]
    entries = {line: _entries(line, lines) for line in cleaned}
    plan = CleanupPlan(snapshot, options)
    for line in lines:
        found = manifests_of(line.store)
        if line in cleaned:
            _decide(plan, line, found, active_leases(line.store, now))
        else:
            for one in found:
                plan.needed.add_version(open_version(line, location, one.info))
    _add_clones(plan)
    for line in cleaned:
        _sort(plan, line, entries[line], now)
    _add_leftovers(plan, now - options.unverified_after.total_seconds())
    return plan


def _add_leftovers(plan: CleanupPlan, limit: float) -> None:
    """Add what interrupted operations on branches and tags left, the manifests first."""
    location = plan.snapshot.location
    main = Line(None, location.open())
    for path, size, modified in main.store.list(REFS):
        if TEMPORARY in path.rpartition("/")[2] and modified <= limit:
            plan.files.append(Doomed(main, path, "temporary", size))
    for leftover in leftovers(location):
        line = Line(leftover.name, location.child(branch_folder(leftover.name)).open())
        root = real_root(line.store)
        if not leftover.is_deleted and any(one.modified > limit for one in leftover.files):
            continue
        for path, size, _ in leftover.files:
            if not plan.needed.holds(root, path) and stays_inside(line.store, path):
                plan.files.append(Doomed(line, path, "branch", size))


def _entries(line: Line, lines: Iterable[Line]) -> list[Entry]:
    """List the files of a line that the format knows of, without those of branches below it."""
    root = real_root(line.store)
    others = [f"{real_root(one.store)}/" for one in lines if one.branch != line.branch]
    inner = tuple(other[len(root) + 1 :] for other in others if other.startswith(f"{root}/"))
    checked: dict[str, bool] = {}
    found = []
    for folder in FOLDERS:
        for entry in line.store.list(folder):
            parent = entry.path.rpartition("/")[0]
            if parent not in checked:
                checked[parent] = stays_inside(line.store, parent)
            if checked[parent] and not entry.path.startswith(inner or ("\0",)):
                found.append(entry)
    return found


def _decide(plan: CleanupPlan, line: Line, found: list[Numbered], leases: list[Lease]) -> None:
    names = named_versions(plan.snapshot.location, line.branch)
    retention = retention_of(line, found, names, plan.options, opened=plan.snapshot, leases=leases)
    before: int | None = None
    is_gone = False
    for one in found:
        number = one.info.version
        if is_gone:
            plan.replaced_at = max(plan.replaced_at, one.modified)
        try:
            skimmed = skim(line, one.info)
            reason = retention.reason(skimmed.heading.timestamp, one)
            version = None if reason is None else whole(skimmed, plan.snapshot.location)
        except CorruptError:
            # Other errors say nothing about the bytes, which may be readable later.
            if not plan.options.remove_damaged or number == retention.latest:
                raise
            plan.manifests.append(_doomed(line, one))
            is_gone = True
            continue
        if reason is not None and version is not None:
            plan.kept.append(KeptVersion(line.branch, number, reason))
            plan.needed.add_version(version)
        else:
            plan.manifests.append(_doomed(line, one))
            _note(plan, skimmed, follows=before == number - 1)
        before, is_gone = number, reason is None


def _doomed(line: Line, found: Numbered) -> Doomed:
    info = found.info
    return Doomed(line, info.path, "manifest", info.size, info.version)


def _note(plan: CleanupPlan, skimmed: Skimmed, *, follows: bool) -> None:
    """Note the files of a version that goes; ``follows``: the one before was noted.

    The files that it shares with that one are known; its transaction names the others.
    That saves looking at all fragments of all versions. A small manifest is looked at faster than
    its transaction.
    """
    (branch, store), info, heading, data = skimmed
    location = plan.snapshot.location
    made = Manifest(info.version, _NO_FIELDS, (), transaction_file=heading.transaction_file)
    brief = Snapshot(location, store, made, info.path, branch)
    if len(data) <= SMALL_MANIFEST_BYTES:
        names = decode_file_names(data, shown(store, info.path))
        if names is not None:
            plan.known.add_plain(brief, names)
            return
    if follows:
        transaction = read_transaction(store, heading, info.path, data)
        # Only the whole manifest holds the base paths.
        with contextlib.suppress(CorruptError):
            if transaction is not None and plan.known.add_made(brief, transaction.operation):
                return
    plan.known.add_version(whole(skimmed, location))


def _add_clones(plan: CleanupPlan) -> None:
    for line, uri in clone_lines(plan.options.clones, plan.snapshot.location):
        try:
            found = manifests_of(line.store)
        except TableNotFoundError:
            found = []
        if not found and line.branch is None:
            raise InputError(f"there is no table at {uri}, so it cannot be taken for a clone")
        for one in found:
            plan.needed.add_version(open_version(line, plan.snapshot.location, one.info))


def _sort(plan: CleanupPlan, line: Line, entries: list[Entry], now: float) -> None:
    """Divide the files of a line: needed, to be removed, too young to be sure."""
    root = real_root(line.store)
    leases = leases_of(line.store)
    alive = {one.path for one in leases if one.expires > now}
    expired = {one.path for one in leases} - alive
    limit = now - plan.options.unverified_after.total_seconds()
    for lease in leases:
        if lease.path in alive and lease.files_since is not None:
            limit = min(limit, lease.files_since)
    for path, size, modified in entries:
        kind = kind_of(path)
        if kind is None or plan.needed.holds(root, path) or path in alive:
            continue
        if kind == "manifest":
            continue  # decided by its version
        if path in expired or plan.known.holds(root, path) or modified <= limit:
            plan.files.append(Doomed(line, path, kind, size))
        else:
            plan.young[kind] = plan.young.get(kind, Amount()).plus(size)


def kind_of(path: str) -> str | None:
    """Return what a file is, by its name; ``None`` for what a cleanup leaves alone."""
    folder, _, rest = path.partition("/")
    if path == HINT or rest.count("/") > _DEPTHS[folder]:
        return None
    if folder in _WHOLE:
        return _WHOLE[folder]
    if folder == VERSIONS:
        return "manifest" if parse_manifest_name(rest) else "temporary"
    name = rest.rpartition("/")[2]
    return _ENDINGS.get((folder, name[name.rfind(".") :] if "." in name else ""), "temporary")
