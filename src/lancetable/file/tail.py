"""The end of a data file: its footer and the metadata of its columns."""

from lancetable.file.codec import decode_footer
from lancetable.file.model import Footer
from lancetable.format.limits import read_limits
from lancetable.store import ByteRange, ReadableFile

TAIL_BYTES = 64 * 1024


def read_tail(file: ReadableFile) -> tuple[Footer, memoryview, int]:
    """Read the footer and everything from the first column metadata on.

    Raises:
        CorruptError: the footer contradicts the size of the file.
        LimitError: the metadata exceeds the limit on opening.
    """
    start = 0 if file.is_mapped else max(0, file.size - TAIL_BYTES)
    (tail,) = file.read_ranges([ByteRange(start, file.size)])
    footer = decode_footer(tail, file.size)
    read_limits().check_open(file.size - footer.column_start)
    if footer.column_start < start:
        start = footer.column_start
        (tail,) = file.read_ranges([ByteRange(start, file.size)])
    return footer, tail, start
