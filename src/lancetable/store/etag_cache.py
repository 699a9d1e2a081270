"""Cache small objects by the entity tag of their content.

A listing contains the tag of each object. When the tag is unchanged, the bytes are the same and are
not fetched again, so reopening a table costs one request.
"""

import threading
from collections import OrderedDict

MOST_BYTES = 32 * 1024 * 1024
LARGEST = MOST_BYTES // 8


class Kept:
    """Contents by key and tag; the least recently used are dropped first."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._contents: OrderedDict[object, tuple[str, bytes]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._contents.clear()
            self._bytes = 0

    def find(self, key: object, tag: str) -> bytes | None:
        """Return the content of an object if its tag matches."""
        with self._lock:
            found = self._contents.get(key)
            if found is None or found[0] != tag:
                return None
            self._contents.move_to_end(key)
            return found[1]

    def keep(self, key: object, tag: str | None, content: bytes) -> None:
        """Remember the content of an object, unless it is large or has no tag."""
        if not tag or len(content) > LARGEST:
            return
        with self._lock:
            _, old = self._contents.pop(key, ("", b""))
            self._contents[key] = (tag, content)
            self._bytes += len(content) - len(old)
            while self._bytes > self._most:
                _, (_, gone) = self._contents.popitem(last=False)
                self._bytes -= len(gone)
