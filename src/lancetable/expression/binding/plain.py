"""Bind tests of columns that need no conversion, as most of those that are written out do not.

A column has to have exactly the name, and a constant exactly the type of the column; then binding
changes nothing. None for any other expression.
"""

import pyarrow as pa
import pyarrow.types as pt

from lancetable.expression.operators.compare import choices_of
from lancetable.expression.tree import (
    And,
    Call,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Literals,
)

_TYPES = frozenset({pa.int64(), pa.float64(), pa.string(), pa.bool_()})
_OF_TEXTS = frozenset({"contains", "starts_with", "ends_with"})
_OF_LISTS = frozenset({"array_has", "array_contains", "list_has", "list_contains"})


def bind_plain(expression: Expression, schema: pa.Schema) -> Expression | None:
    """Return a test, or several that must all be true, bound to a schema."""
    if not isinstance(expression, And):
        return _test(expression, schema)
    parts: list[Expression] = []
    for operand in expression.operands:
        found = bind_plain(operand, schema)
        if found is None:
            return None
        parts += found.operands if isinstance(found, And) else (found,)
    return And(tuple(parts))


def _test(part: Expression, schema: pa.Schema) -> Expression | None:
    is_plain = False
    match part:
        case Compare(_, Column() as column, Literal(scalar)):
            type_ = _type_of(column, schema)
            is_plain = type_ == scalar.type and type_ in _TYPES and scalar.is_valid
        case In(Column() as column, Literals(array), negated):
            type_ = _type_of(column, schema)
            if type_ == array.type and type_ in _TYPES:
                return In(column, part.items, negated, choices_of(array))
        case IsNull(Column() as column):
            is_plain = _type_of(column, schema) in _TYPES
        case Call(name, (Column() as column, Literal(scalar))) if scalar.type == pa.string():
            is_plain = _takes(name, _type_of(column, schema)) and scalar.is_valid
        case _:
            pass
    return part if is_plain else None


def _takes(name: str, type_: pa.DataType | None) -> bool:
    if name in _OF_LISTS and type_ is not None and pt.is_list(type_):
        return bool(type_.value_type == pa.string())
    return name in _OF_TEXTS and bool(type_ == pa.string())


def _type_of(column: Column, schema: pa.Schema) -> pa.DataType | None:
    """Return the type of a column with exactly this name; None when there is none, or several."""
    if len(column.path) > 1 or column.is_quoted:
        return None
    position = schema.get_field_index(column.path[0])
    return None if position < 0 else schema.field(position).type
