"""Convert a constant to the type of the column it is compared with.

Casting the constant instead of the column keeps a comparison one pass over the column. Integers,
decimals, dates and timestamps are all whole numbers of some unit, so a constant has a place on
that number line even when the type cannot hold it: between two values (``i = 0.5``) or beyond
the last one (``tiny < 1000``). Such comparisons become ones the type can express.
"""

import decimal
import math
from fractions import Fraction

import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.coerce import is_bytes, is_instant, is_number, is_text
from lancetable.expression.operators.cast import cast
from lancetable.expression.scalars import make_scalar
from lancetable.expression.tree import Compare, Comparison, Expression, Literal, literal

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
_BEYOND = {Comparison.GT, Comparison.GE, Comparison.NE}
_UPPER = {Comparison.GT, Comparison.GE}


def fit_value(scalar: pa.Scalar, type_: pa.DataType) -> pa.Scalar | None:
    """Return the constant in exactly the given type, or None if the type cannot hold it."""
    if not scalar.is_valid:
        return make_scalar(None, type_)
    if scalar.type.equals(type_):
        return scalar
    if _is_counted(type_):
        if not fits_kind(scalar, type_):
            return None
        place = _place(scalar, type_)
        if not isinstance(place, Fraction) or place.denominator != 1:
            return None
        low, high = _bounds(type_)
        return _at(int(place), type_) if low <= place <= high else None
    return _fit_other(scalar, type_)


def fit_values(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Return those of many constants that the type can hold, as :func:`fit_value` does for one.

    Return None where each constant must be converted individually.
    """
    if values.type.equals(type_):
        return values
    if pt.is_int64(values.type) and pt.is_integer(type_):
        low, high = _bounds(type_)
        numbers = values.to_numpy()
        return pa.array(numbers[(numbers >= low) & (numbers <= high)]).cast(type_)
    if pt.is_int64(values.type) and pt.is_float64(type_):
        return values.cast(type_, safe=False)
    if pt.is_string(values.type) and pt.is_large_string(type_):
        return values.cast(type_)
    return None


def _fit_other(scalar: pa.Scalar, type_: pa.DataType) -> pa.Scalar | None:
    if pt.is_floating(type_) and is_number(scalar.type):
        wide = float(scalar.as_py())
        fitted = make_scalar(wide, pa.float64()).cast(type_, safe=False)
        return None if math.isinf(fitted.as_py()) and not math.isinf(wide) else fitted
    same_kind = (is_text(type_) and is_text(scalar.type)) or (
        is_bytes(type_) and is_bytes(scalar.type)
    )
    if same_kind and not (
        pt.is_fixed_size_binary(type_) and len(scalar.as_py()) != type_.byte_width
    ):
        return make_scalar(scalar.as_py(), type_)
    return None


def fits_kind(scalar: pa.Scalar, type_: pa.DataType) -> bool:
    """Return whether the constant is comparable with a column of the type."""
    kind = scalar.type
    if is_number(type_):
        return is_number(kind)
    if is_instant(type_):
        return is_instant(kind) or is_text(kind)
    if pt.is_time(type_):
        return bool(pt.is_time(kind)) or is_text(kind)
    return False


def fit_comparison(
    op: Comparison, operand: Expression, scalar: pa.Scalar, type_: pa.DataType
) -> Expression | None:
    """Return ``operand op scalar`` with the constant in the operand's type.

    Return None if the operand itself must be cast.
    """
    fitted = fit_value(scalar, type_)
    if fitted is not None:
        return Compare(op, operand, Literal(fitted))
    if not (_is_counted(type_) and fits_kind(scalar, type_)):
        return None
    if op is Comparison.DISTINCT:
        return literal(value=True)
    if op is Comparison.NOT_DISTINCT:
        return literal(value=False)
    return _compare_unreachable(op, operand, _place(scalar, type_), type_)


def _compare_unreachable(
    op: Comparison, operand: Expression, place: Fraction | float, type_: pa.DataType
) -> Expression:
    low, high = _bounds(type_)
    always, never = _always_and_never(operand, low, type_)
    is_nan = math.isnan(place)
    is_below = is_nan and math.copysign(1.0, place) < 0
    if (is_nan and not is_below) or place > high:
        return never if op in _UPPER or op is Comparison.EQ else always
    if is_below or place < low:
        return always if op in _BEYOND else never
    if op is Comparison.EQ:
        return never
    if op is Comparison.NE:
        return always
    below = Literal(_at(math.floor(place), type_))
    return Compare(Comparison.GT if op in _UPPER else Comparison.LE, operand, below)


def _always_and_never(
    operand: Expression, low: int, type_: pa.DataType
) -> tuple[Expression, Expression]:
    """Return tests that are true for every value and for none, and null for a missing one."""
    if is_number(type_):
        least = Literal(_at(low, type_))
        return Compare(Comparison.GE, operand, least), Compare(Comparison.LT, operand, least)
    # The first instant of a type is outside the range of Python's calendar.
    return Compare(Comparison.EQ, operand, operand), Compare(Comparison.NE, operand, operand)


def _is_counted(type_: pa.DataType) -> bool:
    return bool(
        pt.is_integer(type_)
        or pt.is_decimal(type_)
        or pt.is_date32(type_)
        or pt.is_timestamp(type_)
        or pt.is_time(type_)
    )


def _place(scalar: pa.Scalar, type_: pa.DataType) -> Fraction | float:
    if pt.is_integer(type_):
        return _number(scalar)
    if pt.is_decimal(type_):
        number = _number(scalar)
        return number * 10**type_.scale if isinstance(number, Fraction) else number
    if pt.is_date32(type_):
        return Fraction(_nanoseconds(scalar), _DAY)
    return Fraction(_nanoseconds(scalar, time=pt.is_time(type_)), _NANOSECONDS[type_.unit])


def _number(scalar: pa.Scalar) -> Fraction | float:
    value = scalar.as_py()
    if not isinstance(value, float):
        return Fraction(value)
    # The shortest text of the double is what the user wrote: 1.1 is exactly eleven tenths.
    return Fraction(decimal.Decimal(repr(value))) if math.isfinite(value) else value


def _nanoseconds(scalar: pa.Scalar, *, time: bool = False) -> int:
    if is_text(scalar.type):
        scalar = _parse_time(scalar) if time else _parse_instant(scalar)
    if pt.is_date32(scalar.type):
        return int(scalar.value) * _DAY
    unit = "ms" if pt.is_date64(scalar.type) else scalar.type.unit
    return int(scalar.value) * _NANOSECONDS[unit]


def _parse_instant(scalar: pa.Scalar) -> pa.Scalar:
    text = pa.repeat(scalar, 1)
    try:
        return cast(text, pa.timestamp("ns"))[0]
    except ExpressionError:
        return cast(text, pa.timestamp("us"))[0]


def _parse_time(scalar: pa.Scalar) -> pa.Scalar:
    return cast(pa.repeat(scalar, 1), pa.time64("ns"))[0]


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    if pt.is_decimal(type_):
        largest = 10**type_.precision - 1
        return -largest, largest
    bits = type_.bit_width
    if pt.is_unsigned_integer(type_):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _at(place: int, type_: pa.DataType) -> pa.Scalar:
    if pt.is_integer(type_):
        return make_scalar(place, type_)
    if pt.is_decimal(type_):
        with decimal.localcontext(prec=80):
            return pa.scalar(decimal.Decimal(place).scaleb(-type_.scale), type_)
    counter = pa.int32() if type_.bit_width == 32 else pa.int64()
    return make_scalar(place, counter).cast(type_)
