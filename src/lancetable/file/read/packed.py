"""Packed structs: read the wanted children of a column that holds all of them."""

import pyarrow as pa

from lancetable.errors import CorruptError
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type


def stored_field(schema: Schema, wanted: Field) -> Field | None:
    """Return a field as a file describes it, with all its children."""
    return next((field for field in schema.walk() if field.id == wanted.id), None)


def pick_children(array: pa.Array, field: Field, schema: Schema) -> pa.Array:
    """Keep the children of a packed struct that were asked for, found by their field ids.

    Args:
        array: all children in the order in which the file has them.
        field: the struct with the wanted children, under the names they have now.
        schema: how the file describes its fields.

    Raises:
        CorruptError: the file has no child with a wanted id.
    """
    return _picked(array, field, stored_field(schema, field) or field)


def _picked(array: pa.Array, field: Field, stored: Field) -> pa.Array:
    type_ = arrow_type(field)
    places = {child.id: place for place, child in enumerate(stored.children)}
    wanted = [places.get(child.id, -1) for child in field.children]
    if array.type == type_ and wanted == list(range(array.type.num_fields)):
        return array
    if -1 in wanted:
        missing = field.children[wanted.index(-1)]
        raise CorruptError(
            f"packed struct {stored.name!r} has no child with the field id {missing.id}"
        )
    children = [
        _picked(array.field(place), child, stored.children[place])
        if child.children
        else array.field(place)
        for child, place in zip(field.children, wanted, strict=True)
    ]
    bitmap = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(type_, len(array), [bitmap], children=children)
