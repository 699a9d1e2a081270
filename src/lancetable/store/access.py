"""Decide which places outside its root a table may refer to, and check links below the root.

A manifest names places: base paths, and the addresses of external blobs. The writer of the table
chose them, so they are followed only where that cannot leak data or credentials:

==========================  =====================  ======================  ====================
place                       base path              base path, confined     external blob
==========================  =====================  ======================  ====================
inside the table's root     yes                    yes                     yes
same bucket and account     yes                    by name                 yes, unless confined
another local folder        yes                    by name                 by name
everything else             by name                by name                 by name
==========================  =====================  ======================  ====================

A base path gives Lance files only, which are checked before anything is returned; an external blob
gives the bytes of any file, so a local one outside the root must be allowed. ``allow`` names
addresses, each with everything below it, ``"*"`` all of them. ``confine="root"`` is for services
that open untrusted tables. Both are arguments or storage options; when they are not given, the
environment variables ``LANCETABLE_ALLOW`` and ``LANCETABLE_CONFINE`` apply.

The root itself may be reached through links: its address was chosen by the user. Links below it
were made by the writer of the table, so they are followed, for reading as for writing, only to a
place that is allowed by name. Folders are checked once per store for reading, and each time for
writing.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from lancetable.errors import InputError

ALLOW = "allow"
CONFINE = "confine"
STORE, ROOT = "store", "root"
EVERYTHING = "*"
FILE = "file"
"""The service of local files."""


class Access(NamedTuple):
    """The places outside its root that the manifest of a table may refer to."""

    allowed: tuple[str, ...] = ()
    """Addresses, each with everything below it."""
    confine: str = STORE
    """The part in which bases need not be allowed by name: ``store`` or ``root``."""


class Place(NamedTuple):
    """A resolved address: service, account, bucket and folder."""

    service: str
    bucket: str
    account: str
    parts: tuple[str, ...]

    @property
    def is_local(self) -> bool:
        """True for local files."""
        return self.service == FILE

    def has_credentials_of(self, other: "Place") -> bool:
        """Return whether the credentials of another place are also meant for this one."""
        return (self.service, self.account) == (other.service, other.account)

    def holds(self, other: "Place") -> bool:
        """Return whether another place is this one or lies below it."""
        return (
            self[:3] == other[:3]
            and not {".", ".."}.intersection(other.parts)
            and other.parts[: len(self.parts)] == self.parts
        )


def access_from(options: Mapping[str, str], allow: Iterable[str] | None = None) -> Access:
    """Return what an argument, the options of a table and the environment allow.

    Raises:
        InputError: ``allow`` is one text instead of several, or ``confine`` is not known.
    """
    said = {str(name).strip().lower(): str(value) for name, value in options.items()}
    text = said.get(ALLOW, os.environ.get("LANCETABLE_ALLOW", ""))
    confine = said.get(CONFINE, os.environ.get("LANCETABLE_CONFINE", STORE)).strip().lower()
    if confine not in {STORE, ROOT}:
        raise InputError(f"confine is {confine!r}; use {STORE!r} or {ROOT!r}")
    if isinstance(allow, str):
        raise InputError(f"allow is the text {allow!r}; give a list of addresses")
    given = [str(one) for one in allow or ()]
    given.extend(one.strip() for one in text.split(",") if one.strip())
    return Access(tuple(dict.fromkeys(given)), confine)


def is_allowed(
    access: Access, own: Place, other: Place, named: Iterable[Place], *, is_raw: bool
) -> bool:
    """Return whether a table at ``own`` may refer to ``other``; ``is_raw`` for bytes of any file.

    ``named`` are the places of ``access.allowed``.
    """
    if EVERYTHING in access.allowed or any(_reaches(one, other) for one in named):
        return True
    if own.is_local and other.is_local and not is_raw and access.confine == STORE:
        return True
    if not own.is_local and access.confine == STORE and own[:3] == other[:3]:
        return True
    return _reaches(own, other)


def _reaches(folder: Place, other: Place) -> bool:
    """Return whether a place lies below a folder after resolving links of the local file system."""
    if not folder.holds(other):
        return False
    return not folder.is_local or _real(folder).holds(_real(other))


def _real(place: Place) -> Place:
    path = os.path.realpath(f"/{'/'.join(place.parts)}")
    return place._replace(parts=local_parts(path))


def local_parts(path: str) -> tuple[str, ...]:
    """Return the parts of an absolute local path."""
    return tuple(part for part in path.replace(os.sep, "/").split("/") if part)


def refusal(uri: str, what: str) -> InputError:
    """Return the error that explains how to allow a place."""
    return InputError(
        f"the {what} {uri!r} lies outside of the table and is not followed; if you trust it, allow "
        f"it by name: open_table(..., allow=[{uri!r}]), the storage option 'allow', or the "
        "variable LANCETABLE_ALLOW"
    )


Paths: TypeAlias = Callable[[], Sequence[str]]
"""Returns the folders that links may point to; called only when a table has links."""


class Confined:
    """The folders below the root of a table.

    ``below`` is the path from that root to the root of the store, which for a branch is a folder of
    the table.
    """

    __slots__ = ("_allowed", "_below", "_root", "passed")

    def __init__(self, root: str, below: str = "", allowed: Paths | None = None) -> None:
        self._root = root
        self._below = below
        self._allowed = allowed
        self.passed: set[str] = set()
        """Folders that passed the check; they may have been replaced since."""

    def check(self, folder: str) -> None:
        """Check that the path of a folder has no links except to allowed places.

        Raises:
            InputError: a part of its path is a link to a place that is not allowed by name.
        """
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
        self.passed.add(folder)

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
