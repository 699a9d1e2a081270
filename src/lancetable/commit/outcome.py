"""Find out what a write did when its answer was lost or misleads.

A store may carry a request out and report something else: a hard link over NFS whose repetition
finds the name taken, a conditional request that was cut off and sent again, a connection that
breaks before the answer arrives. What stands under the name afterwards decides. Only where that
tells nothing, and the store did not refuse the request for certain, the outcome is unknown.
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
"""Errors of this library that a request may end with although it was carried out."""


NOT_FOUND = "it says that the name is taken, and finds nothing there"


class Creation(NamedTuple):
    """Who made an object that was to be created; ``is_ours`` of ``None`` is not known.

    ``content`` are the bytes that were found, when they had to be looked at.
    """

    is_ours: bool | None
    content: bytes | None = None


def create_object(
    store: Store, path: str, content: bytes, is_ours: Callable[[bytes], bool] | None = None
) -> Creation:
    """Create an object that must not be there yet, and say who made the one that is there.

    ``is_ours`` recognises what an earlier request for the same object may have written; equal bytes
    are ours without it. The result is not known when the store says that the name is taken, and
    then finds nothing there.

    Raises:
        StoreError: the store refused, and the object was not made.
        UnknownOutcomeError: the store failed, and what it did cannot be found out.
    """
    try:
        store.put_if_absent(path, content)
    except Exception as cause:
        if isinstance(cause, LanceTableError) and not isinstance(cause, _DOUBTFUL):
            # A refusal that comes before any request: a store that is read-only, for one.
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
    """Write an object in the place of another, and look whether it is there after a failure.

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
    """Remove an object, and look whether it is gone after a failure.

    Raises:
        StoreError: the store refused, and the object is there.
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
    """Return the error that says that a change may have been made."""
    place = shown(store, path)
    text = str(cause).removeprefix(f"{place}: ")
    return UnknownOutcomeError(
        f"{place}: the change may or may not have been made, as the store failed ({text}); "
        "open the table and look before doing the work again"
    )
