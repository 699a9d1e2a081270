"""Which stored columns a scan needs, and how the columns of the result are made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from lancetable.errors import SchemaError
from lancetable.expression import Expression, bind, bind_predicate, type_of
from lancetable.expression import columns as paths_of
from lancetable.format.schema.model import (
    BLOB_KEY,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    Field,
    Schema,
)
from lancetable.format.schema.project import project_ids, quote, resolve
from lancetable.format.schema.types import arrow_field, arrow_schema
from lancetable.fragment.projection import SYSTEM_COLUMNS, Projection

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result: a stored column, a struct child inside one, or an expression."""

    name: str
    column: str
    path: Path = ()
    expression: Expression | None = None
    field: Field | None = None
    """What the result column looks like in the schema; None for system columns, expressions."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Stored columns to read, perhaps pruned, and system columns."""

    fields: tuple[Field, ...] = ()
    system: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the column names in the order a projection reads them."""
        return (*(field.name for field in self.fields), *self.system)

    def projection(self) -> Projection:
        """Return the projection that reads these columns."""
        return Projection(self.fields, self.system)

    def without(self, names: Iterable[str]) -> "Needed":
        """Return what is left when some columns are at hand already."""
        gone = set(names)
        return Needed(
            tuple(field for field in self.fields if field.name not in gone),
            tuple(name for name in self.system if name not in gone),
        )


def binding_schema(schema: Schema) -> pa.Schema:
    """Return what expressions may name: all columns in storage types, and the system columns."""
    names = {field.name for field in schema.fields}
    system = [pa.field(name, pa.uint64()) for name in SYSTEM_COLUMNS if name not in names]
    return pa.schema([*(arrow_field(field) for field in schema.fields), *system])


def bound(expression: Expression, schema: Schema) -> Expression:
    """Bind an expression to the columns of a table.

    Raises:
        ExpressionError: it names an unknown column or its types do not fit.
    """
    return bind(expression, binding_schema(schema))


def bound_predicate(expression: Expression, schema: Schema) -> Expression:
    """Bind an expression that is true or false for each row.

    Raises:
        ExpressionError: it names an unknown column, its types do not fit, or it is no predicate.
    """
    return bind_predicate(expression, binding_schema(schema))


def name_outputs(schema: Schema, names: Sequence[str] | None) -> list[Output]:
    """Return the result columns for names and paths; all columns for None.

    A path through structs gives a column named like the path. A path through a list keeps the
    nesting, and the column then holds all the paths asked for below it.
    """
    if names is None:
        return [Output(field.name, field.name, field=field) for field in schema.fields]
    outputs: dict[str, Output] = {}
    pruned: dict[str, set[int]] = {}
    for name in names:
        if _is_system(schema, name):
            outputs[name] = Output(name, name)
            continue
        chain = resolve(schema, name)
        top = chain[0].name
        if all(field.logical_type == "struct" for field in chain[:-1]):
            path = tuple(field.name for field in chain[1:])
            shown = replace(
                chain[-1],
                name=name if path else top,
                nullable=any(field.nullable for field in chain),
            )
            outputs[name] = Output(shown.name, top, path, field=shown if path else chain[0])
        else:
            pruned.setdefault(top, set()).update(field.id for field in chain[-1].walk())
            outputs[top] = Output(top, top, field=chain[0])
    for top, ids in pruned.items():
        outputs[top] = replace(outputs[top], field=project_ids(schema, ids).fields[0])
    return list(outputs.values())


def _is_system(schema: Schema, name: str) -> bool:
    return name in SYSTEM_COLUMNS and all(field.name != name for field in schema.fields)


def expression_outputs(
    schema: Schema, expressions: Iterable[tuple[str, Expression]]
) -> list[Output]:
    """Return the result columns that expressions compute."""
    return [
        Output(name, "", expression=bound(expression, schema)) for name, expression in expressions
    ]


def needed(schema: Schema, outputs: Iterable[Output], where: Expression | None = None) -> Needed:
    """Return the stored columns, pruned to what is used of structs, and system columns."""
    ids: set[int] = set()
    system: list[str] = []
    for output in outputs:
        if output.expression is not None:
            _add_paths(schema, paths_of(output.expression), ids, system)
        elif output.field is not None:
            ids.update(field.id for field in output.field.walk())
        elif output.column not in system:
            system.append(output.column)
    if where is not None:
        _add_paths(schema, paths_of(where), ids, system)
    return Needed(project_ids(schema, ids).fields, tuple(system))


def _add_paths(schema: Schema, paths: Iterable[Path], ids: set[int], system: list[str]) -> None:
    for path in sorted(paths):
        if len(path) == 1 and _is_system(schema, path[0]):
            if path[0] not in system:
                system.append(path[0])
        else:
            chain = resolve(schema, ".".join(quote(step) for step in path))
            ids.update(field.id for field in chain[-1].walk())


def same_columns(left: Field, right: Field) -> bool:
    """Say whether two prunings of one column hold the same parts."""
    return [field.id for field in left.walk()] == [field.id for field in right.walk()]


def result_schema(schema: Schema, outputs: Sequence[Output]) -> pa.Schema:
    """Return the schema of the result.

    Raises:
        SchemaError: two columns have the same name.
    """
    fields = [output.field for output in outputs if output.field is not None]
    stored = iter(arrow_schema(Schema(tuple(fields), schema.metadata)))
    shown = []
    for output in outputs:
        if output.field is not None:
            shown.append(next(stored))
        elif output.expression is not None:
            shown.append(pa.field(output.name, type_of(output.expression, binding_schema(schema))))
        else:
            shown.append(pa.field(output.name, pa.uint64()))
    names = [field.name for field in shown]
    for name in names:
        if names.count(name) > 1 and len({field.name for field in fields}) == len(fields):
            raise SchemaError(f"column {name!r} is asked for twice; name it once")
    return pa.schema(shown, schema.metadata or None)


def with_payloads(field: Field) -> Field:
    """Return the field as it looks when blobs are read: plain binary columns."""
    if field.is_blob:
        hidden = (BLOB_KEY, EXTENSION_NAME, EXTENSION_METADATA)
        metadata = {key: text for key, text in field.metadata.items() if key not in hidden}
        return Field(field.name, field.id, "large_binary", field.nullable, metadata=metadata)
    if not any(part.is_blob for part in field.walk()):
        return field
    return replace(field, children=tuple(with_payloads(child) for child in field.children))
