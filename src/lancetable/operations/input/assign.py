"""Set columns to expressions, cast to exactly the type of the column.

Numbers, texts and times are cast value by value and refused where a value would change; floating
point numbers may be rounded to a narrower column. The values inside of lists and structs follow
the same rules; a struct may lack fields that can be null.

A path sets a part of a struct: the other parts stay as they are. A struct that is null becomes one
that holds the part and nulls beside it, unless the part is set to null too: then it stays null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import ExpressionError, InputError, SchemaError
from lancetable.expression import Expression, bind, columns, evaluate, parse
from lancetable.expression.coerce import is_text
from lancetable.expression.operators.cast import cast
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import resolve, split_path, with_payloads
from lancetable.format.schema.types import without_extensions
from lancetable.operations.input.casts import CastPlanner, Step, as_type
from lancetable.operations.input.fit import refuse_nulls, write_type
from lancetable.scan.columns import binding_schema

_types = pa.types


@dataclass(frozen=True, slots=True)
class Part:
    """Assignment to a field, which is given by the names from the column down."""

    path: tuple[str, ...]
    """Empty for the column itself."""
    field: Field
    expression: Expression


@dataclass(frozen=True, slots=True)
class Assignment:
    """A top-level column and the bound expressions that it or its parts are set to."""

    field: Field
    parts: tuple[Part, ...]
    old: str | None
    """The column of a batch that has the old values; ``None`` when there are none."""

    @property
    def is_whole(self) -> bool:
        """True when the old values do not matter."""
        return not self.parts[0].path

    def inputs(self) -> set[str]:
        """Return the columns of a batch that are read."""
        used = {path[0] for part in self.parts for path in columns(part.expression)}
        return used if self.is_whole or self.old is None else used | {self.old}

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return what the column becomes for the rows of a batch.

        Raises:
            ExpressionError: a value cannot be computed.
            InputError: a value does not fit the column.
        """
        if self.is_whole:
            return assigned(self.field, evaluate(self.parts[0].expression, batch))
        name = self.field.name
        new = {}
        for part in self.parts:
            values = _joined(evaluate(part.expression, batch))
            path = ".".join((name, *part.path))
            new[part.path] = exact_cast(path, values, write_type(part.field))
        if self.old is None:
            old = pa.nulls(batch.num_rows, write_type(self.field))
        else:
            old = exact_cast(name, _joined(batch.column(self.old)), write_type(self.field))
        made = _with_parts(old, new)
        refuse_nulls(made, self.field, name)
        return made


def _joined(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _with_parts(old: pa.Array, new: Mapping[tuple[str, ...], pa.Array]) -> pa.Array:
    """Return structs with some of their parts, by path, in place of the old ones."""
    if () in new:
        return new[()]
    children, is_set = [], old.is_valid()
    for place in range(old.type.num_fields):
        child = old.type.field(place)
        below = {path[1:]: values for path, values in new.items() if path[0] == child.name}
        # A part of a missing struct is missing, whatever is stored for it.
        values = pc.struct_field(old, [place])
        if below:
            values = _with_parts(values, below)
            is_set = pc.or_(is_set, values.is_valid())
        children.append(values)
    return pa.StructArray.from_arrays(children, fields=list(old.type), mask=pc.invert(is_set))


def parse_assignments(values: Mapping[str, str | Expression]) -> dict[str, Expression]:
    """Return the expressions that columns are set to, by the names of the columns.

    Raises:
        InputError: nothing is set.
        ExpressionError: a text is no expression.
    """
    if not values:
        raise InputError("nothing is set; give a dict of columns and SQL expressions")
    return {
        str(name): parse(text) if isinstance(text, str) else text for name, text in values.items()
    }


def bind_assignments(
    values: Mapping[str, Expression], schema: Schema, names: pa.Schema, old: str | None = ""
) -> tuple[Assignment, ...]:
    """Return assignments in the order of the schema; expressions may name what ``names`` has.

    ``old`` prefixes the names of columns in ``names``; ``None`` when rows have no old values.

    Raises:
        SchemaError: a column is unknown, or is set twice.
        ExpressionError: an expression does not fit the columns.
    """
    parts: dict[str, list[Part]] = {}
    for name, expression in values.items():
        path = settable(name, schema)
        part = Part(tuple(one.name for one in path[1:]), path[-1], bind(expression, names))
        parts.setdefault(path[0].name, []).append(part)
    for name, chosen in parts.items():
        _refuse_overlaps(name, chosen)
    return tuple(
        Assignment(field, tuple(parts[field.name]), None if old is None else f"{old}{field.name}")
        for field in schema.fields
        if field.name in parts
    )


def bound_to(schema: Schema, values: Mapping[str, Expression]) -> tuple[Assignment, ...]:
    """Bind the assignments of an update; expressions see old values and system columns.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression does not fit the columns.
    """
    shown = Schema(tuple(with_payloads(field) for field in schema.fields))
    return bind_assignments(values, schema, binding_schema(shown))


def set_ids(assignments: tuple[Assignment, ...]) -> tuple[int, ...]:
    """Return the ids of all fields that are set."""
    return tuple(field.id for one in assignments for field in one.field.walk())


def settable(name: str, schema: Schema) -> tuple[Field, ...]:
    """Return the fields from a column down to the one that is to be set.

    Raises:
        SchemaError: there is no such column, or it is no part of structs alone.
    """
    tops = {field.name for field in schema.fields}
    if name not in tops and split_path(name)[0] not in tops:
        raise unknown_column(name, schema)
    path = resolve(schema, name)
    for above in path[:-1]:
        if above.logical_type != "struct":
            raise SchemaError(
                f"column {name!r} cannot be set, as {above.name!r} is not a struct but of type "
                f"{above.logical_type!r}; set the whole column"
            )
    return path


def _refuse_overlaps(name: str, parts: Sequence[Part]) -> None:
    for number, one in enumerate(parts):
        for other in parts[number + 1 :]:
            short, long = sorted((one.path, other.path), key=len)
            if long[: len(short)] == short:
                first, second = (".".join((name, *path)) for path in (short, long))
                raise SchemaError(f"columns {first!r} and {second!r} overlap; set one of them")


def unknown_column(name: str, schema: Schema) -> SchemaError:
    """Return the error for a column that is set but is not there."""
    known = ", ".join(repr(field.name) for field in schema.fields[:10])
    return SchemaError(f"column {name!r} cannot be set, it is not in the table; there are {known}")


def assigned(field: Field, array: pa.Array) -> pa.Array:
    """Return values as they are written to a field.

    Raises:
        InputError: a value does not fit, or is null where it must not be.
    """
    made = exact_cast(field.name, _joined(array), write_type(field))
    refuse_nulls(made, field, field.name)
    return made


def exact_cast(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the values under another type.

    Raises:
        InputError: a value has no equal in that type.
    """
    array = without_extensions(array)
    if array.type == target:
        return array
    if _types.is_null(array.type):
        return pa.nulls(len(array), target)
    if _types.is_nested(target) or _types.is_nested(array.type) or _types.is_dictionary(target):
        return _planned(path, array, target)
    if _types.is_dictionary(array.type):
        return exact_cast(path, array.dictionary_decode(), target)
    try:
        if _types.is_time(target) and is_text(array.type):
            array = cast(array, pa.time64("ns"))
        made = array.cast(target)
    except (ExpressionError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise InputError(
            f"column {path!r} of type {target} cannot take all values of type {array.type}: "
            f"{str(cause).splitlines()[0]}"
        ) from cause
    if _types.is_floating(array.type) and _types.is_floating(target):
        _refuse_overflow(path, array, made)
    return made


class _ExactCasts(CastPlanner):
    """Plan casts, checking values where the types alone do not decide."""

    def _plan_scalar(
        self, path: str, source: pa.DataType, target: pa.DataType
    ) -> tuple[bool, Step | None]:
        if _types.is_nested(source) or _types.is_nested(target):
            return super()._plan_scalar(path, source, target)
        return True, lambda array: exact_cast(path, array, target)


def _planned(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    planner = _ExactCasts()
    step = planner.plan(path, array.type, target)
    if planner.mismatches:
        raise SchemaError(f"column {path!r} of type {target} cannot take values of {array.type}")
    return as_type(step(array) if step else array, target)


def _refuse_overflow(path: str, array: pa.Array, made: pa.Array) -> None:
    if made.type.bit_width >= array.type.bit_width or not len(array):
        return
    lost = pc.and_(pc.is_inf(made.cast(pa.float64())), pc.is_finite(array.cast(pa.float64())))
    if pc.any(lost).as_py():
        place = int(np.flatnonzero(lost.fill_null(False).to_numpy(zero_copy_only=False))[0])  # noqa: FBT003
        raise InputError(f"column {path!r} of type {made.type} cannot hold {array[place].as_py()}")
