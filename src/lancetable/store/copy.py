"""Copy or hard-link immutable objects between stores.

A copy has its own bytes. Sharing adds a hard link where the file system supports it, which takes
no space and little time, and copies otherwise. Removing one name leaves the other.
"""

import os

from lancetable.store.base import Store
from lancetable.store.local import LocalStore
from lancetable.store.ranges import ByteRange

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
        full = target.full(to, anew=True)
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
