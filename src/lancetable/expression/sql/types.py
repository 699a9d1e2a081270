"""Translate SQL type names and intervals to Arrow."""

import re
from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

_UNITS_BY_DIGITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}

_SIMPLE: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "NCHAR": pa.string(),
    "VARCHAR": pa.string(),
    "NVARCHAR": pa.string(),
    "TEXT": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
}

TYPE_NAMES = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "(each of these) unsigned",
    "float",
    "double",
    "decimal(p, s)",
    "string",
    "binary",
    "date",
    "time",
    "timestamp(digits)",
)


def arrow_type(node: exp.DataType) -> pa.DataType | None:
    """Return the Arrow type of a parsed type name, or None if there is none."""
    kind = node.this
    name = str(getattr(kind, "name", kind))
    parameters = [part.name for part in node.expressions if isinstance(part, exp.DataTypeParam)]
    if name in {"TIMESTAMP", "DATETIME", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ"}:
        unit = _UNITS_BY_DIGITS.get(int(parameters[0]) if parameters else 6)
        zone = "UTC" if name in {"TIMESTAMPTZ", "TIMESTAMPLTZ"} else None
        return None if unit is None else pa.timestamp(unit, zone)
    if name == "DECIMAL":
        return _decimal(parameters)
    if name in {"ARRAY", "LIST"} and len(node.expressions) == 1:
        inner = arrow_type(node.expressions[0])
        return None if inner is None else pa.list_(inner)
    return _SIMPLE.get(name)


def _decimal(parameters: list[str]) -> pa.DataType | None:
    precision = int(parameters[0]) if parameters else 38
    scale = int(parameters[1]) if len(parameters) > 1 else (0 if parameters else 10)
    if not (0 < precision <= 76 and 0 <= scale <= precision):
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}
_NANOSECONDS = {
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}
_PART = re.compile(r"\s*([+-]?\d{1,9}(?:\.\d{1,9})?)\s*([a-zA-Z]+)\s*,?")
_SHORT = {"mon": "month", "min": "minute", "sec": "second", "ms": "millisecond"}


def parse_interval(text: str) -> pa.MonthDayNano | None:
    """Read an interval like ``1 day 2 hours``, or return None if it is not one."""
    months = days = nanoseconds = 0
    position = 0
    while position < len(text.rstrip()):
        found = _PART.match(text, position)
        if found is None:
            return None
        amount, word = found.group(1), found.group(2).lower()
        unit = _SHORT.get(word, word.removesuffix("s"))
        if unit in _NANOSECONDS:
            nanoseconds += round(float(amount) * _NANOSECONDS[unit])
        elif "." in amount or unit not in {**_MONTHS, **_DAYS}:
            return None
        else:
            months += int(amount) * _MONTHS.get(unit, 0)
            days += int(amount) * _DAYS.get(unit, 0)
        position = found.end()
    return pa.MonthDayNano([months, days, nanoseconds]) if position else None
