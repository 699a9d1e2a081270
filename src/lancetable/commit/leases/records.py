"""Leases: files that protect what readers and writers of a table need from a cleanup.

A lease is a small file ``_leases/{id}.json`` beside the versions that it protects::

    {"kind": "read", "first": 3, "last": 5, "seconds": 120, "began": 1790000000, "elapsed": 4.5,
     "holder": "host:7"}

It counts for ``seconds`` after the store last saw it written, so only the clock of the store
matters (:func:`store_time`), and the lease of a reader that was killed expires by itself. A reader
protects the versions from ``first`` to ``last``. A writer protects all versions from ``first`` on,
which its commit will be compared with, and every file written since it began, ``elapsed`` seconds
before the lease was written.

Other libraries ignore the folder. A store that cannot be written to has no leases, and nothing
fails because of that, unless the caller requested one with ``table.hold()``.
"""

import json
import os
import time
from typing import NamedTuple

from lancetable.errors import FileNotFoundInStoreError, InputError, LanceTableError
from lancetable.store import Store

LEASES = "_leases"
LEASE_SUFFIX = ".json"
MOST_SECONDS = 366 * 24 * 3600
SECONDS_VARIABLE = "LANCETABLE_LEASE_SECONDS"
DEFAULT_SECONDS = 120
FIRST_FACTOR = 30
"""How many times longer a lease counts that no thread renews yet."""

_CLOCK = ".clock"
"""Suffix of the files that are written to read the clock of a store."""

_MOST_BYTES = 64 * 1024
"""How many bytes of a lease are read."""

_CLOCK_MARGIN = 3600.0
"""How wrong the clock of a writer may be whose lease does not record ``elapsed``."""

_TIME_MARGIN = 5.0
"""Resolution of the file times of a store, in seconds."""

_UNREADABLE_SECONDS = 3600.0
"""How long a lease counts that cannot be parsed, such as one that is being written."""


class Lease(NamedTuple):
    """What a reader or writer needs; ``last`` of ``None`` includes every later version."""

    path: str
    kind: str
    first: int
    last: int | None
    expires: float
    began: float
    holder: str

    def covers(self, version: int) -> bool:
        """Say whether the lease protects a version."""
        return self.first <= version and (self.last is None or version <= self.last)

    @property
    def files_since(self) -> float | None:
        """The time since when unknown files may belong to it; ``None`` for a reader."""
        return self.began if self.kind == "write" else None


def lease_seconds(asked: int | None = None) -> int:
    """Return how long a lease counts: ``asked``, or the environment's setting; 0 disables it.

    Raises:
        InputError: it is not a number of seconds.
    """
    if asked is not None:
        number: object = asked
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or not 0 <= asked <= MOST_SECONDS:
            raise InputError(
                f"the seconds of a lease are {asked!r}; give a number from 0 to {MOST_SECONDS}"
            )
        return asked
    text = os.environ.get(SECONDS_VARIABLE, "")
    return int(text) if text.isdigit() else DEFAULT_SECONDS


def leases_of(store: Store) -> list[Lease]:
    """Return all leases of a table or branch.

    A file that cannot be parsed protects every version for an hour after it was written, as
    another process may be writing it.

    Raises:
        StoreError: a lease exists and cannot be read, so what it protects is unknown.
    """
    found = []
    for path, size, modified in store.list(LEASES):
        if not path.endswith(LEASE_SUFFIX):
            continue
        try:
            found.append(_lease(path, modified, store.read(path) if size <= _MOST_BYTES else b""))
        except FileNotFoundInStoreError:
            continue
    return found


def _lease(path: str, modified: float, text: bytes) -> Lease:
    try:
        content = json.loads(text[:_MOST_BYTES])
        last = content["last"]
        if "elapsed" in content:
            began = modified - float(content["elapsed"]) - _TIME_MARGIN
        else:
            began = float(content["began"]) - _CLOCK_MARGIN
        return Lease(
            path,
            str(content["kind"]),
            int(content["first"]),
            None if last is None else int(last),
            modified + min(float(content["seconds"]), MOST_SECONDS * FIRST_FACTOR),
            began,
            str(content["holder"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        expires = modified + _UNREADABLE_SECONDS
        return Lease(path, "unreadable", 0, None, expires, modified, "an unreadable lease")


def active_leases(store: Store, now: float) -> list[Lease]:
    """Return the leases that have not expired at a time of the store.

    Raises:
        StoreError: a lease exists and cannot be read.
    """
    return [lease for lease in leases_of(store) if lease.expires > now]


def store_time(store: Store) -> float:
    """Return the current time by the clock that dates the files of a store.

    A small file is written, and its date is read. For a store that cannot be written to the time of
    this machine is returned.
    """
    path = f"{LEASES}/{os.urandom(16).hex()}{_CLOCK}"
    try:
        store.put(path, b"{}")
        dates = [entry.modified for entry in store.list(LEASES) if entry.path == path]
        store.delete(path)
    except LanceTableError:
        return time.time()
    return dates[0] if dates else time.time()
