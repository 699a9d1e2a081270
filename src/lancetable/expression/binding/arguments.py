"""Convert the arguments of a function to the types it accepts."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression import coerce
from lancetable.expression.binding.fit import fit_value
from lancetable.expression.functions.signature import Function, Kind
from lancetable.expression.render import to_sql
from lancetable.expression.tree import Cast, Expression, Literal


class Bound(NamedTuple):
    """A bound expression and its type."""

    expression: Expression
    type: pa.DataType


def convert(bound: Bound, type_: pa.DataType) -> Bound:
    """Convert a value to a type."""
    if bound.type.equals(type_):
        return bound
    if isinstance(bound.expression, Literal):
        fitted = fit_value(bound.expression.scalar, type_)
        if fitted is not None:
            return Bound(Literal(fitted), type_)
    return Bound(Cast(bound.expression, type_), type_)


def one_type(name: str, values: Sequence[Bound]) -> list[Bound]:
    """Convert values to one type; constants adapt to the other values."""
    shared: pa.DataType = pa.null()
    constants = [value for value in values if isinstance(value.expression, Literal)]
    others = [value for value in values if not isinstance(value.expression, Literal)]
    for value in (*others, *constants):
        if isinstance(value.expression, Literal) and _holds(value.expression.scalar, shared):
            continue
        joined = coerce.common_type(shared, value.type)
        if joined is None:
            message = f"{name} needs values of one type, not {shared} and {value.type}"
            raise ExpressionError(message)
        shared = joined
    return [convert(value, shared) for value in values]


def _holds(scalar: pa.Scalar, type_: pa.DataType) -> bool:
    return not pt.is_null(type_) and fit_value(scalar, type_) is not None


def match_arguments(name: str, function: Function, arguments: Sequence[Bound]) -> list[Bound]:
    """Convert the arguments of a call to the kinds the function accepts.

    Raises:
        ExpressionError: An argument is of the wrong kind.
    """
    kinds = [function.kind(index) for index in range(len(arguments))]
    if kinds[0] is Kind.SAME:
        return one_type(name, arguments)
    matched = [
        _match(name, kind, argument) for kind, argument in zip(kinds, arguments, strict=True)
    ]
    if kinds[0] is Kind.AS_TEXT:
        return one_type(name, matched)
    if kinds[0] is Kind.LIST and len(matched) > 1 and kinds[1] in {Kind.LIST, Kind.ANY}:
        return _match_elements(name, matched)
    return matched


def _match_elements(name: str, arguments: Sequence[Bound]) -> list[Bound]:
    """Convert a list and the elements it is searched for to one element type."""
    lists, wanted = arguments
    inner = coerce.plain(lists.type.value_type)
    of_list = coerce.is_list(wanted.type)
    item = coerce.plain(wanted.type.value_type) if of_list else wanted.type
    if not of_list and isinstance(wanted.expression, Literal):
        fitted = fit_value(wanted.expression.scalar, inner)
        if fitted is not None:
            return [_with_elements(lists, inner), Bound(Literal(fitted), inner)]
    # Constant lists are converted to the column's element type where possible.
    shared = inner if of_list and _list_fits(wanted, inner) else coerce.common_type(inner, item)
    if shared is None:
        raise ExpressionError(f"{name} cannot look for {wanted.type} in {lists.type}")
    if of_list:
        return [_with_elements(lists, shared), convert(wanted, pa.list_(shared))]
    return [_with_elements(lists, shared), convert(wanted, shared)]


def _with_elements(lists: Bound, inner: pa.DataType) -> Bound:
    if lists.type.value_type.equals(inner):
        return lists
    return Bound(Cast(lists.expression, pa.list_(inner)), pa.list_(inner))


def _list_fits(wanted: Bound, inner: pa.DataType) -> bool:
    if not isinstance(wanted.expression, Literal) or not wanted.expression.scalar.is_valid:
        return False
    return all(fit_value(each, inner) is not None for each in wanted.expression.scalar.values)


def _match(name: str, kind: Kind, argument: Bound) -> Bound:
    rule = _RULES.get(kind)
    if rule is None:
        return argument
    wanted = rule(argument.type)
    if wanted is None and kind is Kind.INSTANT and isinstance(argument.expression, Literal):
        wanted = pa.timestamp("us") if coerce.is_text(argument.type) else None
    if wanted is None:
        text = to_sql(argument.expression)
        raise ExpressionError(f"{name} takes {kind.value}, but {text} is of type {argument.type}")
    return convert(argument, wanted)


def _text(type_: pa.DataType) -> pa.DataType | None:
    if pt.is_null(type_) or pt.is_string_view(type_):
        return pa.string()
    return type_ if coerce.is_text(type_) else None


def _as_text(type_: pa.DataType) -> pa.DataType | None:
    if coerce.is_list(type_) or pt.is_struct(type_):
        return None
    return type_ if pt.is_large_string(type_) else pa.string()


def _bytes(type_: pa.DataType) -> pa.DataType | None:
    if coerce.is_bytes(type_):
        return type_ if pt.is_binary(type_) or pt.is_large_binary(type_) else pa.binary()
    return _text(type_)


def _integer(type_: pa.DataType) -> pa.DataType | None:
    return pa.int64() if pt.is_integer(type_) or pt.is_null(type_) else None


def _number(type_: pa.DataType) -> pa.DataType | None:
    if pt.is_null(type_):
        return pa.int64()
    return type_ if coerce.is_number(type_) else None


def _float(type_: pa.DataType) -> pa.DataType | None:
    return pa.float64() if coerce.is_number(type_) or pt.is_null(type_) else None


def _float_or_decimal(type_: pa.DataType) -> pa.DataType | None:
    return type_ if pt.is_decimal(type_) else _float(type_)


def _instant(type_: pa.DataType) -> pa.DataType | None:
    if pt.is_null(type_):
        return pa.timestamp("us")
    return type_ if coerce.is_instant(type_) else None


def _list(type_: pa.DataType) -> pa.DataType | None:
    if pt.is_null(type_):
        return pa.list_(pa.null())
    return type_ if coerce.is_list(type_) else None


_RULES: Mapping[Kind, Callable[[pa.DataType], pa.DataType | None]] = {
    Kind.TEXT: _text,
    Kind.AS_TEXT: _as_text,
    Kind.BYTES: _bytes,
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.FLOAT: _float,
    Kind.FLOAT_OR_DECIMAL: _float_or_decimal,
    Kind.INSTANT: _instant,
    Kind.LIST: _list,
}
