"""Rows of a data file of version 2.0, in which every struct and list has a column of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.file.drive import drive
from lancetable.file.error_context import Placed
from lancetable.format.encoding.base import Column, Reading, Rows
from lancetable.format.encoding.jsonb import jsonb_to_text
from lancetable.format.encoding.v20.read import bytes_key, read_field, stores_bytes_apart
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import arrow_type
from lancetable.store import ReadableFile


class FileColumns(NamedTuple):
    """The columns of a file: its name, which column holds which field, and how to get one."""

    path: str
    numbers: Mapping[int, int]
    get: Callable[[int], Column]
    schema: Callable[[], Schema]
    """How the file describes its fields."""


def read_v20(
    file: ReadableFile, columns: FileColumns, fields: Sequence[Field], rows: Rows
) -> list[list[pa.Array]]:
    """Return for each field its chunks.

    Raises:
        CorruptError: a page is damaged, or text is not UTF-8.
    """
    found = drive(file, [_guarded(columns, field, rows) for field in fields])
    for number, field in enumerate(fields):
        with Placed(columns.path, f"field {field.name!r}"):
            # Text of later versions is checked while it is decoded.
            if any("string" in below.logical_type for below in field.walk()):
                for chunk in found[number]:
                    chunk.validate(full=True)
            if any(below.is_json for below in field.walk()):
                found[number] = [_json_as_text(field, chunk) for chunk in found[number]]
    return found


def _guarded(columns: FileColumns, field: Field, rows: Rows) -> Reading[list[pa.Array]]:
    with Placed(columns.path, f"field {field.name!r}"):
        found = _columns_of(columns, field)
        return (yield from read_field(field, found, rows, _packed_children(columns, field)))


def _packed_children(columns: FileColumns, field: Field) -> dict[int, tuple[int, ...]]:
    """Return the ids of the children of packed structs, in the order in which they are stored."""
    if not any(below.is_packed for below in field.walk()):
        return {}
    stored = (one for one in columns.schema().walk() if one.is_packed)
    return {one.id: tuple(child.id for child in one.children) for one in stored}


def _columns_of(columns: FileColumns, field: Field) -> dict[int, Column]:
    found: dict[int, Column] = {}
    for below in field.walk():
        if below.id in columns.numbers:
            found[below.id] = columns.get(columns.numbers[below.id])
            if stores_bytes_apart(below, found):
                found[bytes_key(below.id)] = columns.get(columns.numbers[below.id] + 1)
    return found


def _json_as_text(field: Field, array: pa.Array) -> pa.Array:
    """Return the array with every JSON document inside it as text."""
    if field.is_json:
        return jsonb_to_text(array)
    if not any(below.is_json for below in field.walk()):
        return array
    type_ = arrow_type(field)
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(type_):
        parts = [
            _json_as_text(child, array.field(number)) for number, child in enumerate(field.children)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=mask)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        kind = pa.ListArray if pa.types.is_list(type_) else pa.LargeListArray
        items = _json_as_text(field.children[0], array.values)
        return kind.from_arrays(array.offsets, items, type=type_, mask=mask)
    raise UnsupportedError(f"documents inside field {field.name!r} of type {type_} cannot be read")
