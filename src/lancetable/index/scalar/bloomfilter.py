"""BLOOMFILTER: the values of each zone of a fragment as a split-block bloom filter.

``bloomfilter.lance`` has one row per zone: its place, ``has_null``, and ``bloom_filter_data``, a
filter of the hashes (XXH64) of its values: numbers, dates and times as the bytes that Arrow holds,
texts as UTF-8.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import CorruptError
from lancetable.expression import Column, Compare, Comparison, Expression, In, IsNull, Literal
from lancetable.format.arrays import Mask
from lancetable.format.encoding.kernels.probing import may_hold
from lancetable.format.encoding.kernels.xxhash import Hashes, hash_binary, hash_matrix, hash_words
from lancetable.format.rows import RowSet
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar.zones import Zones

FILE = "bloomfilter.lance"
MOST_VALUES = 256
_DATA = "bloom_filter_data"
_ZONES_AT_A_TIME = 64
_BLOCK_BYTES = 32
_EQUAL = {Comparison.EQ, Comparison.NOT_DISTINCT}


class BloomFilter:
    """An opened segment: places are in memory, filters are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        self._zones = Zones(files, FILE)
        (has_null,) = files.read(FILE, ("has_null",))
        self._has_null: Mask = has_null.to_numpy(zero_copy_only=False)
        self.covered = self._zones.covered

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all zones that may hold one of some values."""
        match part:
            case IsNull(Column(), False):
                return self._zones.rows(self._has_null)
            case Compare(op, Column(), Literal(scalar)) if op in _EQUAL and scalar.is_valid:
                return self._among(pa.repeat(scalar, 1))
            case In(Column(), _, False, values) if values is not None:
                return self._among(values.drop_null())
            case _:
                return None

    def _among(self, values: pa.Array) -> RowSet | None:
        """Return the rows of zones that may hold one of some values; None when they do not tell."""
        if pt.is_floating(values.type):
            if pc.any(pc.is_nan(values)).as_py():
                return None  # values that are not numbers differ in bits that are not compared
            values = pa.concat_arrays([values, _zeros(values)])
        if len(values) > MOST_VALUES or not hashable(values.type):
            return None
        hashes = hash_values(values)
        total = len(self._has_null)
        found = np.zeros(total, np.bool_)
        for first in range(0, total, _ZONES_AT_A_TIME):
            rows = range(first, min(first + _ZONES_AT_A_TIME, total))
            (filters,) = self._files.page(FILE, (_DATA,), rows)
            found[first : rows.stop] = _any_of(filters, hashes)
        return self._zones.rows(found)


def hashable(type_: pa.DataType) -> bool:
    """Return whether values of a type can be in a filter."""
    return bool(
        pt.is_integer(type_)
        or pt.is_float32(type_)
        or pt.is_float64(type_)
        or pt.is_date(type_)
        or pt.is_time(type_)
        or pt.is_timestamp(type_)
        or _is_long(type_)
    )


def hash_values(values: pa.Array) -> Hashes:
    """Return the hash of each value of a type that filters take, none of them null."""
    if _is_long(values.type):
        return hash_binary(values.cast(pa.large_binary()))
    width = values.type.bit_width // 8
    start, stop = values.offset * width, (values.offset + len(values)) * width
    data = np.frombuffer(values.buffers()[1], np.uint8)[start:stop]
    return hash_words(data.view("<u8")) if width == 8 else hash_matrix(data.reshape(-1, width))


def _is_long(type_: pa.DataType) -> bool:
    return bool(
        pt.is_string(type_)
        or pt.is_large_string(type_)
        or pt.is_string_view(type_)
        or pt.is_binary(type_)
        or pt.is_large_binary(type_)
        or pt.is_binary_view(type_)
    )


def _zeros(values: pa.Array) -> pa.Array:
    """Return both zeros, which are equal, if one is among some values."""
    is_zero = pc.any(pc.equal(values, pa.scalar(0, values.type))).as_py()
    return pa.array([0.0, -0.0] if is_zero else [], values.type)


def _any_of(filters: pa.Array, hashes: Hashes) -> Mask:
    """Return which filters may hold one of some hashes."""
    whole = filters.cast(pa.large_binary())
    offsets = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset :][: len(whole) + 1]
    blocks, rest = np.divmod(np.diff(offsets), _BLOCK_BYTES)
    if whole.null_count or rest.any() or not blocks.all():
        raise CorruptError("the bloom filter of a zone is missing or not made of whole blocks")
    data = np.frombuffer(whole.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    firsts: npt.NDArray[np.int64] = (offsets[:-1] - offsets[0]) // _BLOCK_BYTES
    return may_hold(data.view("<u4"), firsts, blocks, hashes)
