"""One blob as a file: nothing is read before it is asked for."""

import io
import os
from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.store import ByteRange, ReadableFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class BlobFile(io.RawIOBase):
    """A read-only, seekable file over a range of a larger one."""

    def __init__(self, file: ReadableFile, position: int, size: int) -> None:
        super().__init__()
        self._file = file
        self._start = position
        self._size = size
        self._position = 0

    def __repr__(self) -> str:
        return f"<BlobFile of {self._size} bytes{', closed' if self.closed else ''}>"

    def size(self) -> int:
        """Return the number of bytes."""
        return self._size

    def readable(self) -> bool:
        """Say that the file can be read."""
        return True

    def seekable(self) -> bool:
        """Say that the position can be moved."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        self._checkClosed()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to a position counted from the start, the current position or the end."""
        self._checkClosed()
        origins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}
        if whence not in origins or origins[whence] + offset < 0:
            raise InputError(f"a blob has no position {offset} from {whence}")
        self._position = origins[whence] + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to ``size`` bytes, or all that are left."""
        self._checkClosed()
        return bytes(self._next(self._size if size is None or size < 0 else size))

    def readall(self) -> bytes:
        """Return all bytes that are left."""
        return self.read()

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill a buffer and return the number of bytes."""
        self._checkClosed()
        target = memoryview(buffer).cast("B")
        part = self._next(len(target))
        target[: len(part)] = part
        return len(part)

    def _next(self, size: int) -> memoryview:
        start = min(self._position, self._size)
        stop = min(start + size, self._size)
        self._position = max(self._position, stop)
        if start == stop:
            return memoryview(b"")
        return self._file.read_ranges([ByteRange(self._start + start, self._start + stop)])[0]
