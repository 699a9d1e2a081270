"""Build the pages of a 2.0 file from an Arrow array.

Every struct and list of the field becomes a page of its own, before those of its children. The page
of a struct is empty; that of a list holds the end of each list. Arrays without child columns are
put into buffers by :func:`encode_array`. Nulls are marked by a bitmap in front of values of fixed
width, by an end that is too large for strings, and by an item that is null for dictionaries.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import InputError, SchemaError, UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.build.blocks import (
    PageDraft,
    bool_bits,
    fixed_values,
    list_items,
    variable_values,
)
from lancetable.format.encoding.build.compress import TextCoder, framed
from lancetable.format.encoding.build.dictionary import used_items
from lancetable.format.encoding.build.field_options import FieldOptions
from lancetable.format.encoding.build.fullzip import blob_table
from lancetable.format.encoding.build.shred import valid_mask
from lancetable.format.encoding.leaf import Kind, Shape, kind_of
from lancetable.format.encoding.repdef import Mask
from lancetable.format.encoding.v20.codec import encode
from lancetable.format.encoding.v20.model import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Dictionary,
    FixedSizeList,
    Flat,
    Fsst,
    ItemList,
    NoNulls,
    PackedStruct,
    SomeNulls,
    Struct,
)
from lancetable.format.schema.model import Field

LEAST_VALUES = 100
MOST_ITEMS = 100
"""Strings with fewer distinct values than this are stored as numbers of a dictionary."""

Buffers: TypeAlias = list[Bytes]
PLAIN = FieldOptions(compression="none")


def marked_ends(ends: Integers, valid: Mask | None) -> tuple[Bytes, int]:
    """Return ends in which nulls are marked, and what was added to mark them."""
    adjustment = (int(ends[-1]) if len(ends) else 0) + 1
    marked = ends if valid is None else np.where(valid, ends, ends + adjustment)
    return np.ascontiguousarray(marked, np.int64).view(np.uint8), adjustment


def encode_array(array: pa.Array, buffers: Buffers, options: FieldOptions) -> ArrayEncoding:
    """Add the buffers of an array and return how they are to be read.

    Raises:
        UnsupportedError: the type cannot be stored in such a file.
    """
    kind = kind_of(array.type)
    if kind.shape is Shape.VARIABLE:
        found = _few_strings(array, buffers, options)
        return _binary(array, buffers, options) if found is None else found
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


def _binary(array: pa.Array, buffers: Buffers, options: FieldOptions) -> ArrayEncoding:
    text = variable_values(array)
    first, last = int(text.offsets[0]), int(text.offsets[-1])
    ends, adjustment = marked_ends(text.offsets[1:] - first, valid_mask(array))
    content, scheme = text.data[first:last], ""
    if options.compression in {"zstd", "lz4"} and len(content):
        scheme = options.compression
        content = np.frombuffer(framed(scheme, content, options.level), np.uint8)
    buffers += [ends, content]
    number = len(buffers) - 2
    return Binary(NoNulls(Flat(64, number)), Flat(8, number + 1, scheme), adjustment)


def _few_strings(array: pa.Array, buffers: Buffers, options: FieldOptions) -> ArrayEncoding | None:
    """Store strings as numbers, counted from 1 with 0 for null, when few of them differ.

    pylance reads such pages only for strings with 32-bit offsets.
    """
    if array.type != pa.string() or options.compression is not None or len(array) < LEAST_VALUES:
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


LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct"})
NULL_POSITION = 1
"""The position of a blob that is null; its size is 0."""

Leaves = Callable[[Field, pa.Array], pa.Array]
OptionsOf = Callable[[Field], tuple[FieldOptions, TextCoder]]


def check_storable(field: Field) -> None:
    """Refuse a field that files of version 2.0 have no encoding for.

    Raises:
        SchemaError: such a file cannot hold it.
    """
    for part in field.walk():
        text = part.logical_type
        if part.is_blob_v2:
            raise SchemaError(f"blob column {field.name!r} of the second generation {_NEEDS_2_2}")
        is_fixed = bool(part.children) and text.startswith("fixed_size_list:")
        if is_fixed or text in {"map", "fixed_size_binary:0"}:
            raise SchemaError(f"column {field.name!r} holds a {text}, which {_NEEDS_2_2}")


_NEEDS_2_2 = "needs a table of file version 2.2; this one has 2.0"


def build_pages(
    field: Field, array: pa.Array, stored: Leaves, options_of: OptionsOf
) -> Iterator[PageDraft]:
    """Yield the page of every node of a field, parents first.

    Args:
        field: the field.
        array: its rows; blobs are positions and sizes already.
        stored: turns the values of a leaf into those that are stored.
        options_of: the encoding options of a leaf.

    Raises:
        InputError: a struct is null, which such files cannot say.
    """
    if field.is_blob:
        yield _page(_blobs, field, array)
    elif field.is_packed:
        yield _page(_packed, field, array)
    elif field.logical_type == "struct":
        _refuse_null_structs(field, array)
        yield PageDraft(len(array), [], encode(Struct()))
        for number, child in enumerate(field.children):
            yield from build_pages(child, array.field(number), stored, options_of)
    elif field.logical_type in LISTS:
        lists, items = _lists(array)
        yield lists
        yield from build_pages(field.children[0], items, stored, options_of)
    elif field.children:
        raise UnsupportedError(f"column {field.name!r} cannot be written to a 2.0 file")
    else:
        yield _leaf(field, stored(field, array), options_of)


def _refuse_null_structs(field: Field, array: pa.Array) -> None:
    if array.null_count:
        raise InputError(
            f"struct column {field.name!r} holds {array.null_count} nulls, but files of version 2.0"
            " do not store which structs are null; use file version 2.1 or later"
        )


def _page(
    build: Callable[[Field, pa.Array, Buffers], ArrayEncoding], field: Field, array: pa.Array
) -> PageDraft:
    buffers: list[Bytes] = []
    encoding = build(field, array, buffers)
    return PageDraft(len(array), buffers, encode(encoding))


def _lists(array: pa.Array) -> tuple[PageDraft, pa.Array]:
    """Return the page of the ends, and the items that lists which are not null hold."""
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
    valid = valid_mask(array)
    lengths = np.diff(offsets)
    if valid is not None:
        lengths[~valid] = 0
    ends, adjustment = marked_ends(np.cumsum(lengths), valid)
    encoding = ItemList(NoNulls(Flat(64, 0)), adjustment, adjustment - 1)
    return PageDraft(len(array), [ends], encode(encoding)), array.flatten()


def _leaf(field: Field, array: pa.Array, options_of: OptionsOf) -> PageDraft:
    options, coder = options_of(field)
    buffers: list[Bytes] = []
    encoding: ArrayEncoding = AllNulls()
    if len(array):
        encoding = encode_array(array, buffers, options)
    # pylance reads codes only beside 32-bit offsets.
    is_small = array.type in {pa.string(), pa.binary()}
    if options.compression == "fsst" and is_small and isinstance(encoding, Binary):
        encoding = _coded(encoding, buffers, coder)
    return PageDraft(len(array), buffers, encode(encoding))


def _coded(encoding: Binary, buffers: list[Bytes], coder: TextCoder) -> ArrayEncoding:
    """Replace strings by their codes."""
    ends = buffers[0].view(np.int64)
    is_null = ends >= encoding.null_adjustment
    offsets = np.append(0, np.where(is_null, ends - encoding.null_adjustment, ends))
    coded = coder.encode(offsets, buffers[1])
    if coded is None:
        return encoding
    marked, adjustment = marked_ends(coded.offsets[1:], ~is_null if is_null.any() else None)
    buffers[:] = [marked, coded.data]
    binary = Binary(encoding.indices, encoding.content, adjustment)
    return Fsst(binary, coded.symbol_table)


def _packed(field: Field, array: pa.Array, buffers: Buffers) -> ArrayEncoding:
    _refuse_null_structs(field, array)
    children: list[ArrayEncoding] = []
    tables: list[Bytes] = []
    for number, child in enumerate(field.children):
        values = array.field(number)
        parts: list[Bytes] = []
        encoding = encode_array(values, parts, FieldOptions())
        if values.null_count or len(parts) != 1 or isinstance(encoding, Binary):
            raise InputError(
                f"child {child.name!r} of packed struct {field.name!r} must have a fixed width and"
                " no nulls"
            )
        if len(parts[0]) % len(array):
            raise InputError(f"child {child.name!r} of a packed struct is not made of whole bytes")
        children.append(encoding)
        tables.append(parts[0].reshape(len(array), -1))
    buffers.append(np.concatenate(tables, axis=1).reshape(-1))
    return PackedStruct(tuple(children), 0)


def _blobs(_: Field, array: pa.Array, buffers: Buffers) -> ArrayEncoding:
    table = blob_table(array)
    valid = valid_mask(array)
    if valid is not None:
        table[~valid] = (NULL_POSITION, 0)
    buffers.append(table.reshape(-1).view(np.uint8))
    number = NoNulls(Flat(64, 0))
    return PackedStruct((number, number), 0)
