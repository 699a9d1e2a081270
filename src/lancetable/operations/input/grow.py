"""Add the columns of new data that a table does not have to its schema.

New columns are nullable, as the rows that are there have no value for them. They may be at the
top or inside structs; the items of lists and maps keep their columns.
"""

from collections.abc import Sequence

import pyarrow as pa

from lancetable.errors import SchemaError
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import schema_from_arrow
from lancetable.operations.input.fit import refuse_new_names


def grown(schema: Schema, source: pa.Schema, next_id: int) -> Schema:
    """Return the schema with the columns of the data that it lacks; ids count from ``next_id``.

    The same schema is returned when there are none.

    Raises:
        SchemaError: a new column has a name or a type that a table cannot have.
    """
    known = {field.name for field in schema.fields}
    refuse_new_names(name for name in source.names if name not in known)
    fields, after = _grown(schema.fields, list(source), next_id)
    return schema if after == next_id else schema._replace(fields=fields)


def _grown(
    fields: tuple[Field, ...], source: list[pa.Field], next_id: int
) -> tuple[tuple[Field, ...], int]:
    found = {field.name: number for number, field in enumerate(fields)}
    result = list(fields)
    for arrow in source:
        number = found.get(arrow.name)
        if number is None:
            made = numbered(arrow, next_id)
            next_id += sum(1 for _ in made.walk())
            result.append(made)
        elif _is_open(result[number]) and pa.types.is_struct(arrow.type):
            children, after = _grown(result[number].children, list(arrow.type), next_id)
            if after != next_id:
                result[number] = result[number]._replace(children=children)
                next_id = after
    return tuple(result), next_id


def refuse_known(source: Sequence[pa.Field], fields: Sequence[Field], above: str = "") -> None:
    """Check that a table has none of some columns; a struct is there to hold those inside of it.

    Raises:
        SchemaError: a column is there already.
    """
    known = {field.name: field for field in fields}
    for arrow in source:
        field = known.get(arrow.name)
        if field is None:
            continue
        path = f"{above}{arrow.name}"
        is_around = pa.types.is_struct(arrow.type) and arrow.type.num_fields
        if not (_is_open(field) and is_around):
            raise SchemaError(f"there is a column {path!r} already; leave it out")
        refuse_known(list(arrow.type), field.children, f"{path}.")


def _is_open(field: Field) -> bool:
    """Say whether a struct may get more columns: one that is stored as a whole may not."""
    return field.logical_type == "struct" and not field.is_packed and not field.is_blob


def numbered(arrow: pa.Field, first_id: int) -> Field:
    """Return a new nullable field, its ids depth first from ``first_id``.

    Raises:
        SchemaError: it has a type that the format cannot store.
    """
    made = schema_from_arrow(pa.schema([arrow.with_nullable(True)])).fields[0]  # noqa: FBT003
    return shifted(made, first_id)


def shifted(field: Field, by: int) -> Field:
    """Return the field with other ids."""
    children = tuple(shifted(child, by) for child in field.children)
    return field._replace(id=field.id + by, children=children)
