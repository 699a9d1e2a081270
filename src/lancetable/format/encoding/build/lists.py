"""Lists of fixed size and packed structs as values of fixed width.

The items of all lists follow each other, with bitmaps where items are null; the children of a
packed struct are side by side.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import InputError, UnsupportedError
from lancetable.format.encoding.base import Bytes
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import (
    FixedValues,
    VariableValues,
    bool_bytes,
    fixed_values,
    list_items,
    variable_values,
)
from lancetable.format.encoding.build.fullzip import joined_values, split_values
from lancetable.format.encoding.build.values import ChunkedValues, chunk_counts, values_per_chunk
from lancetable.format.encoding.compressions.fixed_size_list import FixedSizeList
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.packed_struct import (
    PackedChild,
    PackedStruct,
    VariablePackedStruct,
)
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.kernels.ragged import Ragged
from lancetable.format.encoding.leaf import Kind, Shape


def packed_rows(array: pa.Array, kind: Kind) -> tuple[FixedValues, Compression]:
    """Return rows of fixed-width children."""
    parts = []
    for number, child in enumerate(kind.children):
        values = _child(array, number)
        parts.append(fixed_values(values, child.width).raw.reshape(-1, child.width))
    rows = np.concatenate(parts, axis=1)
    bits = tuple(child.width * 8 for child in kind.children)
    return FixedValues(rows, rows.shape[1]), PackedStruct(bits, Flat(rows.shape[1] * 8))


def _child(array: pa.Array, number: int) -> pa.Array:
    """Return one child; only nulls of the struct itself can be stored."""
    values = array.field(number)
    if values.null_count and values.filter(array.is_valid()).null_count:
        name = array.type.field(number).name
        raise InputError(f"child {name!r} of a packed struct holds nulls, which cannot be stored")
    return values


def zipped_rows(array: pa.Array, kind: Kind) -> tuple[VariableValues, Compression]:
    """Return rows of which some children have any length."""
    columns: list[list[bytes]] = []
    children: list[PackedChild] = []
    for number, child in enumerate(kind.children):
        values = _child(array, number)
        if child.shape is Shape.VARIABLE:
            text = variable_values(values)
            parts = split_values(text)
            columns.append([len(part).to_bytes(child.width, "little") + part for part in parts])
            children.append(PackedChild(Variable(child.width * 8), child.width * 8, True))  # noqa: FBT003
            continue
        if child.shape is Shape.LIST:
            fixed, encoding = lists_per_value(values, child)
        elif child.shape is Shape.FIXED:
            fixed, encoding = fixed_values(values, child.width), Flat(child.width * 8)
        else:
            raise UnsupportedError(f"a packed struct cannot hold values of type {child.type}")
        table = fixed.raw.reshape(-1, fixed.width)
        columns.append([row.tobytes() for row in table])
        children.append(PackedChild(encoding, fixed.width * 8, False))  # noqa: FBT003
    rows = [b"".join(parts) for parts in zip(*columns, strict=True)]
    return joined_values(rows, 32), VariablePackedStruct(tuple(children))


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
