"""Make a version visible: write its transaction file, its manifest and the hint.

The manifest is created under a name that must not exist yet, so exactly one writer succeeds. When
the store does not confirm it, the object under the name is read: a manifest with the uuid of the
transaction is the version that was requested.
"""

import contextlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module

from lancetable.commit.codec.encode import encode_transaction
from lancetable.commit.outcome import NOT_FOUND, Creation, create_object, unknown_outcome
from lancetable.commit.snapshot import HasTransaction, shown
from lancetable.commit.transaction import Transaction
from lancetable.errors import LanceTableError, StoreError
from lancetable.format.manifest import IndexSegment, Manifest, WriterVersion
from lancetable.format.manifest.codec import EncodedManifest, decode_heading, encode_manifest
from lancetable.format.manifest.indices.codec import encode_index_section
from lancetable.format.manifest.model import OWN_LIBRARY
from lancetable.format.manifest.names import (
    HINT,
    Scheme,
    manifest_path,
    transaction_name,
    transaction_path,
)
from lancetable.store import Store, spread

HINT_BYTES = 40


def write_transaction(store: Store, path: str, content: bytes) -> None:
    """Write a transaction file under its unique name.

    Raises:
        StoreError: the store failed; no file stays behind.
    """
    file = store.create(path)
    try:
        file.write([content])
        file.close()
    except BaseException:
        file.abort()
        raise


def publish(
    store: Store,
    manifest: Manifest,
    segments: Sequence[IndexSegment] | None,
    transaction: Transaction,
    scheme: Scheme,
) -> EncodedManifest | None:
    """Make a version that is not rebased on others; ``None`` when another writer made it first.

    Raises:
        StoreError: the store refused, and the version was not made.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    path = manifest_path(manifest.version, scheme)
    message = encode_transaction(transaction)
    encoded = encode_manifest(
        manifest,
        shown(store, path),
        index_section=encode_index_section(segments) if segments else None,
        transaction=message,
    )
    record = transaction_path(transaction_name(transaction.read_version, transaction.uuid))
    write_transaction(store, record, message)
    try:
        made = try_claim(store, path, encoded.content, transaction.uuid)
    except StoreError:
        discard(store, [record])
        raise
    if made.is_ours is None:
        raise unknown_outcome(store, path, NOT_FOUND)
    if not made.is_ours:
        discard(store, [record])
        return None
    refresh_hint(store, manifest.version)
    return encoded


def try_claim(store: Store, path: str, content: bytes, uuid: str) -> Creation:
    """Create the manifest of a version, and say who made the one that exists.

    Raises:
        StoreError: the store refused, and the version was not made.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    return create_object(
        store, path, content, lambda found: is_made_by(decode_heading(found, path), uuid)
    )


def is_made_by(manifest: HasTransaction, uuid: str) -> bool:
    """Say whether a version was made by the transaction with this uuid."""
    return manifest.transaction_file.endswith(f"-{uuid}.txn")


def refresh_hint(store: Store, version: int) -> None:
    """Write the newest version to the hint; readers also find it without, so errors are ignored."""
    if store.lists_in_order:
        return
    with contextlib.suppress(Exception):
        # Padded, so that a later and shorter number never leaves digits of this one behind.
        store.put_loosely(HINT, (b'{"version":%d}' % version).ljust(HINT_BYTES))


def discard(store: Store, paths: Iterable[str]) -> None:
    """Remove files that nothing refers to; what cannot be removed is left for a cleanup."""
    unused = list(paths)
    if not unused:
        return

    def remove(path: str) -> None:
        with contextlib.suppress(LanceTableError):
            store.delete(path)

    # The version may be committed already, so no error may pass for a failed commit.
    with contextlib.suppress(Exception):
        spread(remove, unused, store.width)


@cache
def this_writer() -> WriterVersion:
    """Return the name and version of this library as the writer of a version."""
    # Looked up by name: the package itself is above everything inside it.
    return WriterVersion(OWN_LIBRARY, str(import_module("lancetable").__version__))
