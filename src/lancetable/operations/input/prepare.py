"""Choose the schema of new rows, and add their new columns to the schema of a table.

For rows that begin a table or replace all of it, a schema that is given wins and the rows are
fitted to it. Otherwise the types of the data are kept; values without types take those of the
columns that they replace.

Columns that are added to a table are nullable, as the existing rows have no value for them. They
may be at the top or inside structs; the items of lists and maps keep their columns.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from lancetable.errors import InputError, SchemaError
from lancetable.file.model import V2_2
from lancetable.file.write.blobs import second_generation
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.types import schema_from_arrow
from lancetable.fragment.write.writer import WriteOptions
from lancetable.operations.input.fit import Fit, fit, read_rows, refuse_new_names, write_type
from lancetable.operations.input.sources import RowSource, read_source
from lancetable.operations.input.write import check_stored, needed_version


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


class Prepared(NamedTuple):
    """A schema with ids, the rows to write and how they fit.

    ``options`` name the version of files that can hold them.
    """

    schema: Schema
    source: RowSource
    fit: Fit
    options: WriteOptions


def prepare(
    data: object, schema: pa.Schema | None, options: WriteOptions, *, old_version: str = ""
) -> Prepared:
    """Return the rows of a new table; ``old_version`` is that of the files it replaces.

    Raises:
        SchemaError: a column cannot be stored, or the data does not fit the schema.
        InputError: there is neither data nor a schema.
    """
    if data is None and schema is None:
        raise InputError("give data, a schema, or both")
    given = None if schema is None else _new(schema, options, old_version)
    rows = [] if data is None else data
    source = read_source(rows) if given is None else read_rows(rows, given.schema)
    target, settled = given or _new(source.schema, options, old_version)
    return Prepared(target, source, fit(source.schema, target), settled)


def prepare_replacement(
    data: object, old: Schema, options: WriteOptions, *, old_version: str, first_id: int = 0
) -> Prepared:
    """Return rows that replace all rows of a table, of the schema ``old`` so far.

    Raises:
        SchemaError: a column cannot be stored.
    """
    source = read_rows(data, old)
    target, settled = _new(source.schema, options, old_version)
    if not source.is_typed:
        target = _like(target, old)
    if first_id:
        fields = tuple(shifted(field, first_id) for field in target.fields)
        target = target._replace(fields=fields)
    return Prepared(target, source, fit(source.schema, target), settled)


class _New(NamedTuple):
    schema: Schema
    options: WriteOptions


def _new(arrow: pa.Schema, options: WriteOptions, old_version: str) -> _New:
    """Return a schema with ids, and options that name the version of files it is stored in."""
    schema = _checked(arrow)
    needed = needed_version(schema)
    kept = old_version if old_version and needed != str(V2_2) else needed
    version = options.storage_version or kept
    if version == str(V2_2):
        schema = _checked(second_generation(arrow))
    settled = replace(options, storage_version=version)
    check_stored(schema, settled)
    return _New(schema, settled)


def _like(new: Schema, old: Schema) -> Schema:
    """Return the new schema with the description of old columns that can hold the same values."""
    known = {field.name: field for field in old.fields}
    fields: list[Field] = []
    next_id = 0
    for field in new.fields:
        same = known.get(field.name)
        if same is not None and write_type(same) == write_type(field):
            field = _from_zero(same)  # noqa: PLW2901 - the better description of the same column
        else:
            field = shifted(field, -field.id)  # noqa: PLW2901
        fields.append(shifted(field, next_id))
        next_id += sum(1 for _ in field.walk())
    return Schema(tuple(fields), old.metadata)


def _from_zero(field: Field) -> Field:
    """Return the field with ids depth first from 0."""
    ids = {below.id: number for number, below in enumerate(field.walk())}
    return _renumbered(field, ids)


def _renumbered(field: Field, ids: dict[int, int]) -> Field:
    children = tuple(_renumbered(child, ids) for child in field.children)
    return field._replace(id=ids[field.id], children=children)


def _checked(schema: pa.Schema) -> Schema:
    refuse_new_names(schema.names)
    made = schema_from_arrow(schema)
    if not made.fields:
        raise SchemaError("a table needs at least one column")
    for field in made.walk():
        names = [child.name for child in field.children]
        if len(set(names)) != len(names):
            raise SchemaError(f"column {field.name!r} has two parts of one name; rename one")
    return made
