"""What do columns become that are set to expressions: values of exactly the column's type.

Numbers, texts and times are cast value by value and refused where a value would change; floating
point numbers may be rounded to a narrower column. Lists and structs follow the rules of appended
data.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError, SchemaError
from lancetable.expression import Expression, bind, evaluate, parse
from lancetable.format.schema.model import Field, Schema
from lancetable.operations.casts import CastPlanner, as_type
from lancetable.operations.fit import refuse_nulls, write_type

_types = pa.types


@dataclass(frozen=True, slots=True)
class Assignment:
    """A top-level column and the bound expression it is set to."""

    field: Field
    expression: Expression

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return what the column becomes for the rows of a batch.

        Raises:
            ExpressionError: a value cannot be computed.
            InputError: a value does not fit the column.
        """
        return assigned(self.field, evaluate(self.expression, batch))


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
    values: Mapping[str, Expression], schema: Schema, names: pa.Schema
) -> tuple[Assignment, ...]:
    """Return assignments in the order of the schema; expressions may name what ``names`` has.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression does not fit the columns.
    """
    fields = {field.name: field for field in schema.fields}
    for name in values:
        if name not in fields:
            raise unknown_column(name, schema)
    return tuple(
        Assignment(field, bind(values[field.name], names))
        for field in schema.fields
        if field.name in values
    )


def unknown_column(name: str, schema: Schema) -> SchemaError:
    """Return the error for a column that is set but is not there."""
    known = ", ".join(repr(field.name) for field in schema.fields[:10])
    return SchemaError(f"column {name!r} cannot be set, it is not in the table; there are {known}")


def assigned(field: Field, array: pa.Array) -> pa.Array:
    """Return values as they are written to a field.

    Raises:
        InputError: a value does not fit, or is null where it must not be.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    made = exact_cast(field.name, array, write_type(field))
    refuse_nulls(made, field, field.name)
    return made


def exact_cast(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the values under another type.

    Raises:
        InputError: a value has no equal in that type.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type == target:
        return array
    if _types.is_null(array.type):
        return pa.nulls(len(array), target)
    if _types.is_nested(target) or _types.is_nested(array.type) or _types.is_dictionary(target):
        return _planned(path, array, target)
    if _types.is_dictionary(array.type):
        return exact_cast(path, array.dictionary_decode(), target)
    try:
        made = array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise InputError(
            f"column {path!r} of type {target} cannot take all values of type {array.type}: "
            f"{str(cause).splitlines()[0]}"
        ) from cause
    if _types.is_floating(array.type) and _types.is_floating(target):
        _refuse_overflow(path, array, made)
    return made


def _planned(path: str, array: pa.Array, target: pa.DataType) -> pa.Array:
    planner = CastPlanner()
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
