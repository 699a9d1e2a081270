"""The binary layout of JSON documents in a JSON column.

A document is a container; all numbers are big-endian, nothing is padded:

======  ====================================================================
bytes   meaning
======  ====================================================================
4       header: 0x20000000 a single scalar, 0x40000000 | n an object of n
        members, 0x80000000 | n an array of n elements
4 each  entries: type in the top 4 bits, payload length in the other 28; an
        object has first those of its keys, then those of its values
rest    the payloads, in the order of the entries
======  ====================================================================

Entry types: 0 null, 1 string, 2 number, 3 false, 4 true, 5 container, 6 extension. A number
starts with a tag: 00 zero, 10 NaN, 20 and 30 the infinities, 40 signed, 50 unsigned (1, 2, 4 or
8 bytes), 60 double, 70 decimal (coefficient, then one byte of scale).

Decoding goes straight to text, written as Lance itself writes it: no spaces, floats with the
fewest digits that tell them apart, NaN and the infinities as null.
"""

import datetime as dt
import decimal
import json
import math
import struct
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import CorruptError, InputError

_SCALAR, _OBJECT, _ARRAY = 0x20000000, 0x40000000, 0x80000000
_KIND_MASK, _COUNT_MASK = 0xE0000000, 0x1FFFFFFF
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER, _EXTENSION = range(7)
_LENGTH_MASK = 0x0FFFFFFF
_DEEPEST = 256
_WIDTHS = (1, 2, 4, 8)

_quote: Callable[[str], str] = json.JSONEncoder(ensure_ascii=False).encode
_header = struct.Struct(">I").unpack_from
_double = struct.Struct(">d")


def decode_jsonb(data: memoryview) -> str:
    """Return the JSON text of one document.

    Raises:
        CorruptError: The bytes are not a document.
    """
    parts: list[str] = []
    _read_container(memoryview(data), parts, 0)
    return "".join(parts)


def jsonb_to_text(values: pa.Array) -> pa.Array:
    """Decode a whole binary column, null staying null."""
    if not (pt.is_binary(values.type) or pt.is_large_binary(values.type)):
        raise InputError(f"a JSON column is stored as binary, not as {values.type}")
    texts = [
        None if scalar.as_buffer() is None else decode_jsonb(memoryview(scalar.as_buffer()))
        for scalar in values
    ]
    return pa.array(texts, pa.string())


def _corrupt(reason: str) -> CorruptError:
    return CorruptError(f"a JSON value is damaged: {reason}")


def _read_container(data: memoryview, parts: list[str], depth: int) -> None:
    if len(data) < 4:
        raise _corrupt(f"expected a 4-byte header, found {len(data)} bytes")
    if depth > _DEEPEST:
        raise _corrupt(f"it is nested deeper than {_DEEPEST} levels")
    (header,) = _header(data)
    kind, count = header & _KIND_MASK, header & _COUNT_MASK
    if kind == _SCALAR and depth == 0 and count == 0:
        _check_payloads(data, 4, 1)
        _read_entry(_header(data, 4)[0], data[8:], parts, depth)
    elif kind == _ARRAY:
        _read_array(data, count, parts, depth)
    elif kind == _OBJECT:
        _read_object(data, count, parts, depth)
    else:
        raise _corrupt(f"unknown container header {header:#010x}")


def _check_payloads(data: memoryview, start: int, count: int) -> tuple[int, ...]:
    """Return the entries at ``start``, after checking that the payloads fill the rest."""
    if count * 4 > len(data) - start:
        raise _corrupt(f"{count} entries do not fit {len(data) - start} bytes")
    entries = struct.unpack_from(f">{count}I", data, start)
    wanted = sum(entry & _LENGTH_MASK for entry in entries)
    if wanted != len(data) - start - 4 * count:
        raise _corrupt(f"entries of {wanted} bytes in {len(data) - start - 4 * count} bytes")
    return entries


def _read_array(data: memoryview, count: int, parts: list[str], depth: int) -> None:
    entries = _check_payloads(data, 4, count)
    position = 4 + 4 * count
    separator = "["
    for entry in entries:
        parts.append(separator)
        length = entry & _LENGTH_MASK
        _read_entry(entry, data[position : position + length], parts, depth)
        position += length
        separator = ","
    parts.append("]" if count else "[]")


def _read_object(data: memoryview, count: int, parts: list[str], depth: int) -> None:
    entries = _check_payloads(data, 4, 2 * count)
    position = 4 + 8 * count
    keys = []
    for entry in entries[:count]:
        if entry >> 28 != _STRING:
            raise _corrupt(f"expected a string as a key, found an entry of type {entry >> 28}")
        length = entry & _LENGTH_MASK
        keys.append(_text(data[position : position + length]))
        position += length
    separator = "{"
    for key, entry in zip(keys, entries[count:], strict=True):
        parts.append(f"{separator}{_quote(key)}:")
        length = entry & _LENGTH_MASK
        _read_entry(entry, data[position : position + length], parts, depth)
        position += length
        separator = ","
    parts.append("}" if count else "{}")


def _read_entry(entry: int, payload: memoryview, parts: list[str], depth: int) -> None:
    kind = entry >> 28
    if kind == _STRING:
        parts.append(_quote(_text(payload)))
    elif kind == _NUMBER:
        parts.append(_number(payload))
    elif kind == _CONTAINER:
        _read_container(payload, parts, depth + 1)
    elif kind == _EXTENSION:
        parts.append(_extension(bytes(payload)))
    elif kind in _WORDS and not payload:
        parts.append(_WORDS[kind])
    else:
        raise _corrupt(f"unknown entry {entry:#010x}")


_WORDS = {_NULL: "null", _FALSE: "false", _TRUE: "true"}


def _text(payload: memoryview) -> str:
    try:
        return str(payload, "utf-8")
    except UnicodeDecodeError as cause:
        raise _corrupt("a string is not UTF-8") from cause


def _number(payload: memoryview) -> str:
    if not payload:
        raise _corrupt("a number has no bytes")
    tag, rest = payload[0], payload[1:]
    if tag in {0x40, 0x50} and len(rest) in _WIDTHS:
        return str(int.from_bytes(rest, "big", signed=tag == 0x40))
    if tag == 0x60 and len(rest) == 8:
        return json_float(_double.unpack(rest)[0])
    if tag == 0 and not rest:
        return "0"
    if tag in {0x10, 0x20, 0x30} and not rest:
        return "null"
    if tag == 0x70 and len(rest) in _DECIMALS:
        width = _DECIMALS[len(rest)]
        coefficient = int.from_bytes(rest[:width], "big", signed=True)
        with decimal.localcontext(prec=100):
            return format(decimal.Decimal(coefficient).scaleb(-rest[-1]), "f")
    raise _corrupt(f"unknown number of tag {tag:#04x} and {len(payload)} bytes")


# Bytes after the tag (older writers put a precision before the scale) → width of the coefficient.
_DECIMALS = {9: 8, 17: 16, 33: 32, 18: 16, 34: 32}


def _extension(payload: bytes) -> str:
    tag = payload[0] if payload else -1
    rule = _EXTENSIONS.get((tag, len(payload) - 1))
    try:
        if tag == 0:
            return _quote(payload[1:].hex().upper())
        if rule is None:
            raise _corrupt(f"unknown extension value of tag {tag} and {len(payload)} bytes")
        return _quote(rule(payload[1:]))
    except OverflowError as cause:
        raise _corrupt("a date lies outside the calendar") from cause


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001


def _date(data: bytes) -> str:
    (days,) = struct.unpack(">i", data)
    return str((_EPOCH + dt.timedelta(days=days)).date())


def _timestamp(data: bytes, offset: int = 0) -> str:
    (microseconds,) = struct.unpack(">q", data)
    moved = _EPOCH + dt.timedelta(microseconds=microseconds, seconds=offset)
    return moved.isoformat(sep=" ", timespec="microseconds")


def _timestamp_zone(data: bytes) -> str:
    # Older writers counted the offset in hours, in one byte.
    offset = int.from_bytes(data[8:], "big", signed=True) * (1 if len(data) == 12 else 3600)
    sign, (hours, rest) = "-" if offset < 0 else "+", divmod(abs(offset), 3600)
    return f"{_timestamp(data[:8], offset)} {sign}{hours:02d}{rest // 60:02d}"


def _interval(data: bytes) -> str:
    months, days, microseconds = struct.unpack(">iiq", data)
    return f"{months} months {days} days {microseconds} microseconds"


_EXTENSIONS: Mapping[tuple[int, int], Callable[[bytes], str]] = {
    (0x10, 4): _date,
    (0x20, 8): _timestamp,
    (0x30, 12): _timestamp_zone,
    (0x30, 9): _timestamp_zone,
    (0x40, 16): _interval,
}


def json_float(value: float) -> str:
    """Write a float the way it stands in JSON text."""
    if not math.isfinite(value):
        return "null"
    return float_text(value).replace("e", "e+").replace("e+-", "e-")


def float_text(value: float, *, single: bool = False) -> str:
    """Write a float with the fewest digits, in the notation of the Rust library Lance uses."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    number = np.float32(value) if single else np.float64(value)
    mantissa, exponent = np.format_float_scientific(number, trim="-").split("e")
    sign, digits = ("-" if mantissa[0] == "-" else ""), mantissa.lstrip("-").replace(".", "")
    point = int(exponent) + 1
    if len(digits) <= point <= (13 if single else 16):
        return f"{sign}{digits}{'0' * (point - len(digits))}.0"
    if 0 < point < len(digits):
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if (-6 if single else -5) < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}" if digits != "0" else f"{sign}0.0"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1}"


def encode_jsonb(text: str) -> bytes:
    """Return the bytes of a document given as JSON text.

    Raises:
        InputError: The text is not JSON, repeats a key or is nested too deeply.
    """
    try:
        document = json.loads(
            text,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_constant=_refuse_constant,
        )
        kind, payload = _encode(document, 0)
    except RecursionError as cause:
        raise InputError(f"JSON is nested deeper than {_DEEPEST} levels") from cause
    except json.JSONDecodeError as cause:
        raise InputError(f"{text[:60]!r} is not JSON: {cause}") from cause
    if kind == _CONTAINER:
        return payload
    return struct.pack(">II", _SCALAR, kind << 28 | len(payload)) + payload


def _refuse_constant(word: str) -> object:
    raise InputError(f"{word} is not a JSON value; use null")


def _integer(digits: str) -> int | float:
    if len(digits) > 20:
        return float(digits)
    value = int(digits)
    return value if -(2**63) <= value < 2**64 else float(digits)


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        again = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f"JSON object has the key {again!r} twice")
    return members


def _encode(value: object, depth: int) -> tuple[int, bytes]:
    if depth > _DEEPEST:
        raise InputError(f"JSON is nested deeper than {_DEEPEST} levels")
    if value is None or isinstance(value, bool):
        return (_NULL if value is None else _TRUE if value else _FALSE), b""
    if isinstance(value, str):
        return _STRING, _encode_text(value)
    if isinstance(value, int | float):
        return _NUMBER, _encode_number(value)
    if isinstance(value, dict):
        members = sorted((_encode_text(key), each) for key, each in value.items())
        encoded = [(_STRING, key) for key, _ in members]
        encoded += [_encode(each, depth + 1) for _, each in members]
        return _CONTAINER, _join(_OBJECT | len(members), encoded)
    elements = [_encode(each, depth + 1) for each in value]  # type: ignore[attr-defined]
    return _CONTAINER, _join(_ARRAY | len(elements), elements)


def _encode_text(text: str) -> bytes:
    # A lone half of a surrogate pair has no UTF-8; Lance keeps its escape as plain text.
    return text.encode("utf-8", "backslashreplace")


def _join(header: int, encoded: list[tuple[int, bytes]]) -> bytes:
    entries = []
    for kind, payload in encoded:
        if len(payload) > _LENGTH_MASK:
            raise InputError(f"a JSON value of {len(payload)} bytes is too large, limit 2^28 - 1")
        entries.append(kind << 28 | len(payload))
    payloads = (payload for _, payload in encoded)
    return struct.pack(f">{len(entries) + 1}I", header, *entries) + b"".join(payloads)


def _encode_number(value: float) -> bytes:
    if isinstance(value, int):
        if value == 0:
            return b"\x00"
        tag, bits = (
            (0x40, (-value - 1).bit_length() + 1) if value < 0 else (0x50, value.bit_length())
        )
        width = next(width for width in _WIDTHS if bits <= 8 * width)
        return bytes([tag]) + value.to_bytes(width, "big", signed=value < 0)
    if math.isinf(value):
        return b"\x20" if value > 0 else b"\x30"
    return b"\x60" + _double.pack(value)
