"""Parse the Arrow type names that DataFusion's ``arrow_cast`` takes: ``Time64(Nanosecond)``."""

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.types as pt

_SIMPLE: Mapping[str, pa.DataType] = {
    "Null": pa.null(),
    "Boolean": pa.bool_(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
    "Float16": pa.float16(),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Utf8": pa.string(),
    "LargeUtf8": pa.large_string(),
    "Utf8View": pa.string_view(),
    "Binary": pa.binary(),
    "LargeBinary": pa.large_binary(),
    "BinaryView": pa.binary_view(),
    "Date32": pa.date32(),
    "Date64": pa.date64(),
}
_NAMES = {type_: name for name, type_ in _SIMPLE.items()}
_UNITS = {"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns"}
_UNIT_NAMES = {unit: name for name, unit in _UNITS.items()}
_TOKEN = re.compile(r'\s*([A-Za-zµ]\w*|-?\d+|"[^"]*"|[(),])')

EXAMPLES = "Int32, Float16, LargeUtf8, Time64(Nanosecond), Timestamp(Microsecond, None), List(Int8)"


def parse_arrow_type(text: str) -> pa.DataType | None:
    """Return the type with a name, or None if there is none.

    Units may be short (``ns``), and ``FixedSizeList`` takes ``(2, Float32)`` and ``(2 x Float32)``.
    """
    tokens: list[str] = []
    position = 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            return None
        tokens.append(found.group(1))
        position = found.end()
    try:
        reader = _Reader(tokens)
        type_ = reader.type()
    except (_UnknownTypeError, IndexError, ValueError, OverflowError, pa.ArrowInvalid):
        return None
    return type_ if reader.is_done else None


class _UnknownTypeError(Exception):
    """Raised for text that is not the name of a type."""


class _Reader:
    """A recursive descent over the tokens of a type's name."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0
        self._rules: Mapping[str, Callable[[], pa.DataType]] = {
            "Time32": lambda: pa.time32(self._unit()),
            "Time64": lambda: pa.time64(self._unit()),
            "Duration": lambda: pa.duration(self._unit()),
            "Timestamp": self._timestamp,
            "FixedSizeBinary": lambda: pa.binary(self._number()),
            "Decimal128": lambda: pa.decimal128(self._number(), self._after_comma(self._number)),
            "Decimal256": lambda: pa.decimal256(self._number(), self._after_comma(self._number)),
            "List": lambda: pa.list_(self.type()),
            "LargeList": lambda: pa.large_list(self.type()),
            "FixedSizeList": self._fixed_size_list,
            "Dictionary": lambda: pa.dictionary(self.type(), self._after_comma(self.type)),
        }

    @property
    def is_done(self) -> bool:
        return self._next == len(self._tokens)

    def type(self) -> pa.DataType:
        name = self._take()
        if name in _SIMPLE:
            return _SIMPLE[name]
        if name not in self._rules:
            raise _UnknownTypeError
        self._expect("(")
        type_ = self._rules[name]()
        self._expect(")")
        return type_

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _expect(self, wanted: str) -> None:
        if self._take() != wanted:
            raise _UnknownTypeError

    def _number(self) -> int:
        return int(self._take())

    def _unit(self) -> str:
        name = self._take().replace("µ", "u")
        unit = _UNITS.get(name, name)
        if unit not in _UNIT_NAMES:
            raise _UnknownTypeError
        return unit

    def _after_comma(self, read: Callable[[], object]) -> object:
        self._expect(",")
        return read()

    def _timestamp(self) -> pa.DataType:
        unit = self._unit()
        if self._tokens[self._next] == ")":
            return pa.timestamp(unit)
        self._expect(",")
        zone = self._take()
        if zone == "Some":
            self._expect("(")
            zone = self._take()
            self._expect(")")
        return pa.timestamp(unit, None if zone == "None" else zone.strip('"'))

    def _fixed_size_list(self) -> pa.DataType:
        size = self._number()
        if self._take() not in {",", "x"}:
            raise _UnknownTypeError
        return pa.list_(self.type(), size)


def arrow_type_name(type_: pa.DataType) -> str | None:
    """Return the name by which :func:`parse_arrow_type` finds a type, or None if there is none."""
    if type_ in _NAMES:
        return _NAMES[type_]
    if pt.is_timestamp(type_):
        zone = "None" if type_.tz is None else f'Some("{type_.tz}")'
        return f"Timestamp({_UNIT_NAMES[type_.unit]}, {zone})"
    if pt.is_time(type_) or pt.is_duration(type_):
        kind = "Duration" if pt.is_duration(type_) else f"Time{type_.bit_width}"
        return f"{kind}({_UNIT_NAMES[type_.unit]})"
    if pt.is_decimal128(type_) or pt.is_decimal256(type_):
        return f"Decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if pt.is_fixed_size_binary(type_):
        return f"FixedSizeBinary({type_.byte_width})"
    return _nested_name(type_)


def _nested_name(type_: pa.DataType) -> str | None:
    if pt.is_dictionary(type_):
        parts = [arrow_type_name(type_.index_type), arrow_type_name(type_.value_type)]
        frame = "Dictionary({}, {})"
    elif pt.is_fixed_size_list(type_):
        parts, frame = (
            [str(type_.list_size), arrow_type_name(type_.value_type)],
            ("FixedSizeList({}, {})"),
        )
    elif pt.is_list(type_) or pt.is_large_list(type_):
        parts = [arrow_type_name(type_.value_type)]
        frame = "LargeList({})" if pt.is_large_list(type_) else "List({})"
    else:
        return None
    return None if None in parts else frame.format(*parts)
