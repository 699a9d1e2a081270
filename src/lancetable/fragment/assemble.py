"""Join one column from the parts that several data files hold.

Every part is the same column with some struct children missing. What no part has is null; the
validity of structs and the offsets of lists come from the first part that has them.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import CorruptError
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type

PartArray = tuple[Field, pa.Array]


def assemble(field: Field, parts: Sequence[PartArray], rows: int) -> pa.Array:
    """Return the whole column from its parts, all ``rows`` long.

    Raises:
        CorruptError: the parts disagree about the lengths of lists.
    """
    if not parts:
        return pa.nulls(rows, arrow_type(field))
    first_field, first = parts[0]
    if first_field is field or not field.children:
        return first
    if any(len(array) != rows for _, array in parts):
        raise CorruptError(f"column '{field.name}': its data files disagree about list lengths")
    kind = field.logical_type
    if kind == "struct":
        return _struct(field, parts, rows)
    if kind.startswith("fixed_size_list"):
        return _fixed_size_list(field, parts, rows)
    return _list(field, parts)


def _struct(field: Field, parts: Sequence[PartArray], rows: int) -> pa.Array:
    children = []
    for child in field.children:
        owned = []
        for part_field, array in parts:
            number = _position(part_field, child)
            if number is not None:
                owned.append((part_field.children[number], array.field(number)))
        children.append(_one(child, owned, rows))
    return pa.Array.from_buffers(
        arrow_type(field), rows, [_validity(parts[0][1])], children=children
    )


def _position(field: Field, child: Field) -> int | None:
    for number, candidate in enumerate(field.children):
        if candidate.id == child.id:
            return number
    return None


def _list(field: Field, parts: Sequence[PartArray]) -> pa.Array:
    """Rebuild a list, large list or map around assembled items."""
    item = field.children[0]
    owned = []
    for part_field, array in parts:
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        owned.append((part_field.children[0], _items(array).slice(start, stop - start)))
    first = parts[0][1]
    items = _one(item, owned, len(owned[0][1]))
    return _rebuilt(arrow_type(field), first, [_offsets(first)], items)


def _items(array: pa.Array) -> pa.Array:
    """Return all child values of a list-like array, whatever slice of it is looked at."""
    if pa.types.is_map(array.type):
        return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return array.values


def _offsets(array: pa.Array) -> pa.Buffer:
    offsets = array.offsets
    start = offsets[0]
    moved = pc.subtract(offsets, start)
    return moved.buffers()[1]


def _fixed_size_list(field: Field, parts: Sequence[PartArray], rows: int) -> pa.Array:
    first = parts[0][1]
    size = first.type.list_size
    owned = [
        (part_field.children[0], array.values.slice(array.offset * size, rows * size))
        for part_field, array in parts
    ]
    items = _one(field.children[0], owned, rows * size)
    return _rebuilt(arrow_type(field), first, [], items)


def _rebuilt(
    type_: pa.DataType, first: pa.Array, buffers: list[pa.Buffer], items: pa.Array
) -> pa.Array:
    return pa.Array.from_buffers(type_, len(first), [_validity(first), *buffers], children=[items])


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap counted from the first row of the array."""
    return array.is_valid().buffers()[1] if array.null_count else None


def _one(field: Field, owned: list[PartArray], rows: int) -> pa.Array:
    """Assemble a child; a part that holds all of it is taken as it is."""
    for part_field, array in owned:
        if part_field is field or not field.children:
            return array
    return assemble(field, owned, rows)
