"""A new object in the making: small ones in one request, large ones in parts sent side by side.

Bytes are collected until they make a part. With the first full part a thread begins the upload and
takes further parts from a short queue, so that no more than a few parts are in memory. When the
file is given up the upload is, too, and nothing of it stays.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence

from lancetable.errors import LanceTableError, StoreError
from lancetable.store.base import Bytes
from lancetable.store.client import Client
from lancetable.store.fetch import repeated
from lancetable.store.refusals import translated
from lancetable.store.settings import Limits


class _GivenUpError(Exception):
    """Ends an upload from inside; the client then tells the store to forget the parts."""


class Upload:
    """A file that becomes an object when it is closed."""

    def __init__(self, client: Client, key: str, limits: Limits, place: str) -> None:
        self._client = client
        self._key = key
        self._limits = limits
        self._place = place
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._parts: _Parts | None = None
        self._is_done = False

    def write(self, parts: Sequence[Bytes]) -> None:
        """Add bytes at the end.

        Raises:
            StoreError: an earlier part could not be stored.
        """
        for part in parts:
            # The caller may change its memory once this returns.
            content = bytes(part)
            self._held.append(content)
            self._held_bytes += len(content)
            if self._held_bytes >= self._limits.part_bytes:
                self._send()

    def close(self) -> None:
        """Finish the object; it is there afterwards, whole.

        Raises:
            StoreError: it could not be stored.
        """
        if self._is_done:
            return
        if self._parts is None:
            content = b"".join(self._held)
            repeated(
                lambda: self._client.put(self._key, content, use_multipart=False),
                self._place,
                self._limits,
            )
        else:
            if self._held:
                self._send()
            self._parts.finish()
        self._is_done = True
        self._held.clear()

    def abort(self) -> None:
        """Give up; nothing of the object stays, unless the store does not let it be removed."""
        self._held.clear()
        if self._parts is not None and not self._is_done:
            self._parts.give_up()
        elif self._is_done:
            with contextlib.suppress(LanceTableError):
                repeated(lambda: self._client.delete(self._key), self._place, self._limits)
        self._is_done = True

    def _send(self) -> None:
        if self._parts is None:
            self._parts = _Parts(self._client, self._key, self._limits, self._place)
        held, self._held, self._held_bytes = self._held, [], 0
        self._parts.add(held)


class _Parts:
    """An upload under way in a thread of its own."""

    def __init__(self, client: Client, key: str, limits: Limits, place: str) -> None:
        self._place = place
        self._queue: queue.Queue[list[bytes] | _GivenUpError | None] = queue.Queue(1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(client, key, limits), name="lancetable-upload", daemon=True
        )
        self._thread.start()

    def add(self, part: list[bytes]) -> None:
        """Hand over a part, waiting while too many are on their way."""
        while self._thread.is_alive():
            try:
                return self._queue.put(part, timeout=0.5)
            except queue.Full:
                continue
        raise self._failure()

    def finish(self) -> None:
        """Wait for all parts."""
        self._end(None)
        if self._error is not None:
            raise self._failure()

    def give_up(self) -> None:
        """Have the store forget the parts."""
        self._end(_GivenUpError())

    def _end(self, last: "_GivenUpError | None") -> None:
        while self._thread.is_alive():
            try:
                self._queue.put(last, timeout=0.5)
                break
            except queue.Full:
                continue
        self._thread.join()

    def _failure(self) -> LanceTableError:
        if self._error is None:
            return StoreError(f"{self._place}: the upload ended early")
        return translated(self._error, self._place)

    def _run(self, client: Client, key: str, limits: Limits) -> None:
        try:
            client.put(
                key,
                self._feed(),
                use_multipart=True,
                chunk_size=limits.part_bytes,
                max_concurrency=limits.upload_parts,
            )
        except _GivenUpError:
            return
        except BaseException as cause:
            self._error = cause

    def _feed(self) -> Iterator[bytes]:
        while True:
            part = self._queue.get()
            if part is None:
                return
            if isinstance(part, _GivenUpError):
                raise part
            yield from part
