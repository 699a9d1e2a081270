"""Determine the common type of the operands of an operation."""

import pyarrow as pa
import pyarrow.types as pt

_UNITS = ("s", "ms", "us", "ns")
_LARGEST_DECIMAL128 = 38
_LARGEST_DECIMAL256 = 76
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED = {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def plain(type_: pa.DataType) -> pa.DataType:
    """Return the type in which values of ``type_`` are computed."""
    if isinstance(type_, pa.BaseExtensionType):
        return plain(type_.storage_type)
    if pt.is_dictionary(type_):
        return plain(type_.value_type)
    # Arrow has almost no kernels for half floats.
    return pa.float32() if pt.is_float16(type_) else type_


def is_number(type_: pa.DataType) -> bool:
    """Return whether the type supports arithmetic."""
    return bool(pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_))


def is_text(type_: pa.DataType) -> bool:
    """Return whether the type holds strings."""
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Return whether the type holds byte strings."""
    return bool(
        pt.is_binary(type_)
        or pt.is_large_binary(type_)
        or pt.is_fixed_size_binary(type_)
        or pt.is_binary_view(type_)
    )


def is_list(type_: pa.DataType) -> bool:
    """Return whether the type holds lists."""
    return bool(pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_))


def is_instant(type_: pa.DataType) -> bool:
    """Return whether the type holds points in time."""
    return bool(pt.is_date(type_) or pt.is_timestamp(type_))


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type both operands can be converted to, or None if there is none."""
    if left.equals(right) or pt.is_null(right):
        return left
    if pt.is_null(left):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_text(left) and is_text(right):
        return (
            pa.large_string()
            if pt.is_large_string(left) or pt.is_large_string(right)
            else (pa.string())
        )
    if is_bytes(left) and is_bytes(right):
        return pa.large_binary()
    return _common_other(left, right)


def _common_other(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if is_instant(left) and is_instant(right):
        return _common_instant(left, right)
    if pt.is_time(left) and pt.is_time(right):
        unit = _finer(left.unit, right.unit)
        return pa.time32(unit) if unit in {"s", "ms"} else pa.time64(unit)
    if pt.is_duration(left) and pt.is_duration(right):
        return pa.duration(_finer(left.unit, right.unit))
    if is_list(left) and is_list(right):
        inner = common_type(plain(left.value_type), plain(right.value_type))
        return None if inner is None else pa.list_(inner)
    if pt.is_struct(left) and pt.is_struct(right):
        return _common_struct(left, right)
    return None


def _common_struct(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if [each.name for each in left] != [each.name for each in right]:
        return None
    types = [
        common_type(plain(one.type), plain(other.type))
        for one, other in zip(left, right, strict=True)
    ]
    if any(type_ is None for type_ in types):
        return None
    return pa.struct([pa.field(one.name, type_) for one, type_ in zip(left, types, strict=True)])


def _finer(left: str, right: str) -> str:
    return max(left, right, key=_UNITS.index)


def _common_instant(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    units = [each.unit if pt.is_timestamp(each) else "s" for each in (left, right)]
    zones = [each.tz for each in (left, right) if pt.is_timestamp(each) and each.tz is not None]
    return pa.timestamp(_finer(*units), zones[0] if zones else None)


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pt.is_integer(left) and pt.is_integer(right):
        return _common_integer(left, right)
    if pt.is_decimal(left) or pt.is_decimal(right):
        if pt.is_floating(left) or pt.is_floating(right):
            return pa.float64()
        return _common_decimal(as_decimal(left), as_decimal(right))
    small = all(
        each.bit_width <= 32 and (pt.is_floating(each) or each.bit_width <= 16)
        for each in (left, right)
    )
    return pa.float32() if small else pa.float64()


def _common_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    signed = {pt.is_signed_integer(left), pt.is_signed_integer(right)}
    width = max(left.bit_width, right.bit_width)
    if len(signed) == 1:
        return (_SIGNED if True in signed else _UNSIGNED)[width]
    unsigned = left if pt.is_unsigned_integer(left) else right
    if unsigned.bit_width == 64:
        return pa.decimal128(20, 0)
    return _SIGNED[max(unsigned.bit_width * 2, width)]


def as_decimal(type_: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds every value of an integer or decimal type."""
    return type_ if pt.is_decimal(type_) else pa.decimal128(_DIGITS[type_.bit_width], 0)


def _common_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if whole + scale <= _LARGEST_DECIMAL128:
        return pa.decimal128(whole + scale, scale)
    return pa.decimal256(min(whole + scale, _LARGEST_DECIMAL256), scale)
