"""Hold leases: write them once work takes long, and renew them in a thread.

Nothing is written for short work. Once work has gone on for a while its lease is written, and a
thread of the process renews it in time; the thread lives only as long as there are such leases. The
first writing, before there is a thread, counts longer.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator

from lancetable.commit.leases.records import FIRST_FACTOR, LEASE_SUFFIX, LEASES, lease_seconds
from lancetable.errors import LanceTableError, StoreError
from lancetable.store import Store

LAZY_AFTER = 2.0
"""Seconds of work after which a lease is worth its file, and a thread that renews it."""

_LENGTH = 256
"""Size of a lease in bytes: it is rewritten in place, so a shorter one would leave old bytes."""


class Hold:
    """One lease; nothing is written before :meth:`start`, or before :meth:`tick` after a while."""

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
        """True while the file of the lease exists."""
        return bool(self._path)

    def tick(self) -> None:
        """Report that the work goes on; after a while the lease is written and renewed."""
        if not self._is_kept and time.monotonic() - self._started >= LAZY_AFTER:
            self.keep()

    def keep(self) -> None:
        """Write the lease, and renew it until :meth:`stop`."""
        self._is_kept = True
        self.start()
        if self._path:
            self.renew()
            _KEEPER.add(self)

    def require(self) -> None:
        """Keep the lease, and check that it was written.

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
        """Write the lease, unless it exists; a store that refuses is ignored."""
        if self._path or self.seconds <= 0:
            return
        path = f"{LEASES}/{os.urandom(16).hex()}{LEASE_SUFFIX}"
        try:
            file = self.store.create(path)
            file.write([self._bytes(self.seconds * FIRST_FACTOR)])
            file.close()
        except LanceTableError as cause:
            self._failure = str(cause)
            # The file may exist although the request failed: remove it, or let it expire.
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
        # Reentrant: a generator that is collected while the lock is held may take it again.
        self._lock = threading.RLock()
        self._holds: set[Hold] = set()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def forget(self) -> None:
        """Drop all leases in a forked process; they belong to its parent."""
        self._forget()

    def add(self, hold: Hold) -> None:
        """Renew a lease from now on."""
        with self._lock:
            self._holds.add(hold)
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="lancetable-leases", daemon=True
                )
                self._thread.start()

    def remove(self, hold: Hold) -> None:
        """Stop renewing a lease; the thread ends with the last one."""
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

_CURRENT = threading.local()


@contextlib.contextmanager
def reading(
    store: Store, first: int, last: int | None = None, *, seconds: int | None = None
) -> Iterator[Hold]:
    """Yield a lease for reading some versions; the caller starts it when the read may take long."""
    last = first if last is None else last
    hold = Hold(store, first, last, kind="read", seconds=lease_seconds(seconds))
    try:
        yield hold
    finally:
        hold.stop()


@contextlib.contextmanager
def writing(store: Store, version: int) -> Iterator[None]:
    """Protect a change that builds on a version, once it takes long; see :func:`extend_lease`."""
    hold = Hold(store, version, None, kind="write", seconds=lease_seconds())
    before = getattr(_CURRENT, "hold", None)
    _CURRENT.hold = hold
    try:
        yield
    finally:
        _CURRENT.hold = before
        hold.stop()


def extend_lease() -> None:
    """Report that the change of this thread goes on; after a while it gets its lease."""
    hold: Hold | None = getattr(_CURRENT, "hold", None)
    if hold is not None:
        hold.tick()
