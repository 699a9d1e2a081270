"""Build an Arrow array from some rows of one batch of a 0.1 file.

| type | page |
|---|---|
| fixed width, fixed-size list | the values; booleans as a bitmap |
| string, binary | for each value its position in the file, and where the last one ends |
| list | where each list starts in the items of the batch, and where the last one ends |
| dictionary | the indices; the values are in the manifest file |
| struct | nothing, children have pages of their own |
| null | nothing |

Validity is not stored. An empty string of a nullable field stands for null.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import CorruptError, UnsupportedError
from lancetable.format.encoding.base import Integers, PageBuffer, Reading, Rows
from lancetable.format.encoding.v20.arrays import bits_of, fixed_array
from lancetable.format.encoding.v20.select import (
    cover,
    numbers_array,
    pick_bits,
    pick_bytes,
    span_of,
    together,
)
from lancetable.format.encoding.v20.variable import (
    Extents,
    Strings,
    check_int32,
    gather_strings,
    strings_array,
)
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type

_Reader: TypeAlias = Callable[[Field, "Batch", Rows, pa.DataType], Reading[pa.Array]]

_STRINGS = frozenset({pa.string(), pa.binary(), pa.large_string(), pa.large_binary()})


@dataclass(frozen=True, slots=True)
class Batch:
    """The pages of one batch: a row of (position, length in values) for each id from the first."""

    first_id: int
    pages: Integers
    file_size: int
    dictionaries: Mapping[int, pa.Array]

    def length(self, field: Field) -> int:
        """Return how many values the page of a field has.

        Raises:
            CorruptError: the file has no page for the field.
        """
        return self._page(field)[1]

    def buffer(self, field: Field, bits: int, last: int, extra: int = 0) -> PageBuffer:
        """Return where the values of a field lie, with ``extra`` numbers behind the last one.

        Values up to ``last`` must be there.

        Raises:
            CorruptError: the page is missing, or reaches out of the file.
        """
        position, length = self._page(field)
        if last > length:
            raise CorruptError(
                f"the page of field {field.name!r} has {length} values, {last} are needed"
            )
        size = -(-(length + extra) * bits // 8)
        if position < 0 or length < 0 or position + size > self.file_size:
            raise CorruptError(
                f"the page of field {field.name!r}, {size} bytes at {position}, is outside the file"
            )
        return PageBuffer(position, size)

    def _page(self, field: Field) -> tuple[int, int]:
        row = field.id - self.first_id
        if not 0 <= row < len(self.pages):
            raise CorruptError(f"the file has no pages for field {field.name!r}")
        return int(self.pages[row, 0]), int(self.pages[row, 1])


def read_batch(field: Field, batch: Batch, rows: Rows) -> Reading[pa.Array]:
    """Return rows of a field, counted from the start of the batch.

    Raises:
        CorruptError: the pages contradict each other or reach out of the file.
        UnsupportedError: the field has a type that 0.1 files do not have.
    """
    kind = arrow_type(field)
    if field.is_blob:
        return (yield from _blobs(field, batch, rows, kind))
    if pa.types.is_null(kind):
        return pa.nulls(len(rows))
    if pa.types.is_struct(kind):
        return (yield from _struct(field, batch, rows, kind))
    if not len(rows):
        return pa.nulls(0, kind)
    return (yield from _reader(kind)(field, batch, rows, kind))


def _reader(kind: pa.DataType) -> _Reader:
    if kind in _STRINGS:
        return _strings
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists
    return _dictionary if pa.types.is_dictionary(kind) else _fixed


def _fixed(field: Field, batch: Batch, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    if field.children:
        raise UnsupportedError(
            f"field {field.name!r} of type {field.logical_type!r} cannot be in a 0.1 file"
        )
    bits = bits_of(kind)
    (data,) = yield [span_of(batch.buffer(field, bits, cover(rows).stop), rows, bits)]
    if bits % 8 == 0:
        return fixed_array(pick_bytes(data, rows, bits // 8), len(rows), kind)
    if bits != 1:
        raise UnsupportedError(f"values of {bits} bits are not made of whole bytes")
    return fixed_array(pick_bits(data, rows), len(rows), kind)


def _struct(field: Field, batch: Batch, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    children: list[pa.Array] = yield from together(
        [read_batch(child, batch, rows) for child in field.children]
    )
    return pa.Array.from_buffers(kind, len(rows), [None], children=children)


def _extents(field: Field, batch: Batch, rows: Rows, bits: int) -> Reading[Extents]:
    """Return where values or lists start and end; the page holds one number more than rows."""
    buffer = batch.buffer(field, bits, cover(rows).stop, extra=1)
    if isinstance(rows, range):
        wanted: Rows = range(rows.start, rows.stop + 1)
    else:
        wanted = np.repeat(rows, 2) + np.tile([0, 1], len(rows))
    (data,) = yield [span_of(buffer, wanted, bits)]
    numbers: Integers = (
        pick_bytes(data, wanted, bits // 8).view(f"<i{bits // 8}").astype(np.int64, copy=False)
    )
    if (numbers[1:] < numbers[:-1]).any() or numbers[0] < 0:
        raise CorruptError(f"the values of field {field.name!r} are not in ascending order")
    if isinstance(rows, range):
        return Extents(numbers[:-1], numbers[1:], None)
    return Extents(numbers[0::2], numbers[1::2], None)


def _strings(field: Field, batch: Batch, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    extents = yield from _extents(field, batch, rows, 64)
    place = PageBuffer(0, batch.file_size).part(extents.first, extents.last)
    (data,) = yield [place]
    found = np.frombuffer(data, np.uint8)
    if isinstance(rows, range):
        strings = Strings(extents.offsets(), found, None)
    else:
        strings = gather_strings(extents, found)
    if field.nullable:
        filled = strings.offsets[1:] != strings.offsets[:-1]
        if not filled.all():
            strings = strings._replace(valid=filled)
    return strings_array(strings, kind)


def _blobs(field: Field, batch: Batch, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    """Describe where the payloads are: these files keep them like any other bytes."""
    if pa.types.is_struct(kind) and kind.names != ["position", "size"]:
        raise UnsupportedError(f"blob field {field.name!r} cannot be in a 0.1 file")
    if not len(rows):
        return pa.nulls(0, kind)
    extents = yield from _extents(field, batch, rows, 64)
    PageBuffer(0, batch.file_size).part(extents.first, extents.last)
    sizes = extents.stops - extents.starts
    children = [
        numbers_array(extents.starts.astype(np.uint64), pa.uint64()),
        numbers_array(sizes.astype(np.uint64), pa.uint64()),
    ]
    validity = None
    if field.nullable and not sizes.all():
        validity = pa.py_buffer(np.packbits(sizes != 0, bitorder="little"))
    return pa.Array.from_buffers(kind, len(rows), [validity], children=children)


def _lists(field: Field, batch: Batch, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    width = 32 if pa.types.is_list(kind) else 64
    extents = yield from _extents(field, batch, rows, width)
    child = field.children[0]
    available = _items(child, batch)
    if extents.last > available:
        raise CorruptError(
            f"a list of field {field.name!r} ends at item {extents.last} of {available}"
        )
    items = yield from read_batch(child, batch, extents.numbers())
    offsets: Any = extents.offsets()
    if width == 32:
        check_int32(int(offsets[-1]), "items")
        offsets = offsets.astype(np.int32)
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(offsets)], children=[items])


def _items(field: Field, batch: Batch) -> int:
    """Return how many items a list field of the batch has; a struct has as many as its children."""
    while field.logical_type == "struct" and field.children:
        field = field.children[0]
    return batch.length(field)


def _dictionary(field: Field, batch: Batch, rows: Rows, kind: pa.DataType) -> Reading[pa.Array]:
    values = batch.dictionaries.get(field.id)
    if values is None:
        raise CorruptError(f"the manifest has no dictionary values for field {field.name!r}")
    bits = bits_of(kind.index_type)
    (data,) = yield [span_of(batch.buffer(field, bits, cover(rows).stop), rows, bits)]
    indices = fixed_array(pick_bytes(data, rows, bits // 8), len(rows), kind.index_type)
    edges = pc.min_max(indices).as_py()
    if edges["min"] < 0 or edges["max"] >= len(values):
        raise CorruptError(
            f"field {field.name!r} names value {edges['max']} of a dictionary of {len(values)}"
        )
    return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
