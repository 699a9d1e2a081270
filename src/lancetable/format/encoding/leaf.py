"""From decoded blocks to Arrow arrays: the type of the column gives the bytes their meaning."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import CorruptError, UnsupportedError
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

LARGEST_OFFSET = 2**31 - 1
TEXT = {pa.string(), pa.large_string()}


def leaf_array(block: Block, type: pa.DataType, validity: Mask | None) -> pa.Array:  # noqa: A002
    """Return the values of a block as an array of the given storage type.

    Raises:
        CorruptError: the block cannot hold such values.
    """
    if validity is not None and len(validity) != len(block):
        raise CorruptError(f"{len(validity)} levels stand beside {len(block)} values")
    match block:
        case Repeated(value, count):
            return _repeated(value, count, type, validity)
        case Indices(indices, items):
            return _looked_up(indices, items, type, validity)
        case VariableWidth(offsets, data):
            return _variable(offsets, data, type, validity)
        case FixedSizeLists():
            return _lists(block, type, validity)
        case Structs():
            return _structs(block, type, validity)
        case FixedWidth() | Bits():
            return _fixed(block, type, validity)


def _from_buffers(
    type: pa.DataType,  # noqa: A002
    count: int,
    buffers: list[Any],
    validity: Mask | None,
    children: list[pa.Array] | None = None,
) -> pa.Array:
    if validity is None:
        return pa.Array.from_buffers(type, count, [None, *buffers], 0, 0, children)
    bitmap = pa.py_buffer(np.packbits(validity, bitorder="little"))
    nulls = count - int(np.count_nonzero(validity))
    return pa.Array.from_buffers(type, count, [bitmap, *buffers], nulls, 0, children)


def byte_width(type: pa.DataType) -> int:  # noqa: A002
    """Return the bytes of a value of a fixed-width type, 0 for any other."""
    try:
        bits = int(type.bit_width)
    except ValueError:
        return 0
    return bits // 8 if bits % 8 == 0 else 0


def _fixed(
    block: FixedWidth | Bits,
    type: pa.DataType,  # noqa: A002
    validity: Mask | None,
) -> pa.Array:
    count = len(block)
    if isinstance(block, Bits):
        if not pa.types.is_boolean(type):
            raise CorruptError(f"single bits stand for values of type {type}")
        return _from_buffers(type, count, [pa.py_buffer(block.data)], validity)
    if pa.types.is_boolean(type) and block.width == 1:
        bits = np.packbits(block.data.reshape(-1).view(np.uint8) != 0, bitorder="little")
        return _from_buffers(type, count, [pa.py_buffer(bits)], validity)
    if pa.types.is_fixed_size_list(type):
        return _lists_of_bytes(block, type, validity)
    if pa.types.is_null(type):
        return pa.nulls(count)
    if pa.types.is_nested(type) or pa.types.is_dictionary(type) or byte_width(type) != block.width:
        raise CorruptError(f"values of {block.width} bytes stand for values of type {type}")
    data = np.ascontiguousarray(block.data.reshape(-1))
    return _from_buffers(type, count, [pa.py_buffer(data)], validity)


def _lists_of_bytes(
    block: FixedWidth,
    type: pa.DataType,  # noqa: A002
    validity: Mask | None,
) -> pa.Array:
    """Read whole lists that an encoding saw as single wide values."""
    if type.list_size == 0 or block.width % type.list_size:
        raise CorruptError(f"values of {block.width} bytes stand for values of type {type}")
    items = _fixed(FixedWidth(block.data, block.width // type.list_size), type.value_type, None)
    return _from_buffers(type, len(block), [], validity, [items])


def _variable(
    offsets: Integers,
    data: npt.NDArray[np.uint8],
    type: pa.DataType,  # noqa: A002
    validity: Mask | None,
) -> pa.Array:
    if pa.types.is_string(type) or pa.types.is_binary(type):
        width: Any = np.int32
    elif pa.types.is_large_string(type) or pa.types.is_large_binary(type):
        width = np.int64
    else:
        raise CorruptError(f"values of any length stand for values of type {type}")
    first, last = int(offsets[0]), int(offsets[-1])
    if first:
        offsets = offsets - first
    if width is np.int32 and last - first > LARGEST_OFFSET:
        raise UnsupportedError("more than 2 GiB of text in one batch; read fewer rows at once")
    buffers = [pa.py_buffer(offsets.astype(width, copy=False)), pa.py_buffer(data[first:last])]
    array = _from_buffers(type, len(offsets) - 1, buffers, validity)
    if type in TEXT:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as cause:
            raise CorruptError("a text column holds bytes that are not UTF-8") from cause
    return array


def _looked_up(
    indices: npt.NDArray[Any],
    items: Block,
    type: pa.DataType,  # noqa: A002
    validity: Mask | None,
) -> pa.Array:
    checked = indices if validity is None else indices[validity]
    if len(checked) and int(checked.max()) >= len(items):
        raise CorruptError(f"an index points behind the {len(items)} items of its dictionary")
    is_dictionary = pa.types.is_dictionary(type)
    values = leaf_array(items, type.value_type if is_dictionary else type, None)
    if validity is not None:
        indices = np.where(validity, indices, indices.dtype.type(0))
    if is_dictionary:
        width = byte_width(type.index_type)
        if np.iinfo(f"i{width}").max < len(items) - 1 and indices.dtype.itemsize > width:
            raise CorruptError(
                f"{len(items)} dictionary items do not fit {type.index_type} indices"
            )
        words = indices.astype(f"<u{width}", copy=False)
        numbers = _from_buffers(type.index_type, len(indices), [pa.py_buffer(words)], validity)
        return pa.DictionaryArray.from_arrays(numbers, values, ordered=type.ordered, safe=False)
    numbers = pa.array(indices.astype(np.int64, copy=False), mask=_inverted(validity))
    return values.take(numbers)


def _inverted(validity: Mask | None) -> Mask | None:
    return None if validity is None else ~validity


def _repeated(
    value: Block | None,
    count: int,
    type: pa.DataType,  # noqa: A002
    validity: Mask | None,
) -> pa.Array:
    if pa.types.is_struct(type) and type.num_fields == 0:
        return pa.Array.from_buffers(type, count, [None])
    if value is None or pa.types.is_null(type):
        return pa.nulls(count, type)
    one = leaf_array(value, type, None)
    if len(one) != 1:
        raise CorruptError(f"the value of a constant page is no value of type {type}")
    if validity is None:
        return pa.repeat(one[0], count) if count else one[:0]
    return one.take(pa.array(np.zeros(count, np.int32), mask=~validity))


def _lists(block: FixedSizeLists, type: pa.DataType, validity: Mask | None) -> pa.Array:  # noqa: A002
    if not pa.types.is_fixed_size_list(type) or type.list_size != block.dimension:
        raise CorruptError(f"lists of {block.dimension} items stand for values of type {type}")
    items = leaf_array(block.items, type.value_type, block.validity)
    if len(items) != block.count * block.dimension:
        raise CorruptError(f"{block.count} lists hold {len(items)} items")
    return _from_buffers(type, block.count, [], validity, [items])


def _structs(block: Structs, type: pa.DataType, validity: Mask | None) -> pa.Array:  # noqa: A002
    if not pa.types.is_struct(type) or type.num_fields != len(block.children):
        raise CorruptError(f"a packed struct of {len(block.children)} stands for a {type}")
    children = [
        leaf_array(child, type.field(number).type, None)
        for number, child in enumerate(block.children)
    ]
    return _from_buffers(type, block.count, [], validity, children)


def keep_entries(array: pa.Array, keep: slice | Mask | Integers) -> pa.Array:
    """Return some of the values of an array."""
    if isinstance(keep, slice):
        if keep.start == 0 and keep.stop == len(array):
            return array
        return array.slice(keep.start, keep.stop - keep.start)
    if keep.dtype == np.bool_:
        return array.filter(pa.array(keep))
    return pc.take(array, pa.array(keep))
