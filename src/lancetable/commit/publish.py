"""How does a version become visible: transaction file, manifest, hint.

The manifest is created under a name that must not exist yet, so of all writers one gets it. A
store that does not confirm it is asked what stands under the name: a manifest that carries the uuid
of the transaction is the version that was asked for.
"""

import contextlib
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from lancetable.commit.outcome import NOT_FOUND, Creation, create_object, unknown_outcome
from lancetable.commit.snapshot import HasTransaction
from lancetable.errors import LanceTableError
from lancetable.format.manifest import WriterVersion
from lancetable.format.manifest.codec import decode_heading
from lancetable.format.manifest.model import OWN_LIBRARY
from lancetable.format.manifest.names import HINT
from lancetable.store import Store, spread

HINT_BYTES = 40


def write_transaction(store: Store, path: str, content: bytes) -> None:
    """Write a transaction file, whose name is nobody else's.

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


def claim(store: Store, path: str, content: bytes, uuid: str) -> bool:
    """Create the manifest of a version; say whether it is ours.

    Raises:
        StoreError: the store refused, and the version was not made.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    made = try_claim(store, path, content, uuid)
    if made.is_ours is None:
        raise unknown_outcome(store, path, NOT_FOUND)
    return made.is_ours


def try_claim(store: Store, path: str, content: bytes, uuid: str) -> Creation:
    """Create the manifest of a version; say whose it is, if that can be told.

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
    """Tell readers the newest version; they find it without, so a failure does not matter."""
    if store.lists_in_order:
        return
    with contextlib.suppress(Exception):
        # Padded, so that a later and shorter number never leaves digits of this one behind.
        store.put_loosely(HINT, (b'{"version":%d}' % version).ljust(HINT_BYTES))


def discard(store: Store, paths: Iterable[str]) -> None:
    """Remove files that nothing refers to; what cannot be removed is left for a cleanup."""

    def remove(path: str) -> None:
        with contextlib.suppress(LanceTableError):
            store.delete(path)

    # A version may be there by now, so that nothing may fail any more, not even a new thread.
    with contextlib.suppress(Exception):
        spread(remove, paths, store.width)


@cache
def this_writer() -> WriterVersion:
    """Return what is recorded as the writer of a version."""
    # Looked up by name: the package itself is above everything inside it.
    return WriterVersion(OWN_LIBRARY, str(import_module("lancetable").__version__))
