"""Choose the stored columns of a scan, and describe the columns of its result by them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from lancetable.errors import SchemaError
from lancetable.expression import Expression, bind, bind_predicate, type_of
from lancetable.expression import columns as paths_of
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import project, project_ids, quote, resolve
from lancetable.format.schema.types import arrow_field, arrow_schema
from lancetable.fragment.projection import SYSTEM_COLUMNS

Key: TypeAlias = str | tuple[int, ...]


Stored: TypeAlias = Field | str
"""A column to read: one of the schema, perhaps pruned, or the name of a system column."""


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result: a stored column, a struct child inside one, or an expression."""

    name: str
    stored: Stored | None = None
    """What is read for it; None for an expression."""

    shown: Field | None = None
    """What it looks like in the schema; None for system columns and expressions."""

    depth: int = 0
    """How many structs around the shown field are taken off."""

    expression: Expression | None = None


def key_of(stored: Stored) -> Key:
    """Return what tells two columns apart, or two prunings of one column."""
    if isinstance(stored, str):
        return stored
    return tuple([part.id for part in stored.walk()]) if stored.children else (stored.id,)


def binding_schema(schema: Schema) -> pa.Schema:
    """Return what expressions may name: all columns in storage types, and the system columns."""
    names = {field.name for field in schema.fields}
    system = [pa.field(name, pa.uint64()) for name in SYSTEM_COLUMNS if name not in names]
    return pa.schema([*map(arrow_field, schema.fields), *system])


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

    Raises:
        SchemaError: a name is unknown.
    """
    if names is None:
        return [Output(field.name, field, field) for field in schema.fields]
    outputs: dict[str, Output] = {}
    nested: dict[str, set[int]] = {}
    for name in names:
        if _is_system(schema, name):
            outputs[name] = Output(name, name)
            continue
        chain = resolve(schema, name)
        if len(chain) == 1:
            outputs[name] = Output(chain[0].name, chain[0], chain[0])
        elif all(field.logical_type == "struct" for field in chain[:-1]):
            outputs[name] = _child_output(schema, name, chain)
        else:
            top = chain[0].name
            ids = nested.setdefault(top, set())
            ids.update(field.id for field in chain[-1].walk())
            (pruned,) = project_ids(schema, ids).fields
            outputs[top] = Output(top, pruned, pruned)
    return list(outputs.values())


def _child_output(schema: Schema, name: str, chain: Sequence[Field]) -> Output:
    leaf = chain[-1]
    (pruned,) = project(schema, [name]).fields
    shown = leaf._replace(name=name, nullable=any(field.nullable for field in chain))
    return Output(name, pruned, shown, depth=len(chain) - 1)


def _is_system(schema: Schema, name: str) -> bool:
    return name in SYSTEM_COLUMNS and all(field.name != name for field in schema.fields)


def expression_outputs(
    schema: Schema, expressions: Iterable[tuple[str, Expression]]
) -> list[Output]:
    """Return the result columns that expressions compute.

    Raises:
        ExpressionError: one names an unknown column or its types do not fit.
    """
    return [Output(name, expression=bound(expression, schema)) for name, expression in expressions]


def stored_for(schema: Schema, expressions: Iterable[Expression]) -> list[Stored]:
    """Return the columns that expressions read, pruned to what is used of structs."""
    ids: set[int] = set()
    system: list[str] = []
    paths: set[tuple[str, ...]] = set()
    for expression in expressions:
        paths |= paths_of(expression)
    names = {path[0] for path in paths if len(path) == 1}
    fields = [field for field in schema.fields if field.name in names and not field.children]
    if len(names) == len(paths) == len(fields):
        return [*fields]
    for path in sorted(paths):
        if len(path) == 1 and _is_system(schema, path[0]):
            system.append(path[0])
        else:
            chain = resolve(schema, ".".join(quote(step) for step in path))
            ids.update(field.id for field in chain[-1].walk())
    return [*project_ids(schema, ids).fields, *system]


def result_schema(schema: Schema, outputs: Sequence[Output]) -> pa.Schema:
    """Return the schema of the result.

    Raises:
        SchemaError: two columns have the same name.
    """
    fields = [output.shown for output in outputs if output.shown is not None]
    arrow = arrow_schema(Schema(tuple(fields), schema.metadata))
    stored = iter(arrow)
    shown = []
    for output in outputs:
        if output.shown is not None:
            shown.append(next(stored))
        elif output.expression is not None:
            shown.append(pa.field(output.name, type_of(output.expression, binding_schema(schema))))
        else:
            shown.append(pa.field(output.name, pa.uint64()))
    names = [field.name for field in shown]
    if len(set(names)) < len(names) and len({field.name for field in fields}) == len(fields):
        twice, _ = Counter(names).most_common(1)[0]
        raise SchemaError(f"column {twice!r} is asked for twice; name it once")
    return pa.schema(shown, arrow.metadata)
