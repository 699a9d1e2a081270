"""Convert decoded blocks to Arrow arrays of the type of the column."""

from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.arrays import booleans, numbers
from lancetable.format.encoding.base import Integers
from lancetable.format.encoding.blocks import (
    Bits,
    Block,
    FixedSizeLists,
    FixedWidth,
    Indices,
    Repeated,
    Structs,
    VariableWidth,
)
from lancetable.format.encoding.repdef import Mask
from lancetable.format.limits import read_limits

LARGEST_OFFSET = 2**31 - 1
ASCII_END = 128


class Shape(Enum):
    """The memory layout of the values of an Arrow type."""

    NULL = "null"
    BOOL = "bool"
    FIXED = "fixed"
    VARIABLE = "variable"
    LIST = "list"
    STRUCT = "struct"
    DICTIONARY = "dictionary"
    OTHER = "other"


class Kind(NamedTuple):
    """A type and what is often asked about it.

    ``width`` is the bytes of a value, or of an offset for values of any length; ``size`` the items
    of a list of fixed size; ``children`` the kinds of what is inside.
    """

    type: pa.DataType
    shape: Shape
    width: int = 0
    size: int = 0
    children: "tuple[Kind, ...]" = ()
    is_text: bool = False


@lru_cache(maxsize=1024)
def kind_of(type_: pa.DataType) -> Kind:
    """Look at a storage type once."""
    types = pa.types
    if types.is_string(type_) or types.is_binary(type_):
        return Kind(type_, Shape.VARIABLE, 4, is_text=types.is_string(type_))
    if types.is_large_string(type_) or types.is_large_binary(type_):
        return Kind(type_, Shape.VARIABLE, 8, is_text=types.is_large_string(type_))
    if types.is_fixed_size_list(type_):
        return Kind(type_, Shape.LIST, 0, type_.list_size, (kind_of(type_.value_type),))
    if types.is_struct(type_):
        return Kind(type_, Shape.STRUCT, children=tuple(kind_of(field.type) for field in type_))
    if types.is_dictionary(type_):
        inside = (kind_of(type_.index_type), kind_of(type_.value_type))
        return Kind(type_, Shape.DICTIONARY, children=inside)
    return _flat_kind(type_)


def _flat_kind(type_: pa.DataType) -> Kind:
    if pa.types.is_null(type_):
        return Kind(type_, Shape.NULL)
    if pa.types.is_boolean(type_):
        return Kind(type_, Shape.BOOL)
    try:
        return Kind(type_, Shape.FIXED, int(type_.bit_width) // 8)
    except ValueError:
        return Kind(type_, Shape.OTHER)


def leaf_array(block: Block, kind: Kind, validity: Mask | None) -> pa.Array:
    """Return the values of a block as an array of the given kind.

    Raises:
        CorruptError: the block cannot hold such values.
    """
    if validity is not None and len(validity) != len(block):
        raise CorruptError(f"a page has {len(validity)} levels for {len(block)} values")
    if isinstance(block, FixedWidth):
        return _fixed(block, kind, validity)
    if isinstance(block, VariableWidth):
        return _variable(block, kind, validity)
    return _composite(block, kind, validity)


def _composite(
    block: Bits | FixedSizeLists | Structs | Indices | Repeated,
    kind: Kind,
    validity: Mask | None,
) -> pa.Array:
    match block:
        case Repeated(value, count):
            return _repeated(value, count, kind, validity)
        case Indices(indices, items):
            return _looked_up(indices, items, kind, validity)
        case FixedSizeLists():
            return _lists(block, kind, validity)
        case Structs():
            return _structs(block, kind, validity)
        case Bits(data, count):
            if kind.shape is not Shape.BOOL:
                raise CorruptError(f"single bits cannot have type {kind.type}")
            return _from_buffers(kind.type, count, [pa.py_buffer(data)], validity)


def _from_buffers(
    type_: pa.DataType,
    count: int,
    buffers: list[Any],
    validity: Mask | None,
    children: list[pa.Array] | None = None,
) -> pa.Array:
    if validity is None:
        return pa.Array.from_buffers(type_, count, [None, *buffers], 0, 0, children)
    bitmap = pa.py_buffer(np.packbits(validity, bitorder="little"))
    nulls = count - int(np.count_nonzero(validity))
    return pa.Array.from_buffers(type_, count, [bitmap, *buffers], nulls, 0, children)


def _fixed(block: FixedWidth, kind: Kind, validity: Mask | None) -> pa.Array:
    count = len(block)
    if kind.shape is Shape.FIXED and kind.width == block.width:
        data = block.data
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        return _from_buffers(kind.type, count, [pa.py_buffer(data)], validity)
    if kind.shape is Shape.BOOL and block.width == 1:
        bits = np.packbits(block.data.reshape(-1).view(np.uint8) != 0, bitorder="little")
        return _from_buffers(kind.type, count, [pa.py_buffer(bits)], validity)
    if kind.shape is Shape.LIST and kind.size and block.width % kind.size == 0:
        # An encoding saw whole lists as single wide values.
        items = _fixed(FixedWidth(block.data, block.width // kind.size), kind.children[0], None)
        return _from_buffers(kind.type, count, [], validity, [items])
    if kind.shape is Shape.NULL:
        return pa.nulls(count)
    raise CorruptError(f"values of {block.width} bytes cannot have type {kind.type}")


def _variable(block: VariableWidth, kind: Kind, validity: Mask | None) -> pa.Array:
    if kind.shape is not Shape.VARIABLE:
        raise CorruptError(f"values of any length cannot have type {kind.type}")
    offsets, data = block.offsets, block.data
    first, last = int(offsets[0]), int(offsets[-1])
    if first:
        offsets = offsets - first
    if kind.width == 4 and last - first > LARGEST_OFFSET:
        raise UnsupportedError("more than 2 GiB of text in one batch; read fewer rows at once")
    edges = offsets.astype(np.int32 if kind.width == 4 else np.int64, copy=False)
    buffers = [pa.py_buffer(edges), pa.py_buffer(data[first:last])]
    array = _from_buffers(kind.type, len(offsets) - 1, buffers, validity)
    # Bytes below 128 are text whatever their order; offsets were checked before.
    if kind.is_text and last > first and int(data[first:last].max()) >= ASCII_END:
        check_text(array)
    return array


def check_text(array: pa.Array) -> None:
    """Refuse text that is not UTF-8.

    Raises:
        CorruptError: a value holds other bytes.
    """
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as cause:
        raise CorruptError("a text column holds bytes that are not UTF-8") from cause


def _looked_up(
    indices: npt.NDArray[Any], items: Block, kind: Kind, validity: Mask | None
) -> pa.Array:
    checked = indices if validity is None else indices[validity]
    if len(checked) and int(checked.max()) >= len(items):
        raise CorruptError(f"an index points behind the {len(items)} items of its dictionary")
    if validity is not None:
        indices = np.where(validity, indices, indices.dtype.type(0))
    if kind.shape is not Shape.DICTIONARY:
        places = numbers(indices.astype(np.int64, copy=False), validity)
        found = leaf_array(items, kind, None)
        check_expansion(found, checked)
        return found.take(places)
    index, value = kind.children
    if index.width < indices.dtype.itemsize and len(items) > 1 << (8 * index.width - 1):
        raise CorruptError(f"{len(items)} dictionary items do not fit {index.type} indices")
    words = indices.astype(f"<u{index.width}", copy=False)
    places = _from_buffers(index.type, len(indices), [pa.py_buffer(words)], validity)
    values = leaf_array(items, value, None)
    return pa.DictionaryArray.from_arrays(places, values, ordered=kind.type.ordered, safe=False)


def _repeated(value: Block | None, count: int, kind: Kind, validity: Mask | None) -> pa.Array:
    if kind.shape is Shape.STRUCT and not kind.children:
        return pa.Array.from_buffers(kind.type, count, [None])
    if value is None or kind.shape is Shape.NULL:
        read_limits().check_page(count * _width(kind), count)
        return pa.nulls(count, kind.type)
    if kind.shape is Shape.FIXED and kind.width == 0 and len(value) == 0:
        return _from_buffers(kind.type, count, [pa.py_buffer(b"")], validity)
    one = leaf_array(value, kind, None)
    if len(one) != 1:
        raise CorruptError(f"the value of a constant page is not a value of type {kind.type}")
    read_limits().check_page(count * one.nbytes, count)
    if validity is None:
        return pa.repeat(one[0], count) if count > 1 else one[:count]
    return one.take(numbers(np.zeros(count, np.int32), validity))


def check_expansion(items: pa.Array, indices: npt.NDArray[np.integer[Any]]) -> None:
    """Check the size of a dictionary's items, repeated as often as the indices name them.

    Raises:
        LimitError: it is larger than the limits on a page and a batch.
    """
    count, limits = len(indices), read_limits()
    if count * items.nbytes <= limits.page_room:
        return
    sizes = _item_sizes(items)
    if sizes is None:
        limits.check_page(count * items.nbytes // max(len(items), 1), count)
    elif count * int(sizes.max(initial=0)) > limits.page_room:
        limits.check_page(int(sizes[indices].sum()), count)


def _item_sizes(items: pa.Array) -> Integers | None:
    """Return the bytes of each value of any length; None for types of fixed width."""
    kind = kind_of(items.type)
    if kind.shape is not Shape.VARIABLE:
        return None
    edges = np.frombuffer(items.buffers()[1], f"<i{kind.width}", len(items) + 1 + items.offset)
    wide = edges[items.offset :].astype(np.int64)
    sizes: Integers = wide[1:] - wide[:-1]
    return sizes


def _width(kind: Kind) -> int:
    """Return the bytes that a null of a kind takes."""
    if kind.shape is Shape.LIST:
        return kind.size * _width(kind.children[0])
    if kind.shape is Shape.STRUCT:
        return sum(_width(child) for child in kind.children)
    return kind.width


def _lists(block: FixedSizeLists, kind: Kind, validity: Mask | None) -> pa.Array:
    if kind.shape is not Shape.LIST or kind.size != block.dimension:
        raise CorruptError(f"lists of {block.dimension} items cannot have type {kind.type}")
    items = leaf_array(block.items, kind.children[0], block.validity)
    if len(items) != block.count * block.dimension:
        raise CorruptError(f"{block.count} lists hold {len(items)} items")
    return _from_buffers(kind.type, block.count, [], validity, [items])


def _structs(block: Structs, kind: Kind, validity: Mask | None) -> pa.Array:
    if kind.shape is not Shape.STRUCT or len(kind.children) != len(block.children):
        raise CorruptError(f"a packed struct of {len(block.children)} cannot have type {kind.type}")
    children = [
        leaf_array(child, inside, None)
        for child, inside in zip(block.children, kind.children, strict=True)
    ]
    return _from_buffers(kind.type, block.count, [], validity, children)


def keep_entries(array: pa.Array, keep: slice | Mask | Integers) -> pa.Array:
    """Return some of the values of an array."""
    if isinstance(keep, slice):
        if keep.start == 0 and keep.stop == len(array):
            return array
        return array.slice(keep.start, keep.stop - keep.start)
    if keep.dtype == np.bool_:
        return array.filter(booleans(keep.view(np.bool_)))
    return array.take(numbers(keep))
