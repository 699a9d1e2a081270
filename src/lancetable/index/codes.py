"""Numbers that stand in the order of an index for values of at most eight bytes.

Floats are in IEEE total order, so each NaN and each zero has a number of its own.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lancetable.format.arrays import bitmap

Codes: TypeAlias = npt.NDArray[np.uint64]
_Bits: TypeAlias = npt.NDArray[np.unsignedinteger]

_UNSIGNED: dict[int, type[np.unsignedinteger]] = {
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
    64: np.uint64,
}


def has_codes(type_: pa.DataType) -> bool:
    """Return whether there are codes for values of a type."""
    return bool(
        pt.is_integer(type_)
        or pt.is_floating(type_)
        or pt.is_boolean(type_)
        or (pt.is_temporal(type_) and not pt.is_interval(type_))
    )


def codes_of(values: pa.Array) -> Codes:
    """Return the code of each value; those of nulls mean nothing."""
    type_ = values.type
    if pt.is_boolean(type_):
        packed = np.frombuffer(values.buffers()[1], np.uint8)
        unpacked = np.unpackbits(packed, count=values.offset + len(values), bitorder="little")
        return unpacked[values.offset :].astype(np.uint64)
    unsigned = _UNSIGNED[type_.bit_width]
    bits: _Bits = np.frombuffer(values.buffers()[1], unsigned)[values.offset :][: len(values)]
    if pt.is_unsigned_integer(type_):
        return bits.astype(np.uint64)
    sign = unsigned(1 << (type_.bit_width - 1))
    turned: _Bits = bits ^ (_spread_sign(bits) | sign if pt.is_floating(type_) else sign)
    return turned.astype(np.uint64)


def values_of(codes: Codes, type_: pa.DataType, nulls: int = 0) -> pa.Array:
    """Return the values of codes behind so many nulls."""
    count = nulls + len(codes)
    validity = bitmap(np.arange(count) >= nulls) if nulls else None
    if pt.is_boolean(type_):
        whole = np.concatenate([np.zeros(nulls, np.uint64), codes]).astype(np.bool_)
        buffer = pa.py_buffer(np.packbits(whole, bitorder="little"))
        return pa.Array.from_buffers(type_, count, [validity, buffer])
    unsigned = _UNSIGNED[type_.bit_width]
    bits = np.zeros(count, unsigned) if nulls else np.empty(count, unsigned)
    bits[nulls:] = _bits_of(codes.astype(unsigned, copy=False), type_)
    return pa.Array.from_buffers(type_, count, [validity, pa.py_buffer(bits)])


def _bits_of(
    codes: npt.NDArray[np.unsignedinteger], type_: pa.DataType
) -> npt.NDArray[np.unsignedinteger]:
    if pt.is_unsigned_integer(type_):
        return codes
    sign = codes.dtype.type(1 << (type_.bit_width - 1))
    turned: _Bits = codes ^ (_spread_sign(~codes) | sign if pt.is_floating(type_) else sign)
    return turned


def _spread_sign(bits: _Bits) -> _Bits:
    """Return all ones for numbers whose highest bit is set, else zero."""
    spread: _Bits = np.negative(bits >> bits.dtype.type(8 * bits.itemsize - 1))
    return spread
