"""Arithmetic and bitwise operations on Arrow values.

Integers stay integers: division truncates the fraction, a division by zero or a result outside
the type is an error; bitwise operators keep the type. Floats follow IEEE 754. Points in time differ
by durations, dates by days, and intervals move them along the calendar.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.coerce import as_decimal, common_type, is_instant, is_number
from lancetable.expression.tree import Operation

_CHECKED: Mapping[Operation, Callable[[pa.Array, pa.Array], pa.Array]] = {
    Operation.ADD: pc.add_checked,
    Operation.SUBTRACT: pc.subtract_checked,
    Operation.MULTIPLY: pc.multiply_checked,
    Operation.DIVIDE: pc.divide_checked,
}
_FLOATING: Mapping[Operation, Callable[[pa.Array, pa.Array], pa.Array]] = {
    Operation.ADD: pc.add,
    Operation.SUBTRACT: pc.subtract,
    Operation.MULTIPLY: pc.multiply,
    Operation.DIVIDE: pc.divide,
}
_BITWISE: Mapping[Operation, Callable[[pa.Array, pa.Array], pa.Array]] = {
    Operation.BIT_AND: pc.bit_wise_and,
    Operation.BIT_OR: pc.bit_wise_or,
    Operation.SHIFT_LEFT: pc.shift_left,
    Operation.SHIFT_RIGHT: pc.shift_right,
}

# Products of small integers rarely fit their own type.
_WIDER = {each: pa.int32() for each in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())}


def operand_types(
    op: Operation, left: pa.DataType, right: pa.DataType
) -> tuple[pa.DataType, pa.DataType] | None:
    """Return the types both operands must be cast to, or None if the operation is undefined."""
    if op.is_bitwise or (is_number(left) and is_number(right)):
        return (_integer_types if op.is_bitwise else _number_types)(op, left, right)
    interval = pa.month_day_nano_interval()
    if op is Operation.ADD and left.equals(interval) and is_instant(right):
        return left, right
    if op not in {Operation.ADD, Operation.SUBTRACT}:
        return None
    if is_instant(left) and (right.equals(interval) or pt.is_duration(right)):
        return left, right
    apart = op is Operation.SUBTRACT and is_instant(left) and is_instant(right)
    shared = common_type(left, right)
    if shared is None or not (apart or (pt.is_duration(left) and pt.is_duration(right))):
        return None
    return shared, shared


def _integer_types(
    _: Operation, left: pa.DataType, right: pa.DataType
) -> tuple[pa.DataType, pa.DataType] | None:
    if not (pt.is_integer(left) and pt.is_integer(right)):
        return None
    # 64-bit unsigned integers keep their type for any other operand.
    is_long = any(each.equals(pa.uint64()) for each in (left, right))
    shared = pa.uint64() if is_long else common_type(left, right)
    return shared, shared


def _number_types(
    op: Operation, left: pa.DataType, right: pa.DataType
) -> tuple[pa.DataType, pa.DataType]:
    shared = common_type(left, right)
    if pt.is_integer(shared) and op not in {Operation.DIVIDE, Operation.REMAINDER}:
        shared = _WIDER.get(shared, shared)
        if op is Operation.SUBTRACT and pt.is_unsigned_integer(shared):
            # The difference of two counts may be negative.
            shared = pa.int64()
    if shared is not None and pt.is_decimal(shared):
        # Arrow derives the result's precision from the operands' own.
        return as_decimal(left), as_decimal(right)
    return shared, shared


def calculate(op: Operation, left: pa.Array, right: pa.Array) -> pa.Array:
    """Apply one operation to two operands, either of which may be a scalar."""
    interval = pa.month_day_nano_interval()
    if right.type.equals(interval):
        return _shift(left, right, backwards=op is Operation.SUBTRACT)
    if left.type.equals(interval):
        return _shift(right, left, backwards=False)
    try:
        return _calculate(op, left, right)
    except pa.ArrowInvalid as cause:
        reason = str(cause)
        if "divide by zero" in reason.lower():
            message = "division by zero: guard the divisor with NULLIF(divisor, 0)"
        else:
            message = f"the result of {op.value} does not fit {left.type}: cast an operand first"
        raise ExpressionError(message) from cause


def _calculate(op: Operation, left: pa.Array, right: pa.Array) -> pa.Array:
    if pt.is_date(left.type) and pt.is_date(right.type):
        days = pc.subtract(left.cast(pa.int32()), right.cast(pa.int32()))
        return days.cast(pa.int64())
    if op.is_bitwise:
        return _calculate_bits(op, left, right)
    if op is Operation.REMAINDER:
        return _remainder(left, right)
    if pt.is_floating(left.type):
        return _FLOATING[op](left, right)
    return _CHECKED[op](left, right)


def _calculate_bits(op: Operation, left: pa.Array, right: pa.Array) -> pa.Array:
    if op.is_shift:
        # As in DataFusion only the lowest bits of the right operand count, and bits may be lost.
        right = pc.bit_wise_and(right, pa.scalar(left.type.bit_width - 1, right.type))
        # Arrow ignores a shift into the sign bit; two smaller ones have the same result.
        half = pc.shift_right(right, pa.scalar(1, right.type))
        left, right = _BITWISE[op](left, half), pc.subtract(right, half)
    return _BITWISE[op](left, right)


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    if pt.is_floating(left.type):
        missing = pc.or_(pc.is_null(left), pc.is_null(right))
        with np.errstate(invalid="ignore"):
            rest = np.fmod(_numpy(left), _numpy(right))
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            return pa.scalar(None if missing.as_py() else rest.item(), left.type)
        return pa.array(rest, left.type, mask=np.asarray(missing))
    if pt.is_integer(left.type) and isinstance(left, pa.Array) and isinstance(right, pa.Scalar):
        divisor = right.as_py()
        if divisor is not None and divisor > 0:
            return _remainder_of(left, divisor)
    whole = pc.divide_checked(left, right)
    if pt.is_decimal(left.type):
        whole = pc.trunc(whole)
    return pc.subtract(left, pc.multiply(whole, right))


_BLOCK = 1 << 14
"""Number of values that fit the CPU cache during several steps."""


def _remainder_of(values: pa.Array, divisor: int) -> pa.Array:
    """Compute remainders for a constant divisor, for which NumPy avoids divisions."""
    data = values.buffers()[1]
    kind = values.type.to_pandas_dtype()
    words = np.frombuffer(data, kind)[values.offset : values.offset + len(values)]
    rest = np.empty(len(words), kind)
    for first in range(0, len(words), _BLOCK):
        block, part = words[first : first + _BLOCK], rest[first : first + _BLOCK]
        np.floor_divide(block, kind(divisor), out=part)
        np.multiply(part, kind(divisor), out=part)
        np.subtract(block, part, out=part)
        if block.min() < 0:
            # SQL's remainder has the sign of the dividend, NumPy's that of the divisor.
            np.subtract(part, kind(divisor), out=part, where=(block < 0) & (part != 0))
    made = pa.Array.from_buffers(values.type, len(values), [None, pa.py_buffer(rest)], 0)
    return made if values.null_count == 0 else pc.if_else(values.is_valid(), made, None)


def _numpy(values: pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if isinstance(values, pa.Scalar):
        value = values.as_py()
        return np.asarray(np.nan if value is None else value)
    filled: np.ndarray[tuple[int, ...], np.dtype[np.generic]] = pc.fill_null(
        values, np.nan
    ).to_numpy(zero_copy_only=False)
    return filled


def negate_values(values: pa.Array) -> pa.Array:
    """Return the arithmetic negation."""
    if pt.is_floating(values.type):
        return pc.negate(values)
    try:
        return pc.negate_checked(values)
    except pa.ArrowInvalid as cause:
        raise ExpressionError(f"the negation of a value does not fit {values.type}") from cause


def _shift(instants: pa.Array, interval: pa.Scalar, *, backwards: bool) -> pa.Array:
    if not isinstance(interval, pa.Scalar):
        raise ExpressionError("an interval must be a constant, like interval '3 days'")
    single = isinstance(instants, pa.Scalar)
    array = pa.array([instants.as_py()], instants.type) if single else instants
    if not interval.is_valid:
        return pa.nulls(len(array), array.type)
    moved = _shift_array(array, interval.as_py(), -1 if backwards else 1)
    return moved[0] if single else moved


def _shift_array(instants: pa.Array, interval: pa.MonthDayNano, sign: int) -> pa.Array:
    type_ = instants.type
    if pt.is_date(type_):
        if interval.nanoseconds % 86_400_000_000_000:
            return _shift_array(instants.cast(pa.timestamp("us")), interval, sign)
        days = instants.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        counted = _fill(days).view("M8[D]")
        moved = _move(counted, interval, sign).astype(np.int64)
        result = pa.array(moved, pa.int64(), mask=_missing(instants))
        return result.cast(pa.int32()).cast(pa.date32()).cast(type_)
    counted = _fill(instants.cast(pa.int64())).view(f"M8[{type_.unit}]")
    moved = _move(counted, interval, sign).astype(np.int64)
    return pa.array(moved, pa.int64(), mask=_missing(instants)).cast(type_)


def _fill(values: pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    filled: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = pc.fill_null(values, 0).to_numpy(
        zero_copy_only=False
    )
    return filled


def _missing(values: pa.Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = pc.is_null(values).to_numpy(
        zero_copy_only=False
    )
    return mask


def _move(
    instants: np.ndarray[tuple[int, ...], np.dtype[np.datetime64]],
    interval: pa.MonthDayNano,
    sign: int,
) -> np.ndarray[tuple[int, ...], np.dtype[np.datetime64]]:
    unit = instants.dtype
    kind = np.dtype(unit.str.replace("M8", "m8"))
    if interval.months:
        month = instants.astype("M8[M]")
        day = instants.astype("M8[D]") - month.astype("M8[D]")
        time = instants - instants.astype("M8[D]").astype(unit)
        month = month + np.timedelta64(sign * interval.months, "M")
        last = (month + np.timedelta64(1, "M")).astype("M8[D]") - np.timedelta64(1, "D")
        # The 31st of a month that has only 30 days is its last day.
        instants = np.minimum(month.astype("M8[D]") + day, last).astype(unit) + time
    days = np.timedelta64(sign * interval.days, "D")
    rest = np.timedelta64(sign * interval.nanoseconds, "ns").astype(kind)
    moved: np.ndarray[tuple[int, ...], np.dtype[np.datetime64]] = instants + days + rest
    return moved
