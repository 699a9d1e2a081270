"""Create and delete branches, and create the first version of a clone.

1. The first manifest of a branch is made in its own folder, a shallow clone of the version it
   begins with.
2. The file that names the branch is created; of several who create a branch, one does.
A crash in between leaves a folder that no branch names. Creating the same branch again finishes
the work; deleting it, or a cleanup, removes the folder.

A branch is deleted in the opposite order: a mark in its folder, its name, its manifests, its other
files, the mark. A crash in between leaves a marked folder, which is emptied by creating or deleting
the same branch again, or by a cleanup.

The first manifest is created under a name that must not exist yet, so exactly one of several
creators succeeds. It keeps the number of the version that it was made from.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import uuid4

from lancetable.commit import refs
from lancetable.commit.apply.manifest import Context, apply
from lancetable.commit.leases.records import LEASES
from lancetable.commit.location.external import ExternalLocation, base_of
from lancetable.commit.outcome import (
    NOT_FOUND,
    create_object,
    remove_object,
    replace_object,
    unknown_outcome,
)
from lancetable.commit.publish import publish, refresh_hint, this_writer
from lancetable.commit.refs import BranchInfo
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.transaction import Clone, Transaction
from lancetable.commit.versions import check_may_change, listed, load
from lancetable.errors import (
    CorruptError,
    ExistsError,
    InputError,
    NotFoundError,
    RefNotFoundError,
    StoreError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.manifest.names import (
    DATA,
    DELETIONS,
    DETACHED_BIT,
    HINT,
    INDICES,
    TRANSACTIONS,
    VERSIONS,
    Scheme,
    manifest_path,
    transaction_name,
)
from lancetable.store import Entry, Store, TableLocation

_DELETED = "_deleted"
TEMPORARY = ".tmp"
_FOLDERS = frozenset({DATA, DELETIONS, INDICES, LEASES, TRANSACTIONS, VERSIONS, _DELETED})
"""Folders inside that of a branch; a branch below it has a name of more parts."""


def create_branch(
    source: Snapshot, name: str, metadata: Mapping[str, str] | None = None
) -> Snapshot:
    """Create a branch from a version, and return the first version of the branch.

    Raises:
        InputError: the name is not a valid branch name.
        ExistsError: the branch exists already.
        VersionNotFoundError: the version was cleaned away meanwhile.
        UnsupportedError: the table needs a writer feature that this release does not know.
        UnknownOutcomeError: the store failed, and the branch may or may not exist.
    """
    path = refs.branch_path(name)
    location = source.location
    root = location.open()
    if root.exists(path):
        raise _taken(name)
    check_may_change(location, source.branch)
    size = len(source.store.read(source.manifest_path))
    if location.child(refs.branch_folder(name)).open().exists(_DELETED):
        _remove_folder(location, name)
    first = _begun(source, name)
    made = BranchInfo(
        name,
        source.branch,
        source.version,
        datetime.now(UTC),
        size,
        dict(metadata or {}),
        (*_chain(root, source.branch), (source.version, uuid4().hex)),
    )
    creation = create_object(root, path, _content(made))
    if creation.is_ours is None:
        raise unknown_outcome(root, path, NOT_FOUND)
    if not creation.is_ours:
        _give_way(first, refs.read_branch(root, name))
        raise _taken(name)
    if not _is_there(first, root, path):
        # A cleanup removed the manifest as a leftover of an interrupted creation.
        first = _begun(source, name)
    if not _is_there(source, root, path):
        delete_branch(location, name)
        raise VersionNotFoundError(
            f"{shown(source.store, source.manifest_path)}: version {source.version} was cleaned "
            "away, so no branch can start from it"
        )
    return first


def _is_there(source: Snapshot, root: Store, path: str) -> bool:
    try:
        return source.store.exists(source.manifest_path)
    except StoreError as cause:
        raise unknown_outcome(root, path, cause) from cause


def _give_way(first: Snapshot, winner: BranchInfo) -> None:
    """Remove the first version of a creator that came too late and started from another version.

    Creators that start from the same version share one manifest, which the winner needs.
    """
    if first.version != winner.parent_version:
        first.store.delete(first.manifest_path)
        refresh_hint(first.store, winner.parent_version)


def _taken(name: str) -> ExistsError:
    return ExistsError(f"branch {name!r} exists already; open it, or choose another name")


def _begun(source: Snapshot, name: str) -> Snapshot:
    """Return the first version of a branch, made now or by a creator that was interrupted."""
    location = source.location
    store = location.child(refs.branch_folder(name)).open()
    operation = clone_of(source, is_shallow=True, branch_name=name)
    try:
        return begin(source, store, operation, location)
    except ExistsError:
        versions = listed(store)
    if len(versions) == 1:
        found = load(location, version=versions[0].version, branch=name)
        transaction = read_transaction(store, found.manifest, found.manifest_path)
        if transaction is not None and transaction.operation == operation:
            return found
    raise ExistsError(
        f"{store.root} holds versions that no branch names; delete branch {name!r} to remove what "
        "was left there, or choose another name"
    )


def _chain(root: Store, parent: str | None) -> tuple[tuple[int, str], ...]:
    """Return the identifier of the parent of a branch."""
    if parent is None:
        return ()
    found = refs.read_branch(root, parent)
    # Branches of old releases have no ids and are identified by their versions alone.
    return found.identifier or (
        *_chain(root, found.parent_branch),
        (found.parent_version, uuid4().hex),
    )


def describe_branch(location: TableLocation, name: str, metadata: Mapping[str, str]) -> BranchInfo:
    """Replace the metadata of a branch.

    Raises:
        RefNotFoundError: there is no such branch.
        UnsupportedError: the table or the branch needs a writer feature that this release does not
            know.
    """
    root = location.open()
    made = refs.read_branch(root, name)._replace(metadata=dict(metadata))
    check_may_change(location, name)
    replace_object(root, refs.branch_path(name), _content(made))
    return made


def delete_branch(location: TableLocation, name: str) -> BranchInfo | None:
    """Remove a branch with all its versions; ``None`` when only files of it were left.

    Raises:
        RefNotFoundError: there is no such branch.
        InputError: a tag or another branch needs it.
        UnsupportedError: the table or the branch needs a writer feature that this release does not
            know.
    """
    root = location.open()
    folder = refs.branch_folder(name)
    try:
        gone = refs.read_branch(root, name)
    except RefNotFoundError:
        if not _files(location, name):
            raise
        gone = None
    _check_unused(location, name)
    check_may_change(location, name)
    root.put(f"{folder}/{_DELETED}", b"{}")
    remove_object(root, refs.branch_path(name))
    _remove_folder(location, name)
    return gone


def _remove_folder(location: TableLocation, name: str) -> None:
    """Remove the files of a branch, its mark last."""
    root = location.open()
    folder = refs.branch_folder(name)
    doomed = [f"{folder}/{one.path}" for one in _files(location, name)]
    # Manifests go first: without them nothing points at files that are gone.
    for path in sorted(doomed, key=_removal_order):
        root.delete(path)
    if isinstance(location, ExternalLocation) and location.manifests is not None:
        location.manifests.delete(base_of(TableLocation.open(location.child(folder))))


def _removal_order(path: str) -> int:
    if f"/{VERSIONS}/" in path:
        return 0
    return 2 if path.endswith(f"/{_DELETED}") else 1


class Leftover(NamedTuple):
    """The folder of a branch that no file names; paths are relative to the folder."""

    name: str
    is_deleted: bool
    """True when a deletion was interrupted, false when a creation was."""
    files: tuple[Entry, ...]
    """The manifests first, the mark last."""


def leftovers(location: TableLocation) -> list[Leftover]:
    """Return the files left by interrupted creations and deletions of branches.

    A folder with versions of its own that no file names is not among them: its file was lost.
    """
    root = location.open()
    named = set(refs.branches(location))
    names = {
        name
        for entry in root.list(refs.TREE)
        if (name := _branch_of(entry.path)) is not None and name not in named
    }
    found = []
    for name in sorted(names):
        files = sorted(_files(location, name), key=lambda one: _removal_order(f"/{one.path}"))
        is_deleted = any(one.path == _DELETED for one in files)
        if files and (is_deleted or _is_only_begun(location, name, files)):
            found.append(Leftover(name, is_deleted, tuple(files)))
    return found


def _branch_of(path: str) -> str | None:
    """Return the branch to which a path below the root belongs, by the folders of the format."""
    parts = path.split("/")[1:]
    marks = [number for number, part in enumerate(parts) if part in _FOLDERS]
    name = "/".join(parts[: marks[0]]) if marks else ""
    return name if name and refs.is_branch_name(name) else None


def _files(location: TableLocation, name: str) -> list[Entry]:
    """Return the files of a branch, without those of branches whose names begin with its name."""
    root, folder = location.open(), refs.branch_folder(name)
    start = len(folder) + 1
    return [
        entry._replace(path=entry.path[start:])
        for entry in root.list(folder)
        if _branch_of(entry.path) == name
    ]


def _is_only_begun(location: TableLocation, name: str, files: Sequence[Entry]) -> bool:
    """Say whether a folder has nothing but the first version of a branch, or no version at all."""
    manifests = [one for one in files if one.path.startswith(f"{VERSIONS}/") and one.path != HINT]
    if not manifests:
        return True
    store = location.child(refs.branch_folder(name)).open()
    try:
        versions = listed(store)
        if len(versions) != 1:
            return not versions and all(TEMPORARY in one.path for one in manifests)
        found = load(location, version=versions[0].version, branch=name)
        transaction = read_transaction(store, found.manifest, found.manifest_path)
    except (CorruptError, UnsupportedError, NotFoundError):
        return False
    return transaction is not None and isinstance(transaction.operation, Clone)


def _check_unused(location: TableLocation, name: str) -> None:
    children = [one.name for one in refs.branches(location).values() if one.parent_branch == name]
    if children:
        raise InputError(
            f"branch {name!r} is in use: branch {children[0]!r} starts from a version of it; "
            "delete that one first"
        )
    tags = [one.name for one in refs.tags(location).values() if one.branch == name]
    if tags:
        raise InputError(
            f"branch {name!r} is in use: tag {tags[0]!r} names a version of it; delete or move the "
            "tag first"
        )


def _content(branch: BranchInfo) -> bytes:
    created = branch.created_at or datetime.now(UTC)
    record = {
        "parentBranch": branch.parent_branch,
        "identifier": {"version_mapping": [list(pair) for pair in branch.identifier]},
        "parentVersion": branch.parent_version,
        "createAt": int(created.timestamp()),
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
    return json.dumps(record, indent=2, ensure_ascii=False).encode()


def clone_of(source: Snapshot, *, is_shallow: bool, branch_name: str | None = None) -> Clone:
    """Return the operation that creates a table from a version of another.

    Raises:
        InputError: the version is detached, so that none could follow.
        UnsupportedError: the version uses a feature that a clone cannot keep.
    """
    manifest = source.manifest
    check_writable(manifest.reader_flags, manifest.writer_flags)
    _check_sequences(manifest)
    if source.version & DETACHED_BIT:
        raise InputError(
            f"version {source.version} is detached, and no version could follow it in a clone or "
            "a branch; use a version of the history"
        )
    return Clone(is_shallow, source.branch, source.version, source.store.root, branch_name)


def _check_sequences(manifest: Manifest) -> None:
    """Refuse row id files: their paths are relative to the table and have no base path."""
    fragments = manifest.fragments
    if isinstance(fragments, StoredFragments) and fragments.file_names().sequences:
        raise UnsupportedError(
            "the table keeps row ids in files of their own, which a branch or a clone cannot refer "
            "to; write its rows into a new table, for example with create_table(uri, table.scan())"
        )


def begin(source: Snapshot, store: Store, operation: Clone, location: TableLocation) -> Snapshot:
    """Make the first version of a clone in the empty folder of a store.

    Raises:
        ExistsError: the folder holds a table.
        StoreError: the store failed, and no version was made.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    if listed(store):
        raise ExistsError(f"{store.root}: there is a table already; choose an empty place")
    transaction = Transaction(source.version, str(uuid4()), operation)
    name = transaction_name(transaction.read_version, transaction.uuid)
    context = Context(datetime.now(UTC), this_writer(), source.indices, transaction_file=name)
    state = apply(source.manifest, operation, context)
    made = publish(store, state.manifest, state.indices, transaction, Scheme.V2)
    if made is None:
        raise ExistsError(f"{store.root}: another writer made a table there first")
    path = manifest_path(made.manifest.version, Scheme.V2)
    return Snapshot(location, store, made.manifest, path, operation.branch_name)
