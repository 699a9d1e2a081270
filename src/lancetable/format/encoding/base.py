"""The interface of decoding: an encoding requests bytes, it never fetches them.

Decoding a page is a generator. It yields the spans it needs next, receives their bytes, may ask
again (an index first, then what the index points to) and returns what it decoded. Whoever drives
many such readings can fetch the spans of all of them in one round.
"""

from bisect import bisect_right
from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError

T = TypeVar("T")

Bytes: TypeAlias = npt.NDArray[np.uint8]
Integers: TypeAlias = npt.NDArray[np.int64]
Levels: TypeAlias = npt.NDArray[np.uint16]

Rows: TypeAlias = range | Integers
"""Rows to read: a range with step 1, or strictly increasing row numbers."""


class Span(NamedTuple):
    """The bytes ``[start, stop)`` of the file, always inside one buffer of a page."""

    start: int
    stop: int


Reading: TypeAlias = Generator[Sequence[Span], Sequence[memoryview], T]
"""A read in progress: yields spans, receives their bytes in the same order, returns a result."""


class PageBuffer(NamedTuple):
    """One buffer of a page: where it lies in the file."""

    position: int
    size: int

    def whole(self) -> Span:
        """Return the span of all bytes."""
        return Span(self.position, self.position + self.size)

    def part(self, start: int, stop: int) -> Span:
        """Return the span of some bytes, counted from the start of this buffer."""
        if not 0 <= start <= stop <= self.size:
            raise CorruptError(
                f"a page asks for bytes {start} to {stop} of a buffer of {self.size} bytes"
            )
        return Span(self.position + start, self.position + stop)


class Page(NamedTuple):
    """A run of rows of one column.

    ``description`` is what the page says about its encoding, decoded: a layout in 2.1 and later,
    an array encoding in 2.0.
    """

    rows: int
    first_row: int
    buffers: tuple[PageBuffer, ...]
    description: object

    def buffer(self, number: int) -> PageBuffer:
        """Return one buffer.

        Raises:
            CorruptError: the page has fewer buffers than its encoding needs.
        """
        if not 0 <= number < len(self.buffers):
            raise CorruptError(f"the page has {len(self.buffers)} buffers, number {number} is used")
        return self.buffers[number]


class Column(NamedTuple):
    """The pages of one column, in row order. ``is_blob`` marks the blob columns of 2.0 files."""

    pages: tuple[Page, ...]
    rows: int
    is_blob: bool = False

    def page_of(self, row: int) -> int:
        """Return the number of the page that holds a row."""
        if len(self.pages) == 1:
            return 0
        return bisect_right(self.pages, row, key=_first_row) - 1

    def pick(self, rows: Rows) -> list[tuple[int, Rows]]:
        """Split rows of the column into (page number, rows inside that page)."""
        if isinstance(rows, range):
            return _pick_range(self.pages, rows)
        return _pick_many(self.pages, rows)


def _first_row(page: Page) -> int:
    return page.first_row


def _pick_range(pages: tuple[Page, ...], rows: range) -> list[tuple[int, Rows]]:
    if len(pages) == 1:
        return [(0, rows)]
    picked: list[tuple[int, Rows]] = []
    for number, page in enumerate(pages):
        start = max(rows.start - page.first_row, 0)
        stop = min(rows.stop - page.first_row, page.rows)
        if start < stop:
            picked.append((number, range(start, stop)))
    return picked


def _pick_many(pages: tuple[Page, ...], rows: Integers) -> list[tuple[int, Rows]]:
    if len(pages) == 1:
        return [(0, rows)] if len(rows) else []
    edges = np.searchsorted(rows, [page.first_row for page in pages[1:]]).tolist()
    picked: list[tuple[int, Rows]] = []
    for number, (start, stop) in enumerate(zip([0, *edges], [*edges, len(rows)], strict=True)):
        if start < stop:
            picked.append((number, rows[start:stop] - pages[number].first_row))
    return picked


def scaled(rows: Rows, factor: int) -> Rows:
    """Turn rows into the entries of a column that holds ``factor`` entries for each."""
    if factor == 1:
        return rows
    if isinstance(rows, range):
        return range(rows.start * factor, rows.stop * factor)
    return (rows[:, None] * factor + np.arange(factor)).reshape(-1)
