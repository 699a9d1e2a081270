"""Build the buffers of a 2.0 page from an array without child columns.

What is null is said by a bitmap in front of values of fixed width, by an end that is too large
for strings, and by an item that is null for dictionaries.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import InputError, UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.build.blocks import (
    bool_bits,
    fixed_values,
    list_items,
    variable_values,
)
from lancetable.format.encoding.build.compress import framed
from lancetable.format.encoding.build.dictionary import used_items
from lancetable.format.encoding.build.field_options import Knobs
from lancetable.format.encoding.build.shred import valid_mask
from lancetable.format.encoding.leaf import Kind, Shape, kind_of
from lancetable.format.encoding.repdef import Mask
from lancetable.format.encoding.v20.model import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Dictionary,
    FixedSizeList,
    Flat,
    NoNulls,
    SomeNulls,
)

LEAST_VALUES = 100
MOST_ITEMS = 100
"""Strings with fewer distinct values than this are stored as numbers of a dictionary."""

Buffers: TypeAlias = list[Bytes]
PLAIN = Knobs(compression="none")


def marked_ends(ends: Integers, valid: Mask | None) -> tuple[Bytes, int]:
    """Return ends in which nulls are marked, and what was added to mark them."""
    adjustment = (int(ends[-1]) if len(ends) else 0) + 1
    marked = ends if valid is None else np.where(valid, ends, ends + adjustment)
    return np.ascontiguousarray(marked, np.int64).view(np.uint8), adjustment


def encode_array(array: pa.Array, buffers: Buffers, knobs: Knobs) -> ArrayEncoding:
    """Add the buffers of an array and return how they are to be read.

    Raises:
        UnsupportedError: the type cannot be stored in such a file.
    """
    kind = kind_of(array.type)
    if kind.shape is Shape.VARIABLE:
        found = _few_strings(array, buffers, knobs)
        return _binary(array, buffers, knobs) if found is None else found
    if kind.shape is Shape.DICTIONARY:
        return _dictionary(array, buffers)
    if kind.shape is Shape.NULL or array.null_count == len(array):
        return AllNulls()
    valid = valid_mask(array)
    if valid is None:
        return NoNulls(_dense(array, kind, buffers))
    buffers.append(np.packbits(valid, bitorder="little"))
    validity = Flat(1, len(buffers) - 1)
    return SomeNulls(validity, _dense(array, kind, buffers))


def _dense(array: pa.Array, kind: Kind, buffers: Buffers) -> ArrayEncoding:
    """Store values of fixed width, also those under nulls."""
    if kind.shape is Shape.LIST:
        items = list_items(array, kind.size)
        return FixedSizeList(kind.size, encode_array(items, buffers, PLAIN))
    if kind.shape is Shape.BOOL:
        buffers.append(bool_bits(array))
        return Flat(1, len(buffers) - 1)
    if kind.shape is not Shape.FIXED:
        raise UnsupportedError(f"files of version 2.0 cannot hold values of type {array.type}")
    buffers.append(fixed_values(array, kind.width).raw)
    return Flat(kind.width * 8, len(buffers) - 1)


def _binary(array: pa.Array, buffers: Buffers, knobs: Knobs) -> ArrayEncoding:
    text = variable_values(array)
    first, last = int(text.offsets[0]), int(text.offsets[-1])
    ends, adjustment = marked_ends(text.offsets[1:] - first, valid_mask(array))
    content, scheme = text.data[first:last], ""
    if knobs.compression in {"zstd", "lz4"} and len(content):
        scheme = knobs.compression
        content = np.frombuffer(framed(scheme, content, knobs.level), np.uint8)
    buffers += [ends, content]
    number = len(buffers) - 2
    return Binary(NoNulls(Flat(64, number)), Flat(8, number + 1, scheme), adjustment)


def _few_strings(array: pa.Array, buffers: Buffers, knobs: Knobs) -> ArrayEncoding | None:
    """Store strings as numbers, counted from 1 with 0 for null, when few of them differ.

    pylance reads such pages only for strings with 32-bit offsets.
    """
    if array.type != pa.string() or knobs.compression is not None or len(array) < LEAST_VALUES:
        return None
    # Most columns of many different values show it at once.
    if len(array[: 2 * MOST_ITEMS].unique()) > MOST_ITEMS:
        return None
    encoded = array.dictionary_encode()
    if not 0 < len(encoded.dictionary) < MOST_ITEMS:
        return None
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False) + 1
    buffers.append(numbers.astype(np.uint8))
    indices = NoNulls(Flat(8, len(buffers) - 1))
    items = _binary(encoded.dictionary, buffers, PLAIN)
    return Dictionary(indices, items, len(encoded.dictionary))


def _dictionary(array: pa.Array, buffers: Buffers) -> ArrayEncoding:
    """Store an Arrow dictionary; a null is the number of an item that is null."""
    if len(array.dictionary) > len(array):
        array = used_items(array)
    items = array.dictionary
    width = kind_of(array.type.index_type).width
    numbers = fixed_values(array.indices, width).data
    valid = valid_mask(array.indices)
    if valid is not None:
        place, items = _null_item(items)
        _check_room(place, array.type.index_type)
        numbers = np.where(valid, numbers, numbers.dtype.type(place))
    elif not len(items):
        items = pa.nulls(1, items.type)
    buffers.append(_raw(numbers))
    indices = NoNulls(Flat(width * 8, len(buffers) - 1))
    return Dictionary(indices, encode_array(items, buffers, PLAIN), len(items))


def _raw(numbers: npt.NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(numbers).view(np.uint8)


def _null_item(items: pa.Array) -> tuple[int, pa.Array]:
    """Return the number of an item that is null, and the items with such a one."""
    valid = valid_mask(items)
    if valid is not None:
        return int(np.argmin(valid)), items
    return len(items), pa.concat_arrays([items, pa.nulls(1, items.type)])


def _check_room(place: int, index: pa.DataType) -> None:
    bits = index.bit_width - pa.types.is_signed_integer(index)
    if place >= 1 << bits:
        raise InputError(
            f"a dictionary of {place} items and a null does not fit {index} indices in a file of"
            " version 2.0; use a wider index type"
        )
