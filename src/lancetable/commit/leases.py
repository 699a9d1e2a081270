"""Who is at work on a table, so that a cleanup leaves alone what they need.

A lease is a small file ``_leases/{id}.json`` beside the versions it speaks of::

    {"kind": "read", "first": 3, "last": 5, "seconds": 120, "began": 1790000000, "elapsed": 4.5,
     "holder": "host:7"}

It counts for ``seconds`` after the store last saw it written, so that no clock but the store's
matters (:func:`store_time`), and nobody has to remove the lease of a reader that was killed. Once
the work has gone on for a while, a thread of the process writes it again in time; the thread lives
only as long as there are such leases. The first writing, before there is a thread, counts longer. A
reader protects the versions from ``first`` to ``last``. A writer protects all versions from
``first`` on, which it will be compared with, and every file that came since it began, which was
``elapsed`` seconds before the lease was written.

Other libraries do not look into the folder. A store that cannot be written to has no leases, and
nothing fails because of that, unless the caller asked for one by ``table.hold()``.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from lancetable.errors import (
    FileNotFoundInStoreError,
    InputError,
    LanceTableError,
    StoreError,
)
from lancetable.store import Store

LEASES = "_leases"
MOST_SECONDS = 366 * 24 * 3600
SECONDS_VARIABLE = "LANCETABLE_LEASE_SECONDS"
DEFAULT_SECONDS = 120
LAZY_AFTER = 2.0
"""Seconds of work after which a lease is worth its file, and a thread that renews it."""

FIRST_FACTOR = 30
"""How many times longer a lease counts that no thread renews yet."""

_LEASE = ".json"
_CLOCK = ".clock"
"""Ending of the files whose dates tell the time of a store."""

_LONGEST = 64 * 1024
"""How many bytes of a lease are looked at."""

_LENGTH = 256
"""Leases are written in place, so that none may be shorter than the one before."""

_CLOCK_MARGIN = 3600.0
"""How wrong the clock of a writer may be whose lease does not say how long it has been at work."""

_TIME_MARGIN = 5.0
"""How coarse the times of a store may be."""

_UNREADABLE_SECONDS = 3600.0
"""How long a lease counts that cannot be understood, such as one that is being written."""


class Lease(NamedTuple):
    """What somebody at work needs; ``last`` of ``None`` is every later version too."""

    path: str
    kind: str
    first: int
    last: int | None
    expires: float
    began: float
    holder: str

    def covers(self, version: int) -> bool:
        """Say whether a version must stay."""
        return self.first <= version and (self.last is None or version <= self.last)

    @property
    def files_since(self) -> float | None:
        """The time from which on unknown files may belong to it; ``None`` for a reader."""
        return self.began if self.kind == "write" else None


def lease_seconds(asked: int | None = None) -> int:
    """Return how long a lease counts: as asked, or as the environment says; 0 is never.

    Raises:
        InputError: it is no number of seconds.
    """
    if asked is not None:
        number: object = asked
        is_whole = isinstance(number, int) and not isinstance(number, bool)
        if not is_whole or not 0 <= asked <= MOST_SECONDS:
            raise InputError(f"a lease counts 0 to {MOST_SECONDS} seconds, not {asked!r}")
        return asked
    text = os.environ.get(SECONDS_VARIABLE, "")
    return int(text) if text.isdigit() else DEFAULT_SECONDS


def leases_of(store: Store) -> list[Lease]:
    """Return all leases of a table or branch.

    A file that cannot be understood protects every version for an hour after it was written, as
    another process may be writing it.

    Raises:
        StoreError: a lease is there and cannot be read, so what it protects is not known.
    """
    found = []
    for path, size, modified in store.list(LEASES):
        if not path.endswith(_LEASE):
            continue
        try:
            found.append(_lease(path, modified, store.read(path) if size <= _LONGEST else b""))
        except FileNotFoundInStoreError:
            continue
    return found


def _lease(path: str, modified: float, text: bytes) -> Lease:
    try:
        content = json.loads(text[:_LONGEST])
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
    """Return the leases that count at a time of the store.

    Raises:
        StoreError: a lease is there and cannot be read.
    """
    return [lease for lease in leases_of(store) if lease.expires > now]


def store_time(store: Store) -> float:
    """Return the present time by the clock that dates the files of a store.

    A small file is written, and its date is looked at. A store that cannot be written to is taken
    to have the clock of this machine.
    """
    path = f"{LEASES}/{os.urandom(16).hex()}{_CLOCK}"
    try:
        store.put(path, b"{}")
        dates = [entry.modified for entry in store.list(LEASES) if entry.path == path]
        store.delete(path)
    except LanceTableError:
        return time.time()
    return dates[0] if dates else time.time()


class Hold:
    """A lease in the making: nothing is written before :meth:`start`, or :meth:`tick` in time."""

    __slots__ = (
        "_began",
        "_content",
        "_failure",
        "_is_kept",
        "_path",
        "_pid",
        "_started",
        "due",
        "seconds",
        "store",
    )

    def __init__(
        self, store: Store, first: int, last: int | None, *, kind: str, seconds: int
    ) -> None:
        self.store = store
        self.seconds = seconds
        self.due = 0.0
        self._content = (kind, first, last)
        self._path = ""
        self._failure = ""
        self._pid = 0
        self._is_kept = False
        self._began = time.time()
        self._started = time.monotonic()

    @property
    def is_active(self) -> bool:
        """True while the lease is there."""
        return bool(self._path)

    def tick(self) -> None:
        """Say that the work goes on: after a while the lease is written and kept."""
        if not self._is_kept and time.monotonic() - self._started >= LAZY_AFTER:
            self.keep()

    def keep(self) -> None:
        """Write the lease, and renew it until it is stopped."""
        self._is_kept = True
        self.start()
        if self._path:
            self.renew()
            _KEEPER.add(self)

    def require(self) -> None:
        """Keep the lease, and make sure that it is there.

        Raises:
            StoreError: it cannot be written, so nothing is protected.
        """
        self.keep()
        if not self._path and self.seconds > 0:
            raise StoreError(
                f"{self.store.root}/{LEASES}: the lease cannot be written ({self._failure}), so a "
                "cleanup may remove the version; allow writing to this folder, or pass seconds=0"
            )

    def start(self) -> None:
        """Write the lease; nothing happens when it is there, or cannot be."""
        if self._path or self.seconds <= 0:
            return
        path = f"{LEASES}/{os.urandom(16).hex()}{_LEASE}"
        try:
            file = self.store.create(path)
            file.write([self._bytes(self.seconds * FIRST_FACTOR)])
            file.close()
        except LanceTableError as cause:
            self._failure = str(cause)
            # The answer may be lost only: what is there is removed, or runs out.
            with contextlib.suppress(LanceTableError):
                self.store.delete(path)
        else:
            self._path, self._pid = path, os.getpid()

    def renew(self) -> None:
        """Write the lease again."""
        self.due = time.monotonic() + self.seconds / 3
        with contextlib.suppress(LanceTableError):
            self.store.put_loosely(self._path, self._bytes(self.seconds))

    def stop(self) -> None:
        """Remove the lease."""
        path, self._path, self._is_kept = self._path, "", True
        if path and self._pid == os.getpid():
            _KEEPER.remove(self)
            with contextlib.suppress(Exception):
                self.store.delete(path)

    def _bytes(self, seconds: int) -> bytes:
        kind, first, last = self._content
        content = {
            "kind": kind,
            "first": first,
            "last": last,
            "seconds": seconds,
            "began": self._began,
            "elapsed": round(time.monotonic() - self._started, 3),
            "holder": f"{socket.gethostname()}:{os.getpid()}",
        }
        return json.dumps(content).ljust(_LENGTH).encode()


class _Keeper:
    """Renews the leases of this process in a thread, as long as there are any."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        # A generator that is collected inside the lock may want it again.
        self._lock = threading.RLock()
        self._holds: set[Hold] = set()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def forget(self) -> None:
        """Begin anew in a process that was forked: the leases are its parent's."""
        self._forget()

    def add(self, hold: Hold) -> None:
        """Keep a lease from now on."""
        with self._lock:
            self._holds.add(hold)
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="lancetable-leases", daemon=True
                )
                self._thread.start()

    def remove(self, hold: Hold) -> None:
        """Keep a lease no longer; the thread ends with the last one."""
        with self._lock:
            self._holds.discard(hold)
            if not self._holds:
                self._thread = None
                self._wake.set()

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                if self._thread is not me:
                    return
                self._wake.clear()
                holds = list(self._holds)
            now = time.monotonic()
            for hold in holds:
                if hold.is_active and hold.due <= now:
                    hold.renew()
            self._wake.wait(max(min(hold.due for hold in holds) - now, 0.01) if holds else None)


_KEEPER = _Keeper()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_KEEPER.forget)

_AT_WORK = threading.local()


@contextlib.contextmanager
def reading(
    store: Store, first: int, last: int | None = None, *, seconds: int | None = None
) -> Iterator[Hold]:
    """Give a lease for reading some versions, which the caller starts when it is worth it."""
    last = first if last is None else last
    hold = Hold(store, first, last, kind="read", seconds=lease_seconds(seconds))
    try:
        yield hold
    finally:
        hold.stop()


@contextlib.contextmanager
def writing(store: Store, version: int) -> Iterator[None]:
    """Protect a change that was begun on a version, once it takes long; see :func:`at_work`."""
    hold = Hold(store, version, None, kind="write", seconds=lease_seconds())
    before = getattr(_AT_WORK, "hold", None)
    _AT_WORK.hold = hold
    try:
        yield
    finally:
        _AT_WORK.hold = before
        hold.stop()


def at_work() -> None:
    """Say that the change of this thread goes on: after a while it gets its lease."""
    hold: Hold | None = getattr(_AT_WORK, "hold", None)
    if hold is not None:
        hold.tick()
