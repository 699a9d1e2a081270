"""Upload new objects: small ones in one request, large ones in concurrent parts.

Bytes are collected until they fill a part. With the first full part a thread begins the upload and
takes further parts from a short queue, so that only a few parts are in memory. Aborting the file
aborts the upload, which leaves nothing behind.

The answer to the last request of an upload may be lost, and services refuse its repetition because
the upload is finished. So an upload that failed at its end has succeeded if the object exists with
its full size: no other writer uses its name, and services create it whole or not at all.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator, Sequence

from lancetable.errors import LanceTableError, StoreError
from lancetable.store.base import Bytes
from lancetable.store.cloud.client import Connection
from lancetable.store.cloud.errors import Verb, is_client_error, translated
from lancetable.store.cloud.fetch import repeated


class _GivenUpError(Exception):
    """Ends an upload from inside; the client then has the store discard the parts."""


def put_whole(connection: Connection, key: str, content: bytes, place: str) -> None:
    """Write or replace an object by one request."""
    client = connection.client_for(len(content))
    repeated(
        lambda: client.put(key, content, use_multipart=False),
        place,
        connection.settings.limits,
        Verb.WRITE,
    )


class Upload:
    """A file that becomes an object when it is closed."""

    def __init__(self, connection: Connection, key: str, place: str) -> None:
        self._connection = connection
        self._key = key
        self._limits = connection.settings.limits
        self._place = place
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._size = 0
        self._parts: _Parts | None = None
        self._may_be_there = False
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
            self._size += len(content)
            if self._held_bytes >= self._limits.part_bytes:
                self._send()

    def close(self) -> None:
        """Finish the object; afterwards it exists with all of its content.

        Raises:
            StoreError: it could not be stored.
        """
        if self._is_done:
            return
        self._may_be_there = True
        if self._parts is None:
            content = b"".join(self._held)
            put_whole(self._connection, self._key, content, self._place)
        else:
            if self._held:
                self._send()
            self._finish(self._parts)
        self._is_done = True
        self._held.clear()

    def abort(self) -> None:
        """Abort and remove the object, unless the store does not allow that."""
        self._held.clear()
        if self._parts is not None and not self._is_done:
            self._parts.give_up()
        if self._may_be_there:
            client = self._connection.client
            with contextlib.suppress(LanceTableError):
                repeated(lambda: client.delete(self._key), self._place, self._limits, Verb.DELETE)
        self._may_be_there = False
        self._is_done = True

    def _finish(self, parts: "_Parts") -> None:
        try:
            parts.finish()
        except LanceTableError:
            if not self._is_whole():
                raise

    def _is_whole(self) -> bool:
        client = self._connection.client
        try:
            found = repeated(lambda: client.head(self._key), self._place, self._limits)
        except LanceTableError:
            return False
        return int(found["size"]) == self._size

    def _send(self) -> None:
        if self._parts is None:
            self._parts = _Parts(self._connection, self._key, self._place)
        held, self._held, self._held_bytes = self._held, [], 0
        self._parts.add(held)


class _Parts:
    """An upload that runs in its own thread."""

    def __init__(self, connection: Connection, key: str, place: str) -> None:
        self._connection = connection
        self._key = key
        self._place = place
        self._limits = connection.settings.limits
        self._queue: queue.Queue[list[bytes] | _GivenUpError | None] = queue.Queue(1)
        self._has_begun = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lancetable-upload", daemon=True)
        self._thread.start()

    def add(self, part: list[bytes]) -> None:
        """Queue a part, waiting while too many are being sent."""
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
        """Abort the upload and discard the parts."""
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
        error = self._error
        if isinstance(error, LanceTableError):
            return error
        if error is None:
            return StoreError(f"{self._place}: the upload ended early")
        return StoreError(f"{self._place}: the upload failed, {type(error).__name__}: {error}")

    def _run(self) -> None:
        try:
            # The request that begins an upload is not repeated by the client for every service.
            repeated(self._attempt, self._place, self._limits, Verb.WRITE)
        except BaseException as cause:
            self._error = cause

    def _attempt(self) -> None:
        try:
            self._connection.uploader.put(
                self._key,
                self._feed(),
                use_multipart=True,
                chunk_size=self._limits.part_bytes,
                max_concurrency=self._limits.upload_parts,
            )
        except _GivenUpError:
            return
        except BaseException as cause:
            if not self._has_begun or not is_client_error(cause):
                raise
            # The parts that were taken are no longer in memory.
            raise translated(cause, self._place, Verb.WRITE, self._limits.caller) from None

    def _feed(self) -> Iterator[bytes]:
        while True:
            part = self._queue.get()
            self._has_begun = True
            if part is None:
                return
            if isinstance(part, _GivenUpError):
                raise part
            yield from part
