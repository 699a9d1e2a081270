"""Full-zip pages: every value behind its own levels (see ``layouts.fullzip``).

Pages of blob columns of the first generation are built here too (see ``layouts.blob``).
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers, Levels
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import FixedValues, PageDraft, VariableValues
from lancetable.format.encoding.build.codec import encode_blob_layout, encode_layout
from lancetable.format.encoding.build.miniblock import build_miniblock
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.build.values import encode_flat
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.packed_struct import PackedStruct
from lancetable.format.encoding.layouts.fullzip import FullZip
from lancetable.format.encoding.layouts.zipped import Zipped
from lancetable.format.encoding.repdef import Layer, Layers, Mask, layers_of, visible


def build_fullzip(
    leaf: Shredded, values: FixedValues | VariableValues, compression: Compression, rows: int
) -> PageDraft:
    """Build a page from values that were encoded one by one."""
    layers = layers_of(leaf.layers)
    is_variable = isinstance(values, VariableValues)
    bits = values.bits if isinstance(values, VariableValues) else values.width * 8
    zipped = Zipped(_bits(leaf.rep), _bits(leaf.def_), bits, is_variable)
    words = _control_words(leaf, zipped)
    shown = None if leaf.def_ is None else visible(leaf.def_, layers)
    if isinstance(values, FixedValues):
        count = len(values.raw) // max(values.width, 1)
        items = count if words is None else len(words)
        data, sizes = _zip_fixed(values, words, shown, zipped)
    else:
        count = len(values.offsets) - 1
        items = count if words is None else len(words)
        is_valid = None if leaf.def_ is None else leaf.def_ == 0
        data, sizes = _zip_variable(values, words, shown, is_valid, zipped)
    buffers = [data]
    if sizes is not None and (is_variable or layers.max_rep):
        buffers.append(_row_index(leaf, sizes, layers))
    layout = FullZip(zipped, items, count, compression, layers)
    return PageDraft(rows, buffers, encode_layout(layout))


def _bits(levels: Levels | None) -> int:
    return int(levels.max()).bit_length() if levels is not None and len(levels) else 0


def _control_words(leaf: Shredded, zipped: Zipped) -> Bytes | None:
    """Return the control words, one row of bytes each."""
    size = zipped.control_bytes
    if size == 0:
        return None
    entries = leaf.def_ if leaf.def_ is not None else leaf.rep
    words = np.zeros(0 if entries is None else len(entries), np.uint32)
    if leaf.rep is not None:
        words |= leaf.rep.astype(np.uint32) << zipped.bits_def
    if leaf.def_ is not None:
        words |= leaf.def_
    return np.ascontiguousarray(words.view(np.uint8).reshape(-1, 4)[:, :size])


def _zip_fixed(
    values: FixedValues, words: Bytes | None, shown: Mask | None, zipped: Zipped
) -> tuple[Bytes, Integers | None]:
    if words is None:
        return values.raw, None
    rows = values.raw.reshape(-1, values.width)
    control = zipped.control_bytes
    if shown is None:
        out = np.empty((len(words), zipped.stride), np.uint8)
        out[:, :control] = words
        out[:, control:] = rows
        return out.reshape(-1), np.full(len(words), zipped.stride, np.int64)
    sizes = np.where(shown, zipped.stride, control)
    starts = np.cumsum(sizes) - sizes
    flat = np.empty(int(sizes.sum()), np.uint8)
    flat[starts[:, None] + np.arange(control)] = words
    flat[(starts[shown] + control)[:, None] + np.arange(values.width)] = rows
    return flat, sizes


def _zip_variable(
    values: VariableValues,
    words: Bytes | None,
    shown: Mask | None,
    is_valid: Mask | None,
    zipped: Zipped,
) -> tuple[Bytes, Integers]:
    lengths = np.diff(values.offsets)
    control, size = zipped.control_bytes, zipped.length_bytes
    entries = len(lengths) if words is None else len(words)
    has_value = np.ones(entries, np.bool_) if is_valid is None else is_valid
    kept = has_value if shown is None else has_value[shown]
    begins, lengths = values.offsets[:-1][kept], lengths[kept]
    sizes = np.full(entries, control, np.int64)
    sizes[has_value] += size + lengths
    starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    if words is not None:
        out[starts[:, None] + np.arange(control)] = words
    places = starts[has_value] + control
    prefix = lengths.astype(f"<u{size}").view(np.uint8).reshape(-1, size)
    out[places[:, None] + np.arange(size)] = prefix
    data = values.data
    for place, begin, length in zip(
        (places + size).tolist(), begins.tolist(), lengths.tolist(), strict=True
    ):
        out[place : place + length] = data[begin : begin + length]
    return out, sizes


def _row_index(leaf: Shredded, sizes: Integers, layers: Layers) -> Bytes:
    """Return where each row starts and the end, in the fewest bytes."""
    ends = np.append(0, np.cumsum(sizes))
    if leaf.rep is not None:
        starts = np.flatnonzero(leaf.rep == layers.max_rep)
        ends = np.append(ends[starts], ends[-1])
    top = int(ends[-1])
    width = next(width for width in (1, 2, 4, 8) if top < 1 << (8 * width))
    return ends.astype(f"<u{width}").view(np.uint8)


def joined_values(parts: list[bytes], bits: int) -> VariableValues:
    """Return values that were encoded one by one."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return VariableValues(offsets, np.frombuffer(b"".join(parts), np.uint8), bits)


def split_values(values: VariableValues) -> list[memoryview]:
    """Return the bytes of each value."""
    view = values.data.data
    return [view[first:last] for first, last in pairwise(values.offsets.tolist())]


LEVEL_SHIFT = 16


def build_blobs(leaf: Shredded, rows: int) -> PageDraft:
    """Build the page of positions and sizes; a missing blob has its level for a position.

    Raises:
        UnsupportedError: the blobs are items of lists.
    """
    if leaf.rep is not None:
        raise UnsupportedError(
            f"blob column {leaf.field.name!r} is inside a list, which files of version 2.1 cannot"
            " hold; use file version 2.2"
        )
    table = blob_table(leaf.values)
    if leaf.def_ is not None:
        is_missing = leaf.def_ != 0
        table[is_missing, 0] = leaf.def_[is_missing].astype(np.uint64) << np.uint64(LEVEL_SHIFT)
        table[is_missing, 1] = 0
    packed = FixedValues(table.view(np.uint8).reshape(len(table), 16), 16)
    compression = PackedStruct((64, 64), Flat(128))
    inner = Shredded(leaf.field, leaf.values, None, None, (Layer.ALL_VALID_ITEM,))
    chunks = encode_flat(packed)._replace(compression=compression)
    draft = build_miniblock(inner, chunks, rows, is_large=False)
    if draft is None:
        draft = build_fullzip(inner, packed, compression, rows)
    return draft._replace(description=encode_blob_layout(draft.description, leaf.layers))


def blob_table(array: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a row of position and size for each blob."""
    table = np.zeros((len(array), 2), np.uint64)
    for column in range(2):
        table[:, column] = array.field(column).fill_null(0).to_numpy(zero_copy_only=False)
    return table
