"""Links below the root of a local table, which may lead anywhere.

The root itself may be reached through links: its address was chosen by the user. What lies below it
was made by whoever made the table, so a link there is followed, for reading as for writing, only
when it leads to a place that is allowed by name. Folders are looked at once per store for reading,
and each time for writing.
"""

import os
import stat
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lancetable.errors import InputError

Paths: TypeAlias = Callable[[], Sequence[str]]
"""Gives the folders that links may lead to; most tables have no links and never ask."""


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
        """Return quietly when a folder of the store is reached without a link, or may be.

        ``anew`` looks again at a folder that was found good, as it may have been replaced since.

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
                # It is not there yet, or whoever uses it will be told why not.
                return
            if stat.S_ISLNK(status.st_mode):
                self.target(path)
        self._checked.add(folder)

    def target(self, link: str) -> str:
        """Return where a link leads.

        Raises:
            InputError: that place is not allowed by name.
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
