"""Convert values from one type to another.

The rules are those of SQL engines, where they differ from Arrow's cast: a number loses its
fraction when it becomes an integer, a decimal is rounded to its new scale, a timestamp is truncated
to its new unit, and text is parsed leniently (``yes`` is true, a zone offset is applied).
"""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import ExpressionError
from lancetable.expression.coerce import as_decimal, is_number, is_text, plain
from lancetable.expression.scalars import make_scalar
from lancetable.format.encoding.jsonb import float_text

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_TRUE = ("true", "t", "yes", "y", "on", "1")
_FALSE = ("false", "f", "no", "n", "off", "0")
_ZONE = r"(?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)$"


def cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert an array, or raise if one of its values has no counterpart.

    Raises:
        ExpressionError: The conversion is impossible for the types or for a value.
    """
    if values.type.equals(type_):
        return values
    try:
        return _convert(_decoded(values), type_)
    except pa.ArrowNotImplementedError as cause:
        message = f"there is no cast from {values.type} to {type_}"
        raise ExpressionError(message) from cause
    except (pa.ArrowInvalid, OverflowError) as cause:
        reason = str(cause).splitlines()[0]
        message = f"cannot cast {values.type} to {type_}: {reason}; TRY_CAST gives null instead"
        raise ExpressionError(message) from cause


def try_cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert an array, with null for every value that has no counterpart.

    Raises:
        ExpressionError: There is no conversion between the types at all.
    """
    cast(values.slice(0, 0), type_)
    try:
        return cast(values, type_)
    except ExpressionError:
        distinct = values.unique()
        converted = [_try_one(distinct.slice(index, 1), type_) for index in range(len(distinct))]
        places = pc.index_in(values, value_set=distinct)
        return pa.concat_arrays(converted).take(places) if converted else pa.nulls(0, type_)


def _try_one(value: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return cast(value, type_)
    except ExpressionError:
        return pa.nulls(1, type_)


def _decoded(values: pa.Array) -> pa.Array:
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    return values.cast(plain(values.type))


def _convert(values: pa.Array, type_: pa.DataType) -> pa.Array:
    source = values.type
    if pt.is_decimal(type_):
        return _to_decimal(values, type_)
    if is_text(type_):
        return _to_text(values, type_)
    if is_text(source):
        return _from_text(values, type_)
    if is_number(type_) and is_number(source):
        return _to_number(values, type_)
    if (pt.is_timestamp(type_) and pt.is_timestamp(source)) or pt.is_time(type_):
        # Truncating to a coarser unit must round down, which an unsafe cast does not.
        return _coarser(values, type_)
    if pt.is_date32(source) and pt.is_integer(type_):
        values = values.cast(pa.int32())
    return values.cast(type_)


def _coarser(values: pa.Array, type_: pa.DataType) -> pa.Array:
    names = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
    if pt.is_timestamp(values.type) and _DIGITS[type_.unit] < _DIGITS[values.type.unit]:
        values = pc.floor_temporal(values, unit=names[type_.unit])
    if pt.is_time(type_):
        return values.cast(type_, safe=False)
    return values.cast(type_)


def _to_number(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if pt.is_floating(type_):
        # A large integer takes the nearest float.
        return values.cast(type_, safe=not pt.is_integer(values.type))
    if pt.is_integer(values.type):
        return values.cast(type_)
    if pt.is_floating(values.type):
        return pc.trunc(values).cast(type_)
    options = pc.CastOptions(target_type=type_, allow_decimal_truncate=True)
    return pc.cast(values, options=options)


def _to_decimal(values: pa.Array, type_: pa.DataType) -> pa.Array:
    source = values.type
    if is_text(source):
        values = values.cast(pa.decimal256(76, 38))
        source = values.type
    if pt.is_integer(source):
        values = values.cast(as_decimal(source))
        source = values.type
    if pt.is_decimal(source):
        if source.scale > type_.scale:
            values = pc.round(values, ndigits=type_.scale, round_mode="half_towards_infinity")
        wide = pa.decimal256(76, max(type_.scale, source.scale))
        return values.cast(wide).cast(type_)
    return values.cast(type_)


def _to_text(values: pa.Array, type_: pa.DataType) -> pa.Array:
    source = values.type
    if pt.is_floating(source):
        single = pt.is_float32(source)
        texts = [
            None if value is None else float_text(value, single=single)
            for value in values.to_pylist()
        ]
        return pa.array(texts, type_)
    text = values.cast(type_)
    if pt.is_timestamp(source):
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
        text = pc.replace_substring_regex(text, r"\.000(?:000(?:000)?)?(Z?)$", r"\1")
        return pc.replace_substring_regex(text, r"(\.\d{3}(?:\d{3})??)(?:000)+(Z?)$", r"\1\2")
    return text


def _from_text(values: pa.Array, type_: pa.DataType) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(values)
    if pt.is_boolean(type_):
        return _text_to_boolean(trimmed, type_)
    if pt.is_timestamp(type_):
        return _text_to_timestamp(trimmed, type_)
    if pt.is_time(type_):
        return _text_to_time(trimmed, type_)
    if pt.is_date(type_):
        return _text_to_timestamp(trimmed, pa.timestamp("s")).cast(type_)
    if is_number(type_):
        return pc.replace_substring_regex(trimmed, r"^\+", "").cast(type_)
    return values.cast(type_)


def _text_to_boolean(text: pa.Array, type_: pa.DataType) -> pa.Array:
    lowered = pc.utf8_lower(text)
    yes = pc.is_in(lowered, value_set=pa.array(_TRUE, lowered.type))
    no = pc.is_in(lowered, value_set=pa.array(_FALSE, lowered.type))
    known = pc.or_(pc.or_(yes, no), pc.is_null(text))
    if not pc.all(known, min_count=0).as_py():
        wrong = text.filter(pc.invert(known))[0]
        raise pa.ArrowInvalid(f"{wrong.as_py()!r} is neither true nor false")
    return pc.if_else(pc.is_valid(text), yes, make_scalar(None, type_))


def _text_to_timestamp(text: pa.Array, type_: pa.DataType) -> pa.Array:
    digits = _DIGITS[type_.unit]
    kept = rf"(\.[0-9]{{{digits}}})[0-9]+" if digits else r"()\.[0-9]+"
    cut = pc.replace_substring_regex(text, kept, r"\1")
    cut = pc.replace_substring_regex(cut, r" ([zZ+-])", r"\1")
    zoned = pc.match_substring_regex(cut, r"[:T ][0-9]{2}(?:\.[0-9]+)?" + _ZONE)
    naive = pc.if_else(zoned, make_scalar(None, cut.type), cut).cast(pa.timestamp(type_.unit))
    if not pc.any(zoned, min_count=0).as_py():
        return naive.cast(type_)
    moved = pc.if_else(zoned, cut, make_scalar(None, cut.type)).cast(
        pa.timestamp(type_.unit, "UTC")
    )
    instant = pc.coalesce(naive.cast(pa.timestamp(type_.unit, "UTC")), moved)
    return instant.cast(pa.timestamp(type_.unit)).cast(type_)


def _text_to_time(text: pa.Array, type_: pa.DataType) -> pa.Array:
    # Arrow reads times only as part of a timestamp.
    day = make_scalar("1970-01-01", text.type)
    text = pc.replace_substring_regex(text, r"^([0-9]):", r"0\1:")
    moments = pc.binary_join_element_wise(day, text, make_scalar(" ", text.type))
    return _text_to_timestamp(moments, pa.timestamp(type_.unit)).cast(type_)
