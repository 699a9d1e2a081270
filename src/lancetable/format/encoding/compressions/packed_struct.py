"""Structs stored row by row.

Fixed children: the bytes of all children of a row, then the next row. Children of any length: per
row and child either its bytes or its length and its bytes; each child then has an encoding of its
own for the values cut out.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from lancetable.errors import CorruptError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.blocks import (
    Block,
    Chunks,
    Compression,
    FixedWidth,
    Structs,
    VariableWidth,
    addressable,
    for_chunks,
    for_values,
)
from lancetable.format.encoding.kernels.ragged import gather_slices

if TYPE_CHECKING:
    from lancetable.format.encoding.blocks import Addressable


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Rows of fixed-width children; ``bits`` of each child."""

    bits: tuple[int, ...]
    inner: Compression

    def __str__(self) -> str:
        return f"packed({','.join(map(str, self.bits))})"

    @property
    def buffer_count(self) -> int:
        """One buffer holds the rows."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Split the rows of all chunks into children."""
        return self._split(for_chunks(self.inner).decode_chunks(chunks))

    def prepare(self, chunks: Chunks) -> object | None:
        """Let the rows be prepared."""
        inner = addressable(self.inner)
        return None if inner is None else inner.prepare(chunks)

    def gather(self, prepared: object, chunk: Integers, inside: Integers) -> Block:
        """Address single rows."""
        return self._split(cast("Addressable", self.inner).gather(prepared, chunk, inside))

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Split rows that were cut out already."""
        return self._split(stored)

    def _split(self, rows: Block) -> Block:
        widths = [bits // 8 for bits in self.bits]
        if not isinstance(rows, FixedWidth) or rows.width != sum(widths) or rows.width == 0:
            raise CorruptError("the rows of a packed struct do not have the width of its children")
        table = rows.data.reshape(-1).view(np.uint8).reshape(-1, rows.width)
        edges = np.cumsum([0, *widths]).tolist()
        children = tuple(
            FixedWidth(np.ascontiguousarray(table[:, first:last]), last - first)
            for first, last in pairwise(edges)
        )
        return Structs(children, len(table))


class PackedChild(NamedTuple):
    """One child of a packed struct with children of any length."""

    encoding: Compression
    bits: int
    is_variable: bool
    """True when ``bits`` is the width of a length in front of the bytes."""


@dataclass(frozen=True, slots=True)
class VariablePackedStruct:
    """Rows whose children may have any length."""

    children: tuple[PackedChild, ...]

    def __str__(self) -> str:
        return f"varpacked({','.join(str(child.encoding) for child in self.children)})"

    def decode_values(self, stored: FixedWidth | VariableWidth) -> Block:
        """Walk through the children of all rows at once."""
        if not isinstance(stored, VariableWidth):
            raise CorruptError("a packed struct of any length is stored with a fixed width")
        cursor = stored.offsets[:-1].copy()
        ends = stored.offsets[1:]
        blocks: list[Block] = []
        for child in self.children:
            if child.is_variable:
                piece, cursor = _cut_variable(stored.data, cursor, ends, child.bits // 8)
            else:
                piece, cursor = _cut_fixed(stored.data, cursor, ends, child.bits // 8)
            blocks.append(for_values(child.encoding).decode_values(piece))
        if (cursor != ends).any():
            raise CorruptError("a row of a packed struct is longer than its children")
        return Structs(tuple(blocks), len(ends))


def _cut_fixed(
    data: Bytes, cursor: Integers, ends: Integers, width: int
) -> tuple[FixedWidth | VariableWidth, Integers]:
    stop = cursor + width
    if (stop > ends).any():
        raise CorruptError("a row of a packed struct is shorter than its children")
    return FixedWidth(data[cursor[:, None] + np.arange(width)], width), stop


def _cut_variable(
    data: Bytes, cursor: Integers, ends: Integers, width: int
) -> tuple[FixedWidth | VariableWidth, Integers]:
    first = cursor + width
    if (first > ends).any():
        raise CorruptError("a row of a packed struct is shorter than its children")
    raw = np.zeros((len(cursor), 8), np.uint8)
    raw[:, :width] = data[cursor[:, None] + np.arange(width)]
    lengths = raw.view("<u8").reshape(-1)
    if (lengths > (ends - first).astype(np.uint64)).any():
        raise CorruptError("a value of a packed struct is longer than its row")
    stop = first + lengths.astype(np.int64)
    return VariableWidth(*gather_slices(data, first, stop)), stop
