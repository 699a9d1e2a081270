"""Lists of fixed size: the items of all lists in one row, with bitmaps where items are null."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.base import Bytes
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import (
    FixedValues,
    bool_bytes,
    fixed_values,
    list_items,
)
from lancetable.format.encoding.build.values import ChunkedValues, chunk_counts, values_per_chunk
from lancetable.format.encoding.compressions.fixed_size_list import FixedSizeList
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.kernels.ragged import Ragged
from lancetable.format.encoding.leaf import Kind, Shape


class FlatLists(NamedTuple):
    """Nested lists laid flat.

    ``bitmaps`` has one entry per level, outer first: the validity of its items, a row per value, or
    None. ``items`` has the bytes of the inner-most items, a row per value.
    """

    bitmaps: list[npt.NDArray[np.bool_] | None]
    items: Bytes
    compression: Compression


def _flatten(array: pa.Array, kind: Kind) -> FlatLists:
    count = len(array)
    bitmaps: list[npt.NDArray[np.bool_] | None] = []
    sizes: list[int] = []
    level, inside = array, kind
    while inside.shape is Shape.LIST:
        child = list_items(level, inside.size)
        has_nulls = child.null_count > 0
        valid = np.asarray(child.is_valid().to_numpy(zero_copy_only=False)) if has_nulls else None
        bitmaps.append(None if valid is None else valid.reshape(count, -1))
        sizes.append(inside.size)
        level, inside = child, inside.children[0]
    if inside.shape is Shape.BOOL:
        items, bits = bool_bytes(level).reshape(count, -1), 1
    elif inside.shape is Shape.FIXED:
        items = fixed_values(level, inside.width).raw.reshape(count, -1)
        bits = inside.width * 8
    else:
        raise UnsupportedError(f"lists of fixed size cannot hold values of type {inside.type}")
    compression: Compression = Flat(bits)
    for size, bitmap in zip(reversed(sizes), reversed(bitmaps), strict=True):
        compression = FixedSizeList(size, compression, bitmap is not None)
    return FlatLists(bitmaps, items, compression)


def _bits(flags: npt.NDArray[np.bool_]) -> Bytes:
    return np.packbits(flags, axis=1, bitorder="little")


def lists_per_chunk(array: pa.Array, kind: Kind, limit: int) -> ChunkedValues | None:
    """Encode lists as chunks; None when one of them has ``limit`` bytes or more."""
    flat = _flatten(array, kind)
    is_bits = holds_bits(kind)
    width = (flat.items.shape[1] + 7) // 8 if is_bits else flat.items.shape[1]
    if width >= limit and not is_bits:
        return None
    total = width + sum((bitmap.shape[1] + 7) // 8 for bitmap in flat.bitmaps if bitmap is not None)
    each = values_per_chunk(total)
    counts = chunk_counts(len(array), each)
    buffers = [_chunk_bitmap(bitmap, each) for bitmap in flat.bitmaps if bitmap is not None]
    if is_bits:
        buffers.append(_chunk_bitmap(flat.items != 0, each))
    else:
        sizes = counts * width
        buffers.append(Ragged(flat.items.reshape(-1), np.cumsum(sizes) - sizes, sizes))
    return ChunkedValues(flat.compression, counts, tuple(buffers))


def holds_bits(kind: Kind) -> bool:
    """Return whether lists hold booleans, which only mini-blocks store in every case."""
    inner = kind
    while inner.shape is Shape.LIST:
        inner = inner.children[0]
    return inner is not kind and inner.shape is Shape.BOOL


def _chunk_bitmap(bitmap: npt.NDArray[np.bool_], each: int) -> Ragged:
    """Return the bits of every chunk, each starting at a byte."""
    parts = [
        np.packbits(bitmap[first : first + each], bitorder="little")
        for first in range(0, len(bitmap), each)
    ]
    sizes = np.array([len(part) for part in parts], np.int64)
    return Ragged(np.concatenate(parts), np.cumsum(sizes) - sizes, sizes)


def lists_per_value(array: pa.Array, kind: Kind) -> tuple[FixedValues, Compression]:
    """Return the bytes of each list by itself: its bitmaps, then its items.

    Raises:
        UnsupportedError: the lists hold booleans.
    """
    if holds_bits(kind):
        raise UnsupportedError(
            "lists of fixed size of booleans do not fit a page of their own; put fewer empty lists"
            " around them into one row"
        )
    flat = _flatten(array, kind)
    parts = [_bits(bitmap) for bitmap in flat.bitmaps if bitmap is not None]
    if not parts:
        return FixedValues(flat.items.reshape(-1), flat.items.shape[1]), flat.compression
    rows = np.concatenate([*parts, flat.items], axis=1)
    return FixedValues(rows, rows.shape[1]), flat.compression
