"""Clauses of a merge, tried in order; the first whose condition holds acts.

In expressions ``source.x`` and ``target.x`` are columns of the two sides. A bare name is a column
of the table, or of the source where there is no row of the table or no such column in it.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from lancetable.errors import ExpressionError, SchemaError
from lancetable.expression import Column, Expression, Opaque, bind_predicate, columns
from lancetable.expression.tree import rebuild
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import with_payloads
from lancetable.format.schema.types import arrow_field
from lancetable.operations.input.assign import Assignment, bind_assignments, set_ids

SOURCE = "source"
TARGET = "target"


class When(enum.Enum):
    """Rows that a clause applies to."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Act(enum.Enum):
    """Action of a clause."""

    UPDATE = "update"
    INSERT = "insert"
    DELETE = "delete"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule of a merge; ``values`` of ``None`` take every column from the source."""

    when: When
    act: Act
    values: Mapping[str, Expression] | None = None
    condition: Expression | None = None

    @property
    def takes_all(self) -> bool:
        """True when every column of the source is wanted."""
        return self.act in {Act.UPDATE, Act.INSERT} and self.values is None

    def expressions(self) -> tuple[Expression, ...]:
        """Return all expressions of the clause."""
        values = tuple((self.values or {}).values())
        return values if self.condition is None else (*values, self.condition)


class Sides(NamedTuple):
    """Columns of the two sides that something reads."""

    target: tuple[str, ...]
    source: tuple[str, ...]


class BoundClause(NamedTuple):
    """A clause whose expressions know the columns."""

    when: When
    act: Act
    copied: tuple[str, ...]
    """Columns taken from the source as they are."""
    assignments: tuple[Assignment, ...]
    condition: Expression | None

    def condition_sides(self) -> Sides:
        """Return the columns that the condition reads."""
        return sides_of(() if self.condition is None else {p[0] for p in columns(self.condition)})

    def value_sides(self) -> Sides:
        """Return the columns that the values are made of."""
        read = sides_of({name for one in self.assignments for name in one.inputs()})
        return Sides(read.target, tuple(dict.fromkeys((*self.copied, *read.source))))


def bind_clauses(
    clauses: Sequence[Clause], schema: Schema, source: pa.Schema
) -> tuple[BoundClause, ...]:
    """Bind clauses to the schema of the table and the columns that are kept of the source.

    Raises:
        SchemaError: a column is set that is not there, or an insert leaves out a required one.
        ExpressionError: an expression does not fit the columns.
    """
    fields = [arrow_field(with_payloads(field)) for field in schema.fields]
    of_target = [pa.field(f"{TARGET}.{field.name}", field.type) for field in fields]
    of_source = [pa.field(f"{SOURCE}.{field.name}", field.type) for field in source]
    names = {
        When.MATCHED: pa.schema([*of_target, *of_source]),
        When.NOT_MATCHED: pa.schema(of_source),
        When.NOT_MATCHED_BY_SOURCE: pa.schema(of_target),
    }
    return tuple(_bound(clause, schema, source, names[clause.when]) for clause in clauses)


def _bound(clause: Clause, schema: Schema, source: pa.Schema, names: pa.Schema) -> BoundClause:
    condition = None
    if clause.condition is not None:
        condition = bind_predicate(_sided(clause.condition, names), names)
    copied: tuple[str, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    if clause.takes_all:
        copied = tuple(one.name for one in schema.fields if one.name in source.names)
    elif clause.values is not None:
        values = {name: _sided(value, names) for name, value in clause.values.items()}
        old = None if clause.act is Act.INSERT else f"{TARGET}."
        assignments = bind_assignments(values, schema, names, old)
    bound = BoundClause(clause.when, clause.act, copied, assignments, condition)
    if clause.act is Act.INSERT:
        _refuse_gaps(bound, schema)
    return bound


def _refuse_gaps(clause: BoundClause, schema: Schema) -> None:
    given = {*clause.copied, *(one.field.name for one in clause.assignments)}
    for field in schema.fields:
        if not field.nullable and field.name not in given:
            raise SchemaError(
                f"column {field.name!r} must not be null and inserted rows have no value for it"
            )


def set_fields(clauses: Iterable[BoundClause], schema: Schema) -> tuple[int, ...]:
    """Return the ids of all fields that clauses set in rows of the table."""
    found: set[int] = set()
    for clause in clauses:
        if clause.act is Act.UPDATE:
            copied = (field for field in schema.fields if field.name in clause.copied)
            found.update(part.id for field in copied for part in field.walk())
            found.update(set_ids(clause.assignments))
    return tuple(sorted(found))


def _sided(expression: Expression, names: pa.Schema) -> Expression:
    """Return the expression with columns named by their side."""
    if isinstance(expression, Opaque):
        raise ExpressionError("conditions of a merge are SQL; this Arrow expression has no SQL")
    if not isinstance(expression, Column):
        return rebuild(expression, lambda part: _sided(part, names))
    first, *rest = expression.path
    if first.lower() in {SOURCE, TARGET} and rest:
        return replace(expression, path=(f"{first.lower()}.{rest[0]}", *rest[1:]))
    folded = {name.casefold() for name in names.names}
    side = TARGET if f"{TARGET}.{first}".casefold() in folded else SOURCE
    if not any(name.startswith(SOURCE) for name in names.names):
        side = TARGET
    return replace(expression, path=(f"{side}.{first}", *rest))


def sides_of(names: Iterable[str]) -> Sides:
    """Return columns that are named by their side, by side."""
    listed = sorted(names)
    return Sides(
        tuple(name.removeprefix("target.") for name in listed if name.startswith("target.")),
        tuple(name.removeprefix("source.") for name in listed if name.startswith("source.")),
    )


def source_columns(clauses: Sequence[Clause], source: pa.Schema) -> set[str]:
    """Return the columns of a source that expressions of clauses may mean."""
    named: set[str] = set()
    for clause in clauses:
        for expression in clause.expressions():
            for path in columns(expression):
                named.update(step.casefold() for step in path[:2])
    return {name for name in source.names if name.casefold() in named}
