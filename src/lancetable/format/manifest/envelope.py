"""The layout of a manifest file: sections, the message, the footer.

====================  ========  ======================================================
position              size      meaning
====================  ========  ======================================================
anywhere              4 + L     index section: length L (u32), then the message
anywhere              4 + L     transaction: length L (u32), then the message
P                     4 + L     manifest: length L (u32), then the message
end - 16              8         P (u64)
end - 8               2, 2      major and minor version (u16): 0 and 1 or 2
end - 4               4         ``LANC``
====================  ========  ======================================================

All numbers are little endian. The manifest message ends where the footer begins.
"""

import struct

from lancetable.errors import CorruptError, UnsupportedError

MAGIC = b"LANC"
FOOTER = struct.Struct("<QHH4s")
_LENGTH = struct.Struct("<I")
_MAJOR = 0


def manifest_message(data: bytes | memoryview) -> memoryview:
    """Return the bytes of the manifest message inside a manifest file.

    Raises:
        CorruptError: the file is not laid out as a manifest.
        UnsupportedError: the layout is of a later generation.
    """
    end = len(data) - FOOTER.size
    if end < _LENGTH.size:
        raise CorruptError(f"a manifest has at least 20 bytes, found {len(data)}")
    position, major, minor, magic = FOOTER.unpack_from(data, end)
    if magic != MAGIC:
        raise CorruptError(f"a manifest ends in {MAGIC!r}, found {magic!r}")
    if major != _MAJOR:
        raise UnsupportedError(
            f"manifest layout {major}.{minor} is newer than this release; the table was left "
            "untouched"
        )
    if position > end - _LENGTH.size:
        raise CorruptError(f"the footer puts the manifest at {position}, beyond its end at {end}")
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if start + length != end:
        raise CorruptError(
            f"the manifest of {length} bytes at {start} does not end at the footer at {end}"
        )
    return memoryview(data)[start:end]


def section(data: bytes | memoryview, position: int, what: str) -> memoryview:
    """Return the bytes of the message stored at a position; ``what`` is named in the message.

    Raises:
        CorruptError: the section does not lie inside the file.
    """
    end = len(data) - FOOTER.size
    if position > end - _LENGTH.size:
        raise CorruptError(f"the {what} at {position} lies beyond the end at {end}")
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if start + length > end:
        raise CorruptError(f"the {what} of {length} bytes at {start} passes the end at {end}")
    return memoryview(data)[start : start + length]


def frame(message: bytes) -> bytes:
    """Return a section: the length of a message, then the message."""
    return _LENGTH.pack(len(message)) + message


def seal(sections: bytes, *message: bytes) -> bytes:
    """Return a manifest file: sections as they are, then the message and the footer.

    The message may come in parts: the parts of a message in any order are the message.
    """
    length = _LENGTH.pack(sum(map(len, message)))
    footer = FOOTER.pack(len(sections), _MAJOR, 2, MAGIC)
    return b"".join((sections, length, *message, footer))
