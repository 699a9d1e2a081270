"""Find out what a write did when its answer is lost or misleading.

A store may carry out a request and report something else: a hard link over NFS whose repetition
finds the name taken, a conditional request that was interrupted and sent again, a connection that
breaks before the answer arrives. The object under the name decides. The outcome is unknown only
when that does not help and the store did not refuse the request for certain.
"""

from collections.abc import Callable
from typing import NamedTuple

from lancetable.commit.snapshot import shown
from lancetable.errors import (
    ExistsError,
    FileNotFoundInStoreError,
    LanceTableError,
    StoreError,
    UnknownOutcomeError,
)
from lancetable.store import Store

_DOUBTFUL = (ExistsError, StoreError, FileNotFoundInStoreError)
"""Errors that a request may end with although it was carried out."""

NOT_FOUND = "it reports that the name is taken, but finds nothing there"


class Creation(NamedTuple):
    """Who created an object; ``is_ours`` of ``None`` means unknown.

    ``content`` holds the bytes that were found, if they were read.
    """

    is_ours: bool | None
    content: bytes | None = None


def create_object(
    store: Store, path: str, content: bytes, is_ours: Callable[[bytes], bool] | None = None
) -> Creation:
    """Create an object that must not exist yet, and say who created the one that exists.

    ``is_ours`` recognises what an earlier request for the same object may have written; equal bytes
    are ours in any case. The result is unknown when the store reports that the name is taken but
    finds nothing there.

    Raises:
        StoreError: the store refused, and the object was not created.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    try:
        store.put_if_absent(path, content)
    except Exception as cause:
        if isinstance(cause, LanceTableError) and not isinstance(cause, _DOUBTFUL):
            # Refused before any request, for example by a read-only store.
            raise
        return _creation(store, path, content, is_ours, cause)
    return Creation(is_ours=True)


def _creation(
    store: Store,
    path: str,
    content: bytes,
    is_ours: Callable[[bytes], bool] | None,
    cause: Exception,
) -> Creation:
    try:
        found = store.read(path)
        return Creation(found == content or (is_ours is not None and is_ours(found)), found)
    except FileNotFoundInStoreError:
        if isinstance(cause, ExistsError):
            return Creation(None)
        if _is_certain(cause):
            raise cause from None
        raise unknown_outcome(store, path, cause) from cause
    except Exception as failure:
        raise unknown_outcome(store, path, failure) from cause


def replace_object(store: Store, path: str, content: bytes) -> None:
    """Replace an object; after a failure, check whether it was replaced.

    Raises:
        StoreError: the store refused, and nothing was changed.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    try:
        store.put(path, content)
    except _DOUBTFUL as cause:
        try:
            if store.read(path) == content:
                return
        except LanceTableError as failure:
            raise unknown_outcome(store, path, failure) from cause
        if _is_certain(cause):
            raise
        raise unknown_outcome(store, path, cause) from cause


def remove_object(store: Store, path: str) -> None:
    """Remove an object; after a failure, check whether it is gone.

    Raises:
        StoreError: the store refused, and the object still exists.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    try:
        store.delete(path)
    except StoreError as cause:
        try:
            if not store.exists(path):
                return
        except LanceTableError as failure:
            raise unknown_outcome(store, path, failure) from cause
        if cause.is_certain:
            raise
        raise unknown_outcome(store, path, cause) from cause


def _is_certain(cause: Exception) -> bool:
    return isinstance(cause, StoreError) and cause.is_certain


def unknown_outcome(store: Store, path: str, cause: object) -> UnknownOutcomeError:
    """Return the error for a change that may or may not have been made."""
    place = shown(store, path)
    text = str(cause).removeprefix(f"{place}: ")
    return UnknownOutcomeError(
        f"{place}: the change may or may not have been made, as the store failed ({text}); "
        "open the table and check before repeating the change"
    )
