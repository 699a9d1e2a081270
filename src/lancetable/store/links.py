"""Resolve links in the folders of a store.

A folder of a table may be a link to another place. Files are read through it but never removed
there, as they may belong to somebody else.
"""

import contextlib
import os

from lancetable.errors import InputError
from lancetable.store.base import Store
from lancetable.store.local import LocalStore


def real_root(store: Store) -> str:
    """Return the resolved root of a store, which identifies it."""
    local = _local(store)
    return store.root.rstrip("/") if local is None else os.path.realpath(local.root)


def stays_inside(store: Store, folder: str) -> bool:
    """Return whether a folder lies below the root of its store after resolving links."""
    local = _local(store)
    if local is None:
        return True
    root = os.path.realpath(local.root)
    return os.path.realpath(f"{local.root}/{folder}") == os.path.normpath(f"{root}/{folder}")


def remove_if_empty(store: Store, folder: str) -> None:
    """Remove an empty folder, in stores that have folders."""
    local = _local(store)
    if local is not None:
        with contextlib.suppress(OSError, InputError):
            os.rmdir(local.full(folder, anew=True))  # noqa: PTH106 - no Path is at hand


def _local(store: Store) -> LocalStore | None:
    while not isinstance(store, LocalStore):
        inner = getattr(store, "inner", None)
        if inner is None:
            return None
        store = inner
    return store
