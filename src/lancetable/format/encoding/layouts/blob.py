"""Blob pages: the payloads lie elsewhere in the file, the page says where (blob columns up to 2.1).

The inner page holds a packed struct of two u64, position and size. Size 0 with a position that is
not 0 stands for no value: the definition level is the position shifted right by 16 bits.
"""

from dataclasses import dataclass

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Page, Reading, Rows
from lancetable.format.encoding.blocks import Structs, fixed_words
from lancetable.format.encoding.layout import Entries, Layout, OpenPage
from lancetable.format.encoding.repdef import Layers


@dataclass(frozen=True, slots=True)
class BlobPage:
    """The description of a blob page."""

    inner: Layout
    layers: Layers

    def __str__(self) -> str:
        return f"blob({self.inner})"

    def open(self, page: Page, *, is_mapped: bool) -> Reading["OpenBlobPage"]:
        """Open the page of positions and sizes."""
        inner = yield from self.inner.open(page, is_mapped=is_mapped)
        return OpenBlobPage(inner, self.layers)


@dataclass(frozen=True, slots=True)
class OpenBlobPage:
    """A blob page whose inner page is open."""

    inner: OpenPage
    layers: Layers

    def read(self, rows: Rows) -> Reading[Entries]:
        """Read positions and sizes, and the nulls that hide in them."""
        entries = yield from self.inner.read(rows)
        block = entries.block
        if self.layers.max_rep:
            raise CorruptError("a blob page says its blobs are inside lists")
        if not isinstance(block, Structs) or len(block.children) != 2:
            if len(block) == 0 or getattr(block, "value", 0) is None:
                levels = np.full(len(block), self.layers.max_def, np.uint16)
                return entries._replace(def_=levels)
            raise CorruptError("a blob page does not hold positions and sizes")
        position = fixed_words(block.children[0], "blob positions")
        size = fixed_words(block.children[1], "blob sizes")
        levels = np.where(size == 0, position >> np.uint64(16), np.uint64(0)) & np.uint64(0xFFFF)
        if len(levels) and int(levels.max()) > self.layers.max_def:
            raise CorruptError("a blob page holds a definition level that it does not know")
        has_levels = self.layers.max_def > 0
        return entries._replace(def_=levels.astype(np.uint16) if has_levels else None)
