"""Build an Arrow array from the wanted rows of a 2.0 page.

Structs and lists with columns of their own are put together elsewhere; here is everything that
lies in a single page.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Bytes, Page, Reading, Rows
from lancetable.format.encoding.v20.fixed import (
    check_width,
    joined,
    read_fixed,
    width_of,
    without_nulls,
)
from lancetable.format.encoding.v20.model import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Dictionary,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    NoNulls,
    PackedStruct,
    SomeNulls,
)
from lancetable.format.encoding.v20.select import (
    aligned,
    multiply,
    numbers_array,
    pick_bytes,
    set_bits,
    span_of,
    together,
    zeros,
)
from lancetable.format.encoding.v20.variable import (
    check_int32,
    of_width,
    read_strings,
    strings_array,
)
from lancetable.format.limits import read_limits

_Reader: TypeAlias = Callable[[Any, Page, Rows, pa.DataType], Reading[pa.Array]]


def read_array(
    encoding: ArrayEncoding, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    """Return the wanted rows of a page as an array of the given type.

    Raises:
        CorruptError: the page contradicts itself or the type.
        UnsupportedError: the encoding cannot be read.
    """
    read: _Reader = _READERS.get(type(encoding), _fixed)
    return (yield from read(encoding, page, rows, kind))


def _fixed(encoding: ArrayEncoding, page: Page, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    data = yield from read_fixed(encoding, page, rows, bits_of(kind))
    return fixed_array(data, len(rows), kind)


def _no_nulls(encoding: NoNulls, page: Page, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    return (yield from read_array(encoding.values, page, rows, kind))


def _all_nulls(_: AllNulls, __: Page, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    yield from ()
    return all_null(kind, len(rows))


def _strings(
    encoding: Binary | Fsst, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    strings = yield from read_strings(encoding, page, rows)
    return strings_array(strings, kind)


def _packed_struct(
    encoding: PackedStruct, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    return (yield from read_packed(encoding, page, rows, kind, range(kind.num_fields)))


def bits_of(kind: pa.DataType) -> int:
    """Return the bits per value of a type of fixed width.

    Raises:
        CorruptError: the type has none, so that a page of fixed width cannot hold it.
    """
    if pa.types.is_fixed_size_list(kind):
        return bits_of(kind.value_type) * int(kind.list_size)
    try:
        return int(kind.bit_width)
    except ValueError:
        raise CorruptError(f"a page of fixed width cannot hold values of type {kind}") from None


def fixed_array(data: Bytes, count: int, kind: pa.DataType) -> pa.Array:
    """Return an array without nulls over the bytes of its values."""
    if pa.types.is_fixed_size_list(kind):
        items = fixed_array(data, count * kind.list_size, kind.value_type)
        return pa.Array.from_buffers(kind, count, [None], children=[items])
    if pa.types.is_dictionary(kind):
        raise CorruptError(f"a page without dictionary cannot hold values of type {kind}")
    return pa.Array.from_buffers(kind, count, [None, aligned(data, bits_of(kind) // 8)])


def all_null(kind: pa.DataType, count: int) -> pa.Array:
    """Return an array of nulls that takes no memory until its values are looked at."""
    if pa.types.is_null(kind):
        return pa.nulls(count)
    validity = zeros(-(-count // 8), count)
    if pa.types.is_dictionary(kind):
        indices = all_null(kind.index_type, count)
        return pa.DictionaryArray.from_arrays(indices, pa.nulls(0, kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        items = all_null(kind.value_type, count * kind.list_size)
        return pa.Array.from_buffers(kind, count, [validity], children=[items])
    if pa.types.is_struct(kind):
        children = [all_null(field.type, count) for field in kind]
        return pa.Array.from_buffers(kind, count, [validity], children=children)
    if kind in {pa.string(), pa.binary(), pa.large_string(), pa.large_binary()}:
        offsets = zeros((count + 1) * 8, count)
        return pa.Array.from_buffers(kind, count, [validity, offsets, zeros(0, 0)])
    values = zeros(-(-count * bits_of(kind) // 8), count)
    return pa.Array.from_buffers(kind, count, [validity, values])


def _some_nulls(
    encoding: SomeNulls, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    parts: list[Any] = yield from together(
        [
            read_fixed(encoding.validity, page, rows, 1),
            read_array(encoding.values, page, rows, kind),
        ]
    )
    bitmap, values = parts
    return with_validity(values, bitmap)


def with_validity(array: pa.Array, bitmap: Bytes) -> pa.Array:
    """Return an array that starts at offset 0 with a validity bitmap added to its own."""
    kind, count = array.type, len(array)
    if pa.types.is_null(kind):
        return array
    if pa.types.is_dictionary(kind):
        indices = with_validity(array.indices, bitmap)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=kind.ordered)
    children: list[pa.Array] = []
    own = array.buffers()
    if pa.types.is_fixed_size_list(kind):
        children, own = [array.values], own[:1]
    elif pa.types.is_struct(kind):
        children, own = [array.field(number) for number in range(kind.num_fields)], own[:1]
    if own[0] is not None:
        size = -(-count // 8)
        bitmap = bitmap[:size] & np.frombuffer(own[0], np.uint8)[:size]
    buffers = [pa.py_buffer(bitmap), *own[1:]]
    return pa.Array.from_buffers(kind, count, buffers, children=children)


def _fixed_size_list(
    encoding: FixedSizeList, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    if not pa.types.is_fixed_size_list(kind) or kind.list_size != encoding.dimension:
        raise CorruptError(f"a page holds lists of {encoding.dimension}, the column has {kind}")
    item = kind.value_type
    inner = without_nulls(encoding.items)
    if isinstance(inner, Flat) and not pa.types.is_fixed_size_list(item):
        check_width(inner.bits, bits_of(item))
        if bits_of(kind) % 8 == 0:
            wide = joined(inner, encoding.dimension)
            data = yield from read_fixed(wide, page, rows, bits_of(kind))
            return fixed_array(data, len(rows), kind)
    inside = page._replace(rows=page.rows * encoding.dimension)
    items = yield from read_array(encoding.items, inside, multiply(rows, encoding.dimension), item)
    return pa.Array.from_buffers(kind, len(rows), [None], children=[items])


def _fixed_size_binary(
    encoding: FixedSizeBinary, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    check_width(width_of(encoding.content), 8)
    content = joined(encoding.content, encoding.width)
    data = yield from read_fixed(content, page, rows, encoding.width * 8)
    if pa.types.is_fixed_size_binary(kind):
        check_width(encoding.width * 8, bits_of(kind))
        return fixed_array(data, len(rows), kind)
    return strings_array(of_width(data, encoding.width, len(rows)), kind)


def _dictionary(
    encoding: Dictionary, page: Page, rows: Rows, kind: pa.DataType
) -> Reading[pa.Array]:
    is_column = pa.types.is_dictionary(kind)
    index = kind.index_type if is_column else _unsigned(width_of(encoding.indices))
    count = encoding.item_count
    if count > 8 * sum(buffer.size for buffer in page.buffers) + 1:
        raise CorruptError(f"a page claims a dictionary of {count} items and has no room for it")
    parts: list[Any] = yield from together(
        [
            read_array(encoding.indices, page, rows, index),
            read_array(
                encoding.items,
                page._replace(rows=count),
                range(count),
                kind.value_type if is_column else kind,
            ),
        ]
    )
    indices, items = parts
    limit = count if is_column else count + 1
    if len(indices) > indices.null_count:
        edges = pc.min_max(indices).as_py()
        if edges["min"] < 0 or edges["max"] >= limit:
            raise CorruptError(f"a page names item {edges['max']} of a dictionary of {count}")
    if is_column:
        return _dictionary_column(indices, items, kind)
    return _looked_up(indices, items)


def _unsigned(bits: int) -> pa.DataType:
    kinds = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
    if bits not in kinds:
        raise CorruptError(f"the items of a dictionary are named by {bits} bits")
    return kinds[bits]


def _dictionary_column(indices: pa.Array, items: pa.Array, kind: pa.DataType) -> pa.Array:
    if items.null_count and len(indices):
        found = items.is_valid().take(indices)
        indices = with_validity(indices, np.frombuffer(found.buffers()[1], np.uint8))
    if items.null_count:
        # Arrow cannot join dictionaries that hold a null among their items.
        is_item = set_bits(np.frombuffer(items.is_valid().buffers()[1], np.uint8), len(items))
        places = np.maximum(np.cumsum(is_item) - 1, 0).astype(indices.type.to_pandas_dtype())
        indices = numbers_array(places, indices.type).take(indices)
        items = items.drop_null()
    return pa.DictionaryArray.from_arrays(indices, items, ordered=kind.ordered)


def _looked_up(indices: pa.Array, items: pa.Array) -> pa.Array:
    """Return the items by number, counted from 1, with nulls for 0."""
    count = len(indices)
    bitmap, data = indices.buffers()
    numbers = np.frombuffer(data, f"<u{indices.type.bit_width // 8}")[:count].astype(np.int64)
    valid = numbers != 0
    if bitmap is not None:
        valid &= set_bits(np.frombuffer(bitmap, np.uint8), count)
    numbers -= valid
    numbers[~valid] = 0
    positions = numbers_array(numbers, pa.int64(), valid)
    if items.type in {pa.string(), pa.binary(), pa.large_string(), pa.large_binary()}:
        sizes = pc.binary_length(items)
        size = pc.sum(sizes.take(positions)).as_py() or 0
        read_limits().check_page(size, count)
        check_int32(size, "bytes")
    return items.take(positions)


def read_packed(
    encoding: PackedStruct, page: Page, rows: Rows, kind: pa.DataType, places: Sequence[int]
) -> Reading[pa.Array]:
    """Return some children of the rows of a packed struct; ``places`` are their positions."""
    sizes = [_packed_size(child) for child in encoding.children]
    if not pa.types.is_struct(kind) or any(not 0 <= place < len(sizes) for place in places):
        raise CorruptError(f"a packed struct of {len(sizes)} children does not fit {kind}")
    width = sum(sizes)
    if width == 0 or not len(rows):
        raise CorruptError("a packed struct has no bytes")
    (data,) = yield [span_of(page.buffer(encoding.buffer), rows, width * 8)]
    table = pick_bytes(data, rows, width).reshape(-1, width)
    children = []
    for field, place in zip(kind, places, strict=True):
        check_width(sizes[place] * 8, bits_of(field.type))
        start = sum(sizes[:place])
        values = np.ascontiguousarray(table[:, start : start + sizes[place]]).reshape(-1)
        children.append(fixed_array(values, len(rows), field.type))
    return pa.Array.from_buffers(kind, len(rows), [None], children=children)


def _packed_size(encoding: ArrayEncoding) -> int:
    """Return the bytes that one child takes in each row."""
    encoding = without_nulls(encoding)
    if isinstance(encoding, FixedSizeList):
        return _packed_size(encoding.items) * encoding.dimension
    bits = width_of(encoding)
    if bits == 0 or bits % 8:
        raise UnsupportedError(f"a packed struct cannot hold {encoding}")
    return bits // 8


_READERS: Mapping[type[Any], _Reader] = {
    NoNulls: _no_nulls,
    AllNulls: _all_nulls,
    SomeNulls: _some_nulls,
    Binary: _strings,
    Fsst: _strings,
    Dictionary: _dictionary,
    FixedSizeList: _fixed_size_list,
    FixedSizeBinary: _fixed_size_binary,
    PackedStruct: _packed_struct,
}
