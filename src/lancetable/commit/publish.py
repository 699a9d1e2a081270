"""How does a version become visible: transaction file, manifest, hint.

The manifest is created under a name that must not exist yet, so of all writers one gets it. A
store that fails at this moment is asked what stands under the name now.
"""

import contextlib
from collections.abc import Iterable

from lancetable.commit.snapshot import read_transaction, shown
from lancetable.errors import (
    CorruptError,
    ExistsError,
    FileNotFoundInStoreError,
    LanceTableError,
    StoreError,
    UnknownOutcomeError,
    UnsupportedError,
)
from lancetable.format.manifest.codec import decode_manifest
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
    try:
        store.put_if_absent(path, content)
    except ExistsError:
        return False
    except StoreError as cause:
        owner = _owner(store, path, cause)
        if owner is None:
            raise
        return owner == uuid
    return True


def _owner(store: Store, path: str, cause: StoreError) -> str | None:
    """Return whose version stands under a name after a failure, ``None`` when surely nobody's."""
    try:
        data = store.read(path)
        transaction = read_transaction(store, decode_manifest(data, path), path, data)
    except FileNotFoundInStoreError:
        if cause.is_certain:
            return None
        raise _unknown(store, path) from cause
    except (StoreError, CorruptError, UnsupportedError):
        raise _unknown(store, path) from cause
    return transaction.uuid if transaction else ""


def _unknown(store: Store, path: str) -> UnknownOutcomeError:
    return UnknownOutcomeError(
        f"{shown(store, path)}: the store failed while the version was made, so it may or may not "
        "be there; open the table and look before doing the work again"
    )


def refresh_hint(store: Store, version: int) -> None:
    """Tell readers the newest version; they find it without, so a failure does not matter."""
    if store.lists_in_order:
        return
    with contextlib.suppress(LanceTableError):
        # Padded, so that a later and shorter number never leaves digits of this one behind.
        store.put_loosely(HINT, (b'{"version":%d}' % version).ljust(HINT_BYTES))


def discard(store: Store, paths: Iterable[str]) -> None:
    """Remove files that nothing refers to; what cannot be removed is left for a cleanup."""

    def remove(path: str) -> None:
        with contextlib.suppress(LanceTableError):
            store.delete(path)

    spread(remove, paths, store.width)
