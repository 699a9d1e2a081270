"""Functions on dates and timestamps."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.coerce import is_text
from lancetable.expression.functions.signature import Function, Kernel, Kind, function
from lancetable.expression.operators.cast import cast

_TRUNCATIONS = (
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _unit(scalar: pa.Scalar) -> str:
    if not isinstance(scalar, pa.Scalar) or not scalar.is_valid:
        raise ExpressionError("the unit of time must be a constant, like 'month'")
    return str(scalar.as_py()).lower()


def _date_trunc(arguments: Sequence[pa.Array]) -> pa.Array:
    unit, values = _unit(arguments[0]), arguments[1]
    if unit not in _TRUNCATIONS:
        known = ", ".join(_TRUNCATIONS)
        raise ExpressionError(f"date_trunc does not support {unit!r}, only {known}")
    if pt.is_date(values.type):
        values = values.cast(pa.timestamp("us"))
    zone, type_ = values.type.tz, values.type
    # Truncate in UTC: Arrow would otherwise need the zone's rules for units below a day.
    moved = values.cast(pa.timestamp(type_.unit)) if zone else values
    return pc.floor_temporal(moved, unit=unit).cast(type_)


def _seconds_with(values: pa.Array, digits: int) -> pa.Array:
    stamps = values.cast(pa.timestamp("ns")) if pt.is_date(values.type) else values
    whole = pc.multiply(pc.second(stamps), 10**digits)
    rest = pc.floor(pc.multiply(pc.subsecond(stamps), float(10**digits)))
    exact = _subsecond_units(stamps, digits) if digits else pc.multiply(rest, 0.0)
    return pc.add(whole, exact.cast(pa.int64())).cast(pa.int64() if digits == 9 else pa.int32())


def _subsecond_units(stamps: pa.Array, digits: int) -> pa.Array:
    per_second = _PER_SECOND[stamps.type.unit]
    count = stamps.cast(pa.int64())
    second = pc.floor_temporal(stamps, unit="second").cast(pa.int64())
    rest = pc.subtract(count, second)
    if 10**digits >= per_second:
        return pc.multiply(rest, 10**digits // per_second)
    return pc.divide(rest, per_second // 10**digits)


def _epoch(values: pa.Array) -> pa.Array:
    if pt.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    count = values.cast(pa.int64()).cast(pa.float64(), safe=False)
    return pc.divide(count, float(_PER_SECOND[values.type.unit]))


def _int32(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[pa.Array], pa.Array]:
    return lambda values: kernel(values).cast(pa.int32())


_PARTS: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "year": _int32(pc.year),
    "isoyear": _int32(pc.iso_year),
    "quarter": _int32(pc.quarter),
    "month": _int32(pc.month),
    "week": _int32(pc.iso_week),
    "day": _int32(pc.day),
    "hour": _int32(lambda values: pc.hour(_stamps(values))),
    "minute": _int32(lambda values: pc.minute(_stamps(values))),
    "second": _int32(lambda values: pc.second(_stamps(values))),
    "millisecond": lambda values: _seconds_with(values, 3),
    "microsecond": lambda values: _seconds_with(values, 6),
    "nanosecond": lambda values: _seconds_with(values, 9),
    "dow": _int32(lambda values: pc.day_of_week(values, count_from_zero=True, week_start=7)),
    "isodow": _int32(lambda values: pc.day_of_week(values, count_from_zero=False, week_start=1)),
    "doy": _int32(pc.day_of_year),
    "epoch": _epoch,
}


def _stamps(values: pa.Array) -> pa.Array:
    return values.cast(pa.timestamp("s")) if pt.is_date(values.type) else values


def _part(name: str, values: pa.Array) -> pa.Array:
    kernel = _PARTS.get(name) or _PARTS.get(name.removesuffix("s"))
    if kernel is None:
        raise ExpressionError(f"there is no part {name!r} of a date, only {', '.join(_PARTS)}")
    if pt.is_timestamp(values.type) and values.type.tz is not None and name != "epoch":
        values = pc.local_timestamp(values)
    return kernel(values)


def _date_part(arguments: Sequence[pa.Array]) -> pa.Array:
    return _part(_unit(arguments[0]), arguments[1])


def _named_part(name: str) -> Function:
    return function(lambda arguments: _part(name, arguments[0]), Kind.INSTANT)


def _to_timestamp(unit: str, counted: str) -> Kernel:
    def compute(arguments: Sequence[pa.Array]) -> pa.Array:
        values = arguments[0]
        if is_text(values.type) or pt.is_date(values.type) or pt.is_timestamp(values.type):
            return cast(values, pa.timestamp(unit))
        if pt.is_floating(values.type) or pt.is_decimal(values.type):
            scaled = pc.multiply(cast(values, pa.float64()), float(_PER_SECOND[unit]))
            return cast(scaled, pa.int64()).cast(pa.timestamp(unit))
        return cast(cast(values, pa.int64()).cast(pa.timestamp(counted)), pa.timestamp(unit))

    return compute


def _to_date(arguments: Sequence[pa.Array]) -> pa.Array:
    return cast(arguments[0], pa.date32())


_DATE_PART = function(_date_part, Kind.TEXT, Kind.INSTANT, subject=1)
_DATE_TRUNC = function(_date_trunc, Kind.TEXT, Kind.INSTANT, subject=1)

TIME_FUNCTIONS: Mapping[str, Function] = {
    "date_trunc": _DATE_TRUNC,
    "datetrunc": _DATE_TRUNC,
    "date_part": _DATE_PART,
    "datepart": _DATE_PART,
    "year": _named_part("year"),
    "quarter": _named_part("quarter"),
    "month": _named_part("month"),
    "week": _named_part("week"),
    "day": _named_part("day"),
    "hour": _named_part("hour"),
    "minute": _named_part("minute"),
    "second": _named_part("second"),
    "to_timestamp": function(_to_timestamp("ns", "s"), Kind.ANY),
    "to_timestamp_seconds": function(_to_timestamp("s", "s"), Kind.ANY),
    "to_timestamp_millis": function(_to_timestamp("ms", "ms"), Kind.ANY),
    "to_timestamp_micros": function(_to_timestamp("us", "us"), Kind.ANY),
    "to_timestamp_nanos": function(_to_timestamp("ns", "ns"), Kind.ANY),
    "to_date": function(_to_date, Kind.ANY),
}
