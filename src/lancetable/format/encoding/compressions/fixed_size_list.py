"""Lists of one length, the items of all of them in one row.

In a chunk: for each level with nulls among its items a bitmap, outer level first, then one buffer
of items. Per value: the same for a single value, the bitmaps padded to bytes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.blocks import (
    Addressable,
    Bits,
    Block,
    Chunks,
    Compression,
    FixedSizeLists,
    FixedWidth,
    Repeated,
    VariableWidth,
    for_chunks,
    for_values,
)
from lancetable.format.encoding.kernels.ragged import Ragged


class WideChunks(NamedTuple):
    """Chunks of lists, addressed as values that are as wide as a list."""

    wide: Addressable
    prepared: object
    item_bytes: int


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Values of ``dimension`` items; nested lists hold another of the same kind inside."""

    dimension: int
    inner: Compression
    has_validity: bool

    def __str__(self) -> str:
        nulls = "?" if self.has_validity else ""
        return f"fsl{self.dimension}{nulls}({self.inner})"

    @property
    def buffer_count(self) -> int:
        """The items and one bitmap per level that has one."""
        return for_chunks(self.inner).buffer_count + self.has_validity

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Decode the items of all chunks together."""
        counts = chunks.counts * self.dimension
        validity = None
        buffers = chunks.buffers
        if self.has_validity:
            validity = _bits(buffers[0].resized((counts + 7) // 8), counts)
            buffers = buffers[1:]
        items = for_chunks(self.inner).decode_chunks(Chunks(buffers, counts))
        return FixedSizeLists(self.dimension, items, validity, int(chunks.counts.sum()))

    def prepare(self, chunks: Chunks) -> "WideChunks | None":
        """See whole lists of plain items as single wide values."""
        widen = getattr(self.inner, "widened", None)
        bits = getattr(self.inner, "bits", 0)
        if self.has_validity or widen is None or bits % 8:
            return None
        wide = widen(self.dimension)
        return WideChunks(wide, wide.prepare(chunks), bits // 8)

    def gather(self, prepared: "WideChunks", chunk: Integers, inside: Integers) -> Block:
        """Address whole lists."""
        found = prepared.wide.gather(prepared.prepared, chunk, inside)
        if not isinstance(found, FixedWidth):
            raise CorruptError(f"{self} cannot be addressed")
        items = FixedWidth(found.data, prepared.item_bytes)
        return FixedSizeLists(self.dimension, items, None, len(inside))

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Split the stored bytes of each value into bitmaps and items."""
        if not isinstance(stored, FixedWidth):
            raise CorruptError("lists of one length are not stored with a fixed width")
        if not self.has_bitmaps():
            return self._plain(stored)
        rows = stored.data.view(np.uint8).reshape(len(stored), stored.width)
        return self.split(rows, 1)

    def has_bitmaps(self) -> bool:
        """Return whether any level stores which of its items are null."""
        inner = self.inner
        return self.has_validity or (isinstance(inner, FixedSizeList) and inner.has_bitmaps())

    def _plain(self, stored: FixedWidth) -> Block:
        if getattr(self.inner, "bits", 0) == 1:
            table = stored.data.reshape(-1).view(np.uint8).reshape(-1, stored.width)
            return FixedSizeLists(
                self.dimension, _row_bits(table, self.dimension), None, len(table)
            )
        if stored.width % self.dimension:
            raise CorruptError("the width of a list is not a multiple of its dimension")
        items = FixedWidth(stored.data, stored.width // self.dimension)
        decoded = for_values(self.inner).decode_values(items)
        return FixedSizeLists(self.dimension, decoded, None, len(stored))

    def split(self, rows: Bytes, lists: int) -> Block:
        """Decode rows of bytes that each hold ``lists`` lists of this level."""
        count = len(rows)
        items = lists * self.dimension
        validity = None
        if self.has_validity:
            size = (items + 7) // 8
            if size > rows.shape[1]:
                raise CorruptError("a list is too short for its bitmap")
            bits = np.unpackbits(rows[:, :size], axis=1, count=items, bitorder="little")
            validity = bits.astype(np.bool_).reshape(-1)
            rows = rows[:, size:]
        if isinstance(self.inner, FixedSizeList):
            block = self.inner.split(rows, items)
        else:
            block = self._items(rows, items)
        return FixedSizeLists(self.dimension, block, validity, count * lists)

    def _items(self, rows: Bytes, items: int) -> Block:
        if rows.shape[1] == 0:
            # Items that are all null have no bytes.
            return Repeated(None, len(rows) * items)
        if getattr(self.inner, "bits", 0) == 1:
            return _row_bits(rows, items)
        if rows.shape[1] % items:
            raise CorruptError("the width of a list is not a multiple of its dimension")
        plain = FixedWidth(np.ascontiguousarray(rows), rows.shape[1] // items)
        return for_values(self.inner).decode_values(plain)


def _row_bits(rows: Bytes, each: int) -> Bits:
    """Bring the bits of rows together, each row of which is filled up to whole bytes."""
    if rows.shape[1] != (each + 7) // 8:
        raise CorruptError(f"{each} bits do not fill {rows.shape[1]} bytes")
    bits = np.unpackbits(np.ascontiguousarray(rows), axis=1, count=each, bitorder="little")
    return Bits(np.packbits(bits.reshape(-1), bitorder="little"), len(rows) * each)


def _bits(pieces: Ragged, counts: Integers) -> npt.NDArray[np.bool_]:
    parts = [
        np.unpackbits(pieces.piece(number), count=count, bitorder="little")
        for number, count in enumerate(counts.tolist())
    ]
    return np.concatenate(parts).astype(np.bool_) if parts else np.empty(0, np.bool_)
