"""Which predicate is a filter that Spark offers.

Spark keeps a row when its filter is true, and so does a scan; both drop it when the filter is false
or unknown. A translation means exactly the same, also below a negation, or there is none.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import datasource as ds

from lancetable.errors import LanceTableError
from lancetable.expression import (
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    bind_predicate,
    literal,
)

_types = pa.types
_COMPARISONS: Mapping[type[ds.Filter], Comparison] = {
    ds.EqualTo: Comparison.EQ,
    ds.EqualNullSafe: Comparison.NOT_DISTINCT,
    ds.GreaterThan: Comparison.GT,
    ds.GreaterThanOrEqual: Comparison.GE,
    ds.LessThan: Comparison.LT,
    ds.LessThanOrEqual: Comparison.LE,
}
_PATTERNS: Mapping[type[ds.Filter], str] = {
    ds.StringStartsWith: "{}%",
    ds.StringEndsWith: "%{}",
    ds.StringContains: "%{}%",
}
_NUMBERS = (int, float, Decimal)


class Pushed(NamedTuple):
    """The filters that a scan applies, as predicates, and those that Spark must apply."""

    applied: tuple[Expression, ...]
    left: tuple[ds.Filter, ...]


def push(filters: Iterable[ds.Filter], schema: pa.Schema, *, is_truncated: bool = False) -> Pushed:
    """Translate what can be translated; ``schema`` has the storage types of the table.

    With ``is_truncated`` Spark sees times without their nanoseconds, and must compare those itself.
    """
    applied, left = [], []
    for one in filters:
        is_open = not (is_truncated and _is_in_nanoseconds(one, schema))
        found = translate(one, schema) if is_open else None
        if found is None:
            left.append(one)
        else:
            applied.append(found)
    return Pushed(tuple(applied), tuple(left))


def _is_in_nanoseconds(filter_: ds.Filter, schema: pa.Schema) -> bool:
    described: Any = filter_
    while isinstance(described, ds.Not):
        described = described.child
    type_ = _type_at(schema, described.attribute)
    return type_ is not None and _types.is_timestamp(type_) and type_.unit == "ns"


def translate(filter_: ds.Filter, schema: pa.Schema) -> Expression | None:
    """Return the predicate that means the same as a filter, ``None`` when there is none."""
    made = _translate(filter_, schema)
    if made is None:
        return None
    try:
        bind_predicate(made, schema)
    except LanceTableError:
        return None
    return made


def _translate(filter_: ds.Filter, schema: pa.Schema) -> Expression | None:
    if isinstance(filter_, ds.Not):
        inner = _translate(filter_.child, schema)
        return None if inner is None else Not(inner)
    described: Any = filter_
    type_ = _type_at(schema, described.attribute)
    if type_ is None:
        return None
    column = Column(tuple(described.attribute))
    if isinstance(filter_, ds.IsNull | ds.IsNotNull):
        return IsNull(column, negated=isinstance(filter_, ds.IsNotNull))
    if isinstance(filter_, ds.In):
        return _membership(column, type_, filter_.value)
    return _compared(filter_, column, _constant(described.value, type_))


def _compared(filter_: ds.Filter, column: Column, constant: Literal | None) -> Expression | None:
    if constant is None:
        return None
    comparison = _COMPARISONS.get(type(filter_))
    if comparison is not None:
        return Compare(comparison, column, constant)
    pattern = _PATTERNS.get(type(filter_))
    if pattern is None or not isinstance(constant.value, str):
        return None
    return Like(column, literal(pattern.format(_escaped(constant.value))))


def _type_at(schema: pa.Schema, path: Iterable[str]) -> pa.DataType | None:
    """Return the type of a column or a part of it, without what is around its values."""
    found: pa.DataType = pa.struct(list(schema))
    for name in path:
        place = found.get_field_index(name) if _types.is_struct(found) else -1
        if place < 0:
            return None
        found = found.field(place).type
    if isinstance(found, pa.BaseExtensionType):
        return None
    return found.value_type if _types.is_dictionary(found) else found


def _membership(column: Column, type_: pa.DataType, values: Iterable[object]) -> Expression | None:
    constants = [_constant(value, type_) for value in values]
    known = tuple(constant for constant in constants if constant is not None)
    if not known or len(known) < len(constants):
        return None
    if _types.is_floating(type_):
        # Spark takes the two zeros for one number, and so does a comparison, but not a set.
        return Or(tuple(Compare(Comparison.EQ, column, constant) for constant in known))
    return In(column, known)


def _escaped(text: str) -> str:
    for letter in "\\%_":
        text = text.replace(letter, f"\\{letter}")
    return text


def _constant(value: object, type_: pa.DataType) -> Literal | None:
    """Return a value of Spark as one that can be compared with a column exactly."""
    for is_kind, make in _KINDS:
        if is_kind(type_):
            try:
                return make(value, type_)
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                return None
    return None


def _whole(value: object, _: pa.DataType) -> Literal | None:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS) or int(value) != value:
        return None
    return literal(int(value), pa.uint64() if value >= 2**63 else pa.int64())


def _real(value: object, _: pa.DataType) -> Literal | None:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    return literal(float(value), pa.float64())


def _digits(value: object, type_: pa.DataType) -> Literal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return literal(Decimal(value), pa.decimal128(type_.precision, type_.scale))


def _text(value: object, _: pa.DataType) -> Literal | None:
    return literal(value, pa.string()) if isinstance(value, str) else None


def _bytes(value: object, _: pa.DataType) -> Literal | None:
    return literal(bytes(value), pa.binary()) if isinstance(value, bytes | bytearray) else None


def _truth(value: object, _: pa.DataType) -> Literal | None:
    return literal(value) if isinstance(value, bool) else None


def _day(value: object, _: pa.DataType) -> Literal | None:
    if not isinstance(value, date) or isinstance(value, datetime):
        return None
    return literal(value, pa.date32())


def _instant(value: object, type_: pa.DataType) -> Literal | None:
    if not isinstance(value, datetime) or (value.tzinfo is None) != (type_.tz is None):
        return None
    if type_.tz is None:
        return literal(value, pa.timestamp("us"))
    return literal(value.astimezone(UTC), pa.timestamp("us", "UTC"))


def _is_text(type_: pa.DataType) -> bool:
    return bool(_types.is_string(type_) or _types.is_large_string(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(_types.is_binary(type_) or _types.is_large_binary(type_))


def _is_small_decimal(type_: pa.DataType) -> bool:
    return bool(_types.is_decimal(type_)) and 0 <= type_.scale <= type_.precision <= 38


_KINDS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], Literal | None]], ...
] = (
    (_types.is_boolean, _truth),
    (_types.is_integer, _whole),
    (_types.is_floating, _real),
    (_is_small_decimal, _digits),
    (_is_text, _text),
    (_is_bytes, _bytes),
    (_types.is_date32, _day),
    (_types.is_timestamp, _instant),
)
