"""Copy or hard-link immutable objects between stores, and resolve linked folders.

A copy has its own bytes. Sharing adds a hard link where the file system supports it, which takes
no space and little time, and copies otherwise. Removing one name leaves the other.

A folder of a table may be a link to another place. Files are read through it but never removed
there, as they may belong to somebody else.
"""

import contextlib
import os

from lancetable.errors import InputError
from lancetable.store.base import ByteRange, Store
from lancetable.store.local import LocalStore

PIECE = 8 * 1024**2


def copy_object(source: Store, path: str, target: Store, to: str) -> int:
    """Copy one object under a name that nobody else uses, and return its size.

    Raises:
        FileNotFoundInStoreError: there is no such object.
        ExistsError: the name is taken.
        StoreError: a store failed; nothing stays behind.
    """
    file = source.open(path)
    made = target.create(to)
    try:
        for first in range(0, file.size, PIECE):
            made.write(file.read_ranges([ByteRange(first, min(first + PIECE, file.size))]))
        made.close()
    except BaseException:
        made.abort()
        raise
    return file.size


def share_object(source: Store, path: str, target: Store, to: str) -> None:
    """Give an object a second name, or copy it where that cannot be done.

    Raises:
        FileNotFoundInStoreError: there is no such object.
        ExistsError: the name is taken.
        StoreError: a store failed; nothing stays behind.
    """
    if isinstance(source, LocalStore) and isinstance(target, LocalStore):
        full = target.full(to, for_writing=True)
        try:
            os.makedirs(full.rpartition("/")[0], exist_ok=True)  # noqa: PTH103
            given = source.full(path)
            if not os.path.islink(given):  # noqa: PTH114 - no Path is at hand
                os.link(given, full)
                return
        except OSError:
            # No links, another disk, no source, or a taken name: copying raises the right error.
            pass
    copy_object(source, path, target, to)


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
            os.rmdir(local.full(folder, for_writing=True))  # noqa: PTH106 - no Path is at hand


def _local(store: Store) -> LocalStore | None:
    while not isinstance(store, LocalStore):
        inner = getattr(store, "inner", None)
        if inner is None:
            return None
        store = inner
    return store
