"""Constant pages: nulls only, or one value for all (see ``layouts.constant``)."""

import struct
from functools import lru_cache

import numpy as np

from lancetable.format.encoding.base import Bytes, Levels
from lancetable.format.encoding.blocks import Compression
from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.encoding.build.codec import encode_layout
from lancetable.format.encoding.build.miniblock import encode_block
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.layouts.constant import ConstantPage
from lancetable.format.encoding.repdef import Layer, layers_of

LONGEST_INLINE = 32


def build_nulls(leaf: Shredded, rows: int, *, is_packed: bool) -> PageDraft:
    """Build a page without any value; its levels may be packed only from 2.2 on."""
    if leaf.rep is None and len(leaf.layers) == 1:
        return PageDraft(rows, [], described((Layer.NULLABLE_ITEM,), None))
    if not is_packed:
        return PageDraft(rows, [_raw(leaf.rep), _raw(leaf.def_)], described(leaf.layers, None))
    (rep, rep_data), (def_, def_data) = _packed(leaf.rep), _packed(leaf.def_)
    counts = [0 if levels is None else len(levels) for levels in (leaf.rep, leaf.def_)]
    layout = ConstantPage(layers_of(leaf.layers), None, rep, def_, *counts)
    return PageDraft(rows, [rep_data, def_data], encode_layout(layout))


def _packed(levels: Levels | None) -> tuple[Compression | None, Bytes]:
    if levels is None or not len(levels):
        return None, np.empty(0, np.uint8)
    return encode_block(np.ascontiguousarray(levels, np.uint16))


def build_constant(leaf: Shredded, value: bytes | tuple[bytes, bytes], rows: int) -> PageDraft:
    """Build a page whose valid entries all hold one value.

    A value of any length is given as the two buffers of an array that holds just it.
    """
    buffers: list[Bytes] = []
    inline = None
    if isinstance(value, bytes) and len(value) <= LONGEST_INLINE:
        inline = value
    else:
        buffers.append(stored_value(value if isinstance(value, tuple) else (value,)))
    if leaf.rep is not None or leaf.def_ is not None:
        buffers += [_raw(leaf.rep), _raw(leaf.def_)]
    return PageDraft(rows, buffers, described(leaf.layers, inline))


@lru_cache(maxsize=1024)
def described(layers: tuple[Layer, ...], inline: bytes | None) -> bytes:
    """Return the message of a constant page without packed levels."""
    return encode_layout(ConstantPage(layers_of(layers), inline, None, None, 0, 0))


def _raw(levels: Levels | None) -> Bytes:
    if levels is None:
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(levels, np.uint16).view(np.uint8)


def stored_value(parts: tuple[bytes, ...]) -> Bytes:
    """Return the buffer of a value that does not fit the message: the buffers of its array."""
    sizes = struct.pack(f"<{1 + len(parts)}I", len(parts), *map(len, parts))
    return np.frombuffer(sizes + b"".join(parts), np.uint8)
