"""Fetch pages that are wanted nearly whole in one round instead of two.

A page is usually read by way of a table of its chunks, which is fetched first. Over a network that
costs a round, and for a page most of whose rows are wanted it saves nothing.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from lancetable.format.encoding.base import Page, Rows
from lancetable.store import ByteRange, ReadableFile

MOST = 0.5
"""The share of a page's rows from which on all of it is fetched."""


def hold(file: ReadableFile, wanted: Iterable[tuple[Page, Rows]]) -> ReadableFile:
    """Return the file with those pages at hand of which most rows are wanted."""
    ranges = [
        ByteRange(*buffer.whole())
        for page, rows in wanted
        if isinstance(rows, range) and len(rows) >= MOST * page.rows
        for buffer in page.buffers
        if buffer.size
    ]
    return HeldFile(file, sorted(set(ranges))) if ranges else file


class HeldFile:
    """A file of which some ranges were fetched together with the first that is asked for."""

    __slots__ = ("_blocks", "_file", "_ranges", "_starts")

    is_mapped = False

    def __init__(self, file: ReadableFile, ranges: Sequence[ByteRange]) -> None:
        self._file = file
        self._ranges = ranges
        self._starts = [one.start for one in ranges]
        self._blocks: list[memoryview] = []

    @property
    def size(self) -> int:
        """The size of the file."""
        return self._file.size

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[memoryview]:
        """Return the bytes of each range; the first call also fetches what is to be held."""
        places = [self._place(one) for one in ranges]
        missing = [one for one, place in zip(ranges, places, strict=True) if place is None]
        ahead = [] if self._blocks else self._ranges
        fetched = self._file.read_ranges([*missing, *ahead]) if missing or ahead else []
        if ahead:
            self._blocks = fetched[len(missing) :]
        rest = iter(fetched)
        return [
            next(rest) if place is None else self._cut(one, place)
            for one, place in zip(ranges, places, strict=True)
        ]

    def _place(self, wanted: ByteRange) -> int | None:
        place = bisect_right(self._starts, wanted.start) - 1
        return place if place >= 0 and wanted.stop <= self._ranges[place].stop else None

    def _cut(self, wanted: ByteRange, place: int) -> memoryview:
        first = self._starts[place]
        return self._blocks[place][wanted.start - first : wanted.stop - first]
