"""The protocol of page layouts, and the result they return."""

from typing import NamedTuple, Protocol

from lancetable.format.encoding.base import Integers, Levels, Page, Reading, Rows
from lancetable.format.encoding.blocks import Block
from lancetable.format.encoding.listscan import ListScan
from lancetable.format.encoding.repdef import Layers, Mask


class Entries(NamedTuple):
    """Decoded entries of a page, and which of them were asked for.

    ``block`` holds one value per visible entry, ``rep`` and ``def_`` one level per entry. A layout
    may decode more than it was asked for, as chunks are decoded whole; ``keep`` says what counts:
    a slice or a mask over the entries, or entry numbers in pages without lists.
    """

    block: Block
    rep: Levels | None
    def_: Levels | None
    keep: slice | Mask | Integers
    lists: ListScan | None = None
    """Rows of lists that are told in this way; ``rep``, ``def_`` and ``keep`` then say nothing."""


class OpenPage(Protocol):
    """A page whose own tables (chunk sizes, row index, dictionary) have been read."""

    def read(self, rows: Rows) -> Reading[Entries]:
        """Read rows of the page."""
        ...


class Layout(Protocol):
    """The layout of a page."""

    @property
    def layers(self) -> Layers:
        """The nodes from leaf to root."""
        ...

    def __str__(self) -> str:
        """Return a short description for displaying pages."""
        ...

    def open(self, page: Page, *, is_mapped: bool) -> Reading[OpenPage]:
        """Read the page's own tables."""
        ...
