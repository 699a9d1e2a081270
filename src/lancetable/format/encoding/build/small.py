"""Pages of a few plain values, without a search for an encoding.

A commit of a single row builds one page per column, and looking at its values with arrays costs
more than writing them. What comes out is, byte for byte, what ``choose`` gives for such values:
there are too few of them for a dictionary, for packing or for codes, so they are stored flat, or
from 2.2 on as a constant when all are equal.
"""

import struct
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.encoding.build.codec import encode_layout
from lancetable.format.encoding.build.constant import LONGEST_INLINE, described, stored_value
from lancetable.format.encoding.build.field_options import DEFAULT, FieldOptions
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.layouts.chunks import ChunkShape
from lancetable.format.encoding.layouts.miniblock import MiniBlock
from lancetable.format.encoding.leaf import Kind, Shape
from lancetable.format.encoding.repdef import Layer, layers_of

MOST_VALUES = 99
"""From 100 values on a dictionary is considered."""
MOST_BYTES = 512
"""Up to here numbers are not packed; text of this size fits one chunk whatever its lengths."""
WIDEST = 255
_PLAIN = (Layer.ALL_VALID_ITEM,)
_HEADERS = {False: struct.Struct("<HH4x"), True: struct.Struct("<HI2x")}
_OFFSETS = {4: "I", 8: "Q"}


def small_page(
    array: pa.Array, kind: Kind, options: FieldOptions, *, is_new: bool
) -> PageDraft | None:
    """Build the page of a few values without nulls; None when they need a closer look.

    ``is_new`` says that the file is of version 2.2.
    """
    count = len(array)
    if not 0 < count <= MOST_VALUES or options is not DEFAULT or array.null_count:
        return None
    if kind.shape is Shape.FIXED and 0 < kind.width <= WIDEST:
        return _fixed_page(array, kind.width, count, is_new=is_new)
    if kind.shape is Shape.VARIABLE:
        return _text_page(array, kind.width, count, is_new=is_new)
    return None


def _fixed_page(array: pa.Array, width: int, count: int, *, is_new: bool) -> PageDraft | None:
    buffer = array.buffers()[1]
    if buffer is None or count * width > MOST_BYTES:
        return None
    first = array.offset * width
    raw = bytes(memoryview(buffer)[first : first + count * width])
    if is_new and width <= LONGEST_INLINE and (count == 1 or raw == raw[:width] * count):
        return PageDraft(count, [], described(_PLAIN, raw[:width]))
    if is_new and raw == raw[:width] * count:
        return PageDraft(count, [stored_value((raw[:width],))], described(_PLAIN, None))
    return _chunk_page(raw, count, Flat(width * 8), is_new=is_new)


def _text_page(array: pa.Array, width: int, count: int, *, is_new: bool) -> PageDraft | None:
    _, edges, data = array.buffers()
    if edges is None or data is None:
        return None
    offsets = struct.unpack_from(f"<{count + 1}{_OFFSETS[width]}", edges, array.offset * width)
    first, last = offsets[0], offsets[-1]
    head = (count + 1) * width
    if head + last - first > MOST_BYTES:
        return None
    text = bytes(memoryview(data)[first:last])
    size = offsets[1] - first
    if is_new and text == text[:size] * count and _are_even(offsets, size):
        value = (bytes(width) + size.to_bytes(width, "little"), text[:size])
        return PageDraft(count, [stored_value(value)], described(_PLAIN, None))
    if any(b - a > WIDEST for a, b in pairwise(offsets)):
        return None
    moved = [offset - first + head for offset in offsets]
    raw = struct.pack(f"<{count + 1}{_OFFSETS[width]}", *moved) + text
    return _chunk_page(raw + bytes(-len(raw) % width), count, Variable(width * 8), is_new=is_new)


def _are_even(offsets: tuple[int, ...], size: int) -> bool:
    return all(b - a == size for a, b in pairwise(offsets))


def _chunk_page(raw: bytes, count: int, compression: Flat | Variable, *, is_new: bool) -> PageDraft:
    """Put the values of a page into its only chunk."""
    chunk = _HEADERS[is_new].pack(0, len(raw)) + raw + bytes(-len(raw) % 8)
    word = ((len(chunk) // 8 - 1) << 4).to_bytes(4 if is_new else 2, "little")
    buffers = [np.frombuffer(word, np.uint8), np.frombuffer(chunk, np.uint8)]
    return PageDraft(count, buffers, _chunk_described(compression, count, is_new))


@lru_cache(maxsize=1024)
def _chunk_described(compression: Flat | Variable, count: int, is_new: bool) -> bytes:  # noqa: FBT001
    shape = ChunkShape(None, None, 1, is_new)
    return encode_layout(
        MiniBlock(
            shape=shape,
            values=compression,
            dictionary=None,
            dictionary_items=0,
            layers=layers_of(_PLAIN),
            has_row_index=False,
            items=count,
        )
    )
