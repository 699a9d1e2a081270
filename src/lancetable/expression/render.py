"""Render expressions as SQL."""

import math

import pyarrow as pa
import pyarrow.types as pt

from lancetable.expression.arrow_types import arrow_type_name
from lancetable.expression.coerce import is_list
from lancetable.expression.tree import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    IsTrue,
    Item,
    Like,
    Literal,
    Negate,
    Not,
    Opaque,
    Or,
)

_TYPE_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "tinyint unsigned",
    pa.uint16(): "smallint unsigned",
    pa.uint32(): "int unsigned",
    pa.uint64(): "bigint unsigned",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("s"): "timestamp(0)",
    pa.timestamp("ms"): "timestamp(3)",
    pa.timestamp("us"): "timestamp(6)",
    pa.timestamp("ns"): "timestamp(9)",
}


def to_sql(expression: Expression) -> str:
    """Write an expression as SQL text."""
    match expression:
        case Column(path):
            return ".".join(_name(part) for part in path)
        case Literal(scalar):
            return _literal(scalar)
        case Compare(op, left, right) | Arithmetic(op, left, right):
            return f"{_inner(left)} {op.value} {_inner(right)}"
        case And(operands) | Or(operands) | Call("||", operands):
            word = {And: " AND ", Or: " OR ", Call: " || "}[type(expression)]
            return word.join(_inner(part) for part in operands)
        case Call(name, arguments):
            return f"{name}({', '.join(to_sql(part) for part in arguments)})"
        case _:
            return _rest(expression)


def _rest(
    expression: Not | In | Like | IsNull | IsTrue | Negate | Cast | Case | Item | Opaque,
) -> str:
    match expression:
        case Not(operand):
            return f"NOT {_inner(operand)}"
        case Negate(operand):
            return f"-({to_sql(operand)})"
        case Item(operand, key):
            return f"{_inner(operand)}[{to_sql(key)}]"
        case Case(branches, otherwise):
            whens = "".join(f" WHEN {to_sql(when)} THEN {to_sql(then)}" for when, then in branches)
            return f"CASE{whens} ELSE {to_sql(otherwise)} END"
        case Opaque(text):
            return f"arrow({text})"
        case _:
            return _test(expression)


def _test(expression: In | Like | IsNull | IsTrue | Cast) -> str:
    if isinstance(expression, Cast):
        return _cast(expression)
    negation = "NOT " if expression.negated else ""
    operand = _inner(expression.operand)
    match expression:
        case In(_, items):
            return f"{operand} {negation}IN ({', '.join(to_sql(item) for item in items)})"
        case Like(_, pattern, ignore_case=ignore_case, escape=escape):
            verb = "ILIKE" if ignore_case else "LIKE"
            ending = "" if escape == "\\" else f" ESCAPE {_quote(escape)}"
            return f"{operand} {negation}{verb} {_inner(pattern)}{ending}"
        case IsNull():
            return f"{operand} IS {negation}NULL"
        case IsTrue(_, value):
            return f"{operand} IS {negation}{'TRUE' if value else 'FALSE'}"


def _cast(expression: Cast) -> str:
    operand, name = to_sql(expression.operand), type_name(expression.type)
    arrow = arrow_type_name(expression.type) if name == str(expression.type) else None
    if arrow is not None:
        word = "arrow_try_cast" if expression.or_null else "arrow_cast"
        return f"{word}({operand}, {_quote(arrow)})"
    return f"{'TRY_CAST' if expression.or_null else 'CAST'}({operand} AS {name})"


def _inner(expression: Expression) -> str:
    text = to_sql(expression)
    plain = isinstance(expression, Column | Literal | Call | Cast | Item | Case | Opaque)
    return text if plain else f"({text})"


def type_name(type_: pa.DataType) -> str:
    """Return the SQL name of an Arrow type, where there is one."""
    if pt.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pt.is_timestamp(type_) and type_.tz == "UTC":
        return type_name(pa.timestamp(type_.unit)).replace("timestamp", "timestamptz")
    if pt.is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    return _TYPE_NAMES.get(type_, str(type_))


def _name(part: str) -> str:
    if part.isidentifier() and part.isascii():
        return part
    return "`" + part.replace("`", "``") + "`"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(scalar: pa.Scalar) -> str:
    type_ = scalar.type
    if not scalar.is_valid:
        return "NULL"
    if pt.is_boolean(type_):
        return "TRUE" if scalar.as_py() else "FALSE"
    if pt.is_integer(type_) or pt.is_decimal(type_):
        return str(scalar.as_py())
    if pt.is_floating(type_):
        value = float(scalar.as_py())
        return repr(value) if math.isfinite(value) else f"CAST('{value}' AS double)"
    return _nested_literal(scalar) if pt.is_nested(type_) else _text_literal(scalar)


def _nested_literal(scalar: pa.Scalar) -> str:
    if pt.is_struct(scalar.type):
        parts = (f"{_quote(name)}, {_literal(value)}" for name, value in scalar.items())
        return f"named_struct({', '.join(parts)})"
    if is_list(scalar.type):
        return f"[{', '.join(_literal(item) for item in scalar.values)}]"
    return _quote(str(scalar))


def _text_literal(scalar: pa.Scalar) -> str:
    type_ = scalar.type
    if pt.is_string(type_) or pt.is_large_string(type_):
        return _quote(scalar.as_py())
    if pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_fixed_size_binary(type_):
        return f"X'{scalar.as_py().hex()}'"
    if pt.is_temporal(type_) and not (pt.is_interval(type_) or pt.is_duration(type_)):
        word = "DATE" if pt.is_date(type_) else "TIME" if pt.is_time(type_) else "TIMESTAMP"
        return f"{word} '{scalar.cast(pa.string()).as_py()}'"
    return _quote(str(scalar))
