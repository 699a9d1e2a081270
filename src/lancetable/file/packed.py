"""Packed structs: their column holds all children, also those that were not asked for."""

import pyarrow as pa

from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type


def stored_field(schema: Schema, wanted: Field) -> Field | None:
    """Return a field as a file describes it, with all its children."""
    return next((field for field in schema.walk() if field.id == wanted.id), None)


def pick_children(array: pa.Array, field: Field) -> pa.Array:
    """Keep the children of a packed struct that were asked for."""
    type_ = arrow_type(field)
    if array.type == type_:
        return array
    names = [array.type.field(number).name for number in range(array.type.num_fields)]
    children = [array.field(names.index(child.name)) for child in field.children]
    bitmap = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(type_, len(array), [bitmap], children=children)
