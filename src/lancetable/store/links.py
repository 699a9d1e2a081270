"""Where do the folders of a store really lie, when links are followed.

A folder of a table may be a link to somewhere else. Reading through it is fine; removing files
there is not, as they may belong to somebody else.
"""

import contextlib
import os

from lancetable.errors import InputError
from lancetable.store.base import Store
from lancetable.store.local import LocalStore


def real_root(store: Store) -> str:
    """Return what tells the root of a store apart from all others."""
    local = _local(store)
    return store.root.rstrip("/") if local is None else os.path.realpath(local.root)


def stays_inside(store: Store, folder: str) -> bool:
    """Say whether a folder lies below the root of its store, with links followed."""
    local = _local(store)
    if local is None:
        return True
    root = os.path.realpath(local.root)
    return os.path.realpath(f"{local.root}/{folder}") == os.path.normpath(f"{root}/{folder}")


def remove_if_empty(store: Store, folder: str) -> None:
    """Remove a folder that has no files any more, where folders are things of their own."""
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
