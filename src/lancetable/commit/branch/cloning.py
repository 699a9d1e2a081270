"""Create the first version of a clone or of a branch.

The first manifest is created under a name that must not exist yet, so exactly one of several
creators succeeds. It keeps the number of the version that it was made from.
"""

from datetime import UTC, datetime
from uuid import uuid4

from lancetable.commit.apply.manifest import Context, apply
from lancetable.commit.publish import publish, this_writer
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Clone, Transaction
from lancetable.commit.versions import listed
from lancetable.errors import ExistsError, InputError, UnsupportedError
from lancetable.format.manifest import Manifest
from lancetable.format.manifest.flags import check_writable
from lancetable.format.manifest.fragments.codec import StoredFragments
from lancetable.format.manifest.names import (
    DETACHED_BIT,
    Scheme,
    manifest_path,
    transaction_name,
)
from lancetable.store import Store, TableLocation


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
