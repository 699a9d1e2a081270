"""Build the pages of a 2.0 file from an Arrow array.

Every struct and list of the field becomes a page of its own, before those of its children. The
page of a struct is empty; that of a list says where each list ends. What lies below is put into
buffers by :func:`lancetable.format.encoding.v20.build_arrays.encode_array`.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from lancetable.errors import InputError, SchemaError, UnsupportedError
from lancetable.format.encoding.base import Bytes
from lancetable.format.encoding.build.blob import blob_table
from lancetable.format.encoding.build.blocks import PageDraft
from lancetable.format.encoding.build.coder import TextCoder
from lancetable.format.encoding.build.field_options import Knobs
from lancetable.format.encoding.build.shred import valid_mask
from lancetable.format.encoding.v20.build_arrays import Buffers, encode_array, marked_ends
from lancetable.format.encoding.v20.codec import encode
from lancetable.format.encoding.v20.model import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Flat,
    Fsst,
    ItemList,
    NoNulls,
    PackedStruct,
    Struct,
)
from lancetable.format.schema.model import Field

LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct"})
NULL_POSITION = 1
"""The position of a blob that is null; its size is 0."""

Leaves = Callable[[Field, pa.Array], pa.Array]
Wishes = Callable[[Field], tuple[Knobs, TextCoder]]


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
    field: Field, array: pa.Array, stored: Leaves, wishes: Wishes
) -> Iterator[PageDraft]:
    """Yield the page of every node of a field, parents first.

    Args:
        field: the field.
        array: its rows; blobs are positions and sizes already.
        stored: turns the values of a leaf into those that are stored.
        wishes: the encoding options of a leaf.

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
            yield from build_pages(child, array.field(number), stored, wishes)
    elif field.logical_type in LISTS:
        lists, items = _lists(array)
        yield lists
        yield from build_pages(field.children[0], items, stored, wishes)
    elif field.children:
        raise UnsupportedError(f"column {field.name!r} cannot be written to a 2.0 file")
    else:
        yield _leaf(field, stored(field, array), wishes)


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


def _leaf(field: Field, array: pa.Array, wishes: Wishes) -> PageDraft:
    knobs, coder = wishes(field)
    buffers: list[Bytes] = []
    encoding: ArrayEncoding = AllNulls()
    if len(array):
        encoding = encode_array(array, buffers, knobs)
    # pylance reads codes only beside 32-bit offsets.
    is_small = array.type in {pa.string(), pa.binary()}
    if knobs.compression == "fsst" and is_small and isinstance(encoding, Binary):
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
        encoding = encode_array(values, parts, Knobs())
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
