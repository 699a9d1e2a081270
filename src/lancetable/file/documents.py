"""JSON documents: between text and their stored form, also inside nested arrays."""

import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.jsonb import encode_jsonb, jsonb_to_text
from lancetable.format.schema.model import Field
from lancetable.format.schema.types import arrow_type


def text_as_json(array: pa.Array) -> pa.Array:
    """Return JSON texts in their stored form.

    Raises:
        InputError: a text is no JSON document.
    """
    stored = [None if text is None else encode_jsonb(text) for text in array.to_pylist()]
    return pa.array(stored, pa.large_binary())


def json_as_text(field: Field, array: pa.Array) -> pa.Array:
    """Return the array with every JSON document inside it as text."""
    if field.is_json:
        return jsonb_to_text(array)
    if not any(below.is_json for below in field.walk()):
        return array
    type_ = arrow_type(field)
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(type_):
        parts = [
            json_as_text(child, array.field(number)) for number, child in enumerate(field.children)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=mask)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        items = json_as_text(field.children[0], array.values)
        return kind.from_arrays(array.offsets, items, type=type_, mask=mask)
    raise UnsupportedError(f"documents inside field {field.name!r} of type {type_} cannot be read")
