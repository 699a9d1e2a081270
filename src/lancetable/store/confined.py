"""Check links below the root of a local table, which may point anywhere.

The root itself may be reached through links: its address was chosen by the user. Links below it
were made by the writer of the table, so they are followed, for reading as for writing, only to a
place that is allowed by name. Folders are checked once per store for reading, and each time for
writing.
"""

import os
import stat
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lancetable.errors import InputError

Paths: TypeAlias = Callable[[], Sequence[str]]
"""Returns the folders that links may point to; called only when a table has links."""


class Confined:
    """The folders below the root of a table.

    ``below`` is the path from that root to the root of the store, which for a branch is a folder of
    the table.
    """

    __slots__ = ("_allowed", "_below", "_checked", "_root")

    def __init__(self, root: str, below: str = "", allowed: Paths | None = None) -> None:
        self._root = root
        self._below = below
        self._allowed = allowed
        self._checked: set[str] = set()

    def check(self, folder: str, *, anew: bool = False) -> None:
        """Check that the path of a folder has no links except to allowed places.

        ``anew`` repeats the check for a folder that passed, as it may have been replaced since.

        Raises:
            InputError: a part of its path is a link to a place that is not allowed by name.
        """
        if not anew and folder in self._checked:
            return
        path = self._root
        for part in f"{self._below}/{folder}".split("/"):
            if not part:
                continue
            path = f"{path}/{part}"
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                # It does not exist yet, or using it raises its own error.
                return
            if stat.S_ISLNK(status.st_mode):
                self.target(path)
        self._checked.add(folder)

    def target(self, link: str) -> str:
        """Return the target of a link.

        Raises:
            InputError: the target is not allowed by name.
        """
        real = os.path.realpath(link)
        for allowed in self._allowed() if self._allowed else ():
            place = os.path.realpath(allowed)
            if real == place or real.startswith(f"{place.rstrip('/')}/"):
                return real
        raise InputError(
            f"{link}: this link leads to {real!r} and is not followed, as links below the root of "
            f"a table may lead anywhere; if you trust it, open the table with allow=[{real!r}]"
        )
