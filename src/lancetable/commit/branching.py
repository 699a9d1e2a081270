"""How do branches begin and end.

1. The first manifest of a branch is made in its own folder, a shallow clone of the version it
   begins with.
2. The file that names the branch is created; of several who create a branch, one does.
A crash in between leaves a folder that no branch names. Creating the same branch again finishes
the work, and deleting it removes the folder.

A branch goes in the opposite order: first its name, then its files.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import uuid4

from lancetable.commit import refs
from lancetable.commit.cloning import begin, clone_of
from lancetable.commit.external import ExternalLocation, base_of
from lancetable.commit.publish import refresh_hint
from lancetable.commit.refs import BranchInfo
from lancetable.commit.snapshot import Snapshot, read_transaction, shown
from lancetable.commit.versions import listed, load
from lancetable.errors import (
    ExistsError,
    InputError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lancetable.store import Store, TableLocation


def create_branch(
    source: Snapshot, name: str, metadata: Mapping[str, str] | None = None
) -> Snapshot:
    """Begin a branch with a version, and return the branch's first one.

    Raises:
        InputError: branches cannot be called so.
        ExistsError: there is such a branch.
        VersionNotFoundError: the version was cleaned away meanwhile.
    """
    path = refs.branch_path(name)
    location = source.location
    root = location.open()
    if root.exists(path):
        raise _taken(name)
    first = _begun(source, name)
    made = BranchInfo(
        name,
        source.branch,
        source.version,
        datetime.now(UTC),
        len(source.store.read(source.manifest_path)),
        dict(metadata or {}),
        (*_chain(root, source.branch), (source.version, uuid4().hex)),
    )
    try:
        root.put_if_absent(path, _content(made))
    except ExistsError:
        _give_way(first, refs.read_branch(root, name))
        raise _taken(name) from None
    if not source.store.exists(source.manifest_path):
        delete_branch(location, name)
        raise VersionNotFoundError(
            f"{shown(source.store, source.manifest_path)}: version {source.version} was cleaned "
            "away, so no branch can begin with it"
        )
    return first


def _give_way(first: Snapshot, winner: BranchInfo) -> None:
    """Remove the first version of a creator that came too late and began with another version.

    Of the same version there is one manifest, which is the one that the winner needs.
    """
    if first.version != winner.parent_version:
        first.store.delete(first.manifest_path)
        refresh_hint(first.store, winner.parent_version)


def _taken(name: str) -> ExistsError:
    return ExistsError(f"there is a branch {name!r} already; open it, or choose another name")


def _begun(source: Snapshot, name: str) -> Snapshot:
    """Return the first version of a branch, made now or left by a creator that was interrupted."""
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
    """Return how the parent of a branch is identified."""
    if parent is None:
        return ()
    found = refs.read_branch(root, parent)
    # Old releases gave their branches no names; those are found by their versions alone.
    return found.identifier or (
        *_chain(root, found.parent_branch),
        (found.parent_version, uuid4().hex),
    )


def describe_branch(root: Store, name: str, metadata: Mapping[str, str]) -> BranchInfo:
    """Replace the metadata of a branch.

    Raises:
        RefNotFoundError: there is no such branch.
    """
    made = refs.read_branch(root, name)._replace(metadata=dict(metadata))
    root.put(refs.branch_path(name), _content(made))
    return made


def delete_branch(location: TableLocation, name: str) -> BranchInfo | None:
    """Remove a branch with all its versions; ``None`` when only files of it were left.

    Raises:
        RefNotFoundError: there is no such branch.
        InputError: a tag or another branch needs it.
    """
    root = location.open()
    folder = refs.branch_folder(name)
    try:
        gone = refs.read_branch(root, name)
    except RefNotFoundError:
        if not listed(location.child(folder).open()):
            raise
        gone = None
    _check_unused(location, name)
    root.delete(refs.branch_path(name))
    inner = [f"{refs.branch_folder(one)}/" for one in refs.branches(location)]
    nested = tuple(one for one in inner if one.startswith(f"{folder}/"))
    doomed = [one.path for one in root.list(folder) if not one.path.startswith(nested or ("\0",))]
    # Manifests go first: without them nothing points at files that are gone.
    for path in sorted(doomed, key=lambda one: "/_versions/" not in one):
        root.delete(path)
    if isinstance(location, ExternalLocation) and location.manifests is not None:
        location.manifests.delete(base_of(TableLocation.open(location.child(folder))))
    return gone


def _check_unused(location: TableLocation, name: str) -> None:
    children = [one.name for one in refs.branches(location).values() if one.parent_branch == name]
    if children:
        raise InputError(
            f"branch {name!r} is in use: branch {children[0]!r} began with a version of it; delete "
            "that one first"
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
