"""BLOOMFILTER: the values of each zone of a fragment as a split-block bloom filter.

``bloomfilter.lance`` has one row per zone: its place, ``has_null``, and ``bloom_filter_data``, a
filter of the hashes (XXH64) of its values: numbers, dates and times as the bytes that Arrow holds,
texts as UTF-8. The rows with nulls are in the global buffer that the metadata ``null_bitmap``
numbers. A filter is of a power of two of bytes, the least that meets the probability.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.errors import CorruptError, InputError
from lancetable.expression import Column, Compare, Comparison, Expression, In, IsNull, Literal
from lancetable.format.arrays import Mask, booleans, numbers
from lancetable.format.encoding.kernels.probing import mark_keys, may_hold
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.encoding.kernels.xxhash import Hashes, hash_binary, hash_matrix, hash_words
from lancetable.format.rows import RowSet
from lancetable.index.base import Sink, Source
from lancetable.index.files import KEPT_BYTES, SegmentFiles
from lancetable.index.specs import BloomFilter, Spec
from lancetable.index.zones import Zones, stored_nulls
from lancetable.index.zoning import PLACE_FIELDS, Zoned, moved_nulls, moved_zones, zones_of

FILE = "bloomfilter.lance"
MOST_VALUES = 256
_DATA = "bloom_filter_data"
_ZONES_AT_A_TIME = 64
_BLOCK_BYTES = 32
_MOST_BYTES = 128 << 20
_ITEMS, _PROBABILITY = "bloomfilter_item", "bloomfilter_probability"
_WORDS = 8
_EQUAL = {Comparison.EQ, Comparison.NOT_DISTINCT}


class BloomFilterSegment:
    """An opened segment: places are in memory, filters are read when they are needed."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        self._zones = Zones(files, FILE)
        (has_null,) = files.read(FILE, ("has_null",))
        self._has_null: Mask = has_null.to_numpy(zero_copy_only=False)
        self.covered = self._zones.covered

    def warm(self) -> None:
        """Read the filters, as far as there is room."""
        for rows in self._files.portions(FILE, _ZONES_AT_A_TIME, KEPT_BYTES):
            self._files.page(FILE, (_DATA,), rows)

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all zones that may hold one of some values."""
        match part:
            case IsNull(Column(), False):
                return self._null_rows()
            case Compare(op, Column(), Literal(scalar)) if op in _EQUAL and scalar.is_valid:
                return self._among(pa.repeat(scalar, 1))
            case In(Column(), _, False, values) if values is not None:
                return self._among(values.drop_null())
            case _:
                return None

    def _null_rows(self) -> RowSet:
        rows = stored_nulls(self._files, FILE)
        if rows is not None and np.array_equal(self._zones.counted(rows) > 0, self._has_null):
            return RowSet.from_addresses(rows)
        return self._zones.rows(self._has_null)

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


class BloomFilterKind:
    """Build, merge and open segments."""

    name = BloomFilter.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return None if hashable(type_) else "it takes numbers, texts, bytes, dates and times"

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        assert isinstance(spec, BloomFilter)
        nulls = RowBitmaps()
        zones = zones_of(rows, spec.items, nulls)
        _write((_filters(zoned, spec) for zoned in zones), spec, sink, nulls)
        return b""

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several."""
        assert isinstance(spec, BloomFilter)
        nulls = moved_nulls(sources, FILE)
        if nulls is None:
            return None
        _write((zones for source in sources for zones in _moved(source)), spec, sink, nulls)
        return b""

    def spec(self, files: SegmentFiles) -> BloomFilter:
        """Return the parameters of a segment."""
        found = files.metadata(FILE)
        try:
            return BloomFilter(int(found[_ITEMS]), float(found[_PROBABILITY]))
        except (KeyError, ValueError, InputError):
            return BloomFilter()

    def open(self, files: SegmentFiles) -> BloomFilterSegment:
        """Return an opened segment."""
        return BloomFilterSegment(files)


def _filters(zoned: Zoned, spec: BloomFilter) -> list[pa.Array]:
    """Return the columns of the file for some zones."""
    hashes, edges, is_null = hash_values(zoned.values.drop_null()), zoned.edges, zoned.is_null
    has_null = np.zeros(len(edges) - 1, np.bool_)
    if is_null is not None:
        has_null = np.logical_or.reduceat(is_null, edges[:-1])
        edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(~is_null)])[edges]
    size = filter_bytes(spec.items, spec.probability)
    words = np.zeros((len(has_null), size // 4), np.uint32)
    for number, (first, stop) in enumerate(itertools.pairwise(edges.tolist())):
        mark_keys(words[number], hashes[first:stop])
    ends = np.arange(len(has_null) + 1, dtype=np.int32) * np.int32(size)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(words)]
    data = pa.Array.from_buffers(pa.binary(), len(has_null), buffers)
    return [*zoned.places(), booleans(has_null), data]


def _moved(source: Source) -> Iterator[list[pa.Array]]:
    """Yield the columns for the zones of a segment where their rows are now."""
    (has_null,) = source.files.read(FILE, ("has_null",))
    for moved in moved_zones(source, FILE):
        for first in range(0, len(moved.zones), _ZONES_AT_A_TIME):
            some = moved.zones[first : first + _ZONES_AT_A_TIME]
            (data,) = source.files.read(FILE, (_DATA,), some)
            places = (one.slice(first, len(some)) for one in moved.places)
            yield [*places, has_null.take(numbers(some)), data]


def _write(
    zones: Iterable[list[pa.Array]], spec: BloomFilter, sink: Sink, nulls: RowBitmaps
) -> None:
    """Write zones; ``nulls`` are complete after the last of them."""
    schema = pa.schema(
        [
            *PLACE_FIELDS,
            pa.field("has_null", pa.bool_(), nullable=False),
            pa.field(_DATA, pa.binary(), nullable=False),
        ]
    )
    buffers: list[bytes] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for columns in zones:
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        buffers.append(nulls.encoded(has_sizes=True))

    metadata = {_ITEMS: str(spec.items), _PROBABILITY: str(spec.probability), "null_bitmap": "1"}
    sink.write(FILE, schema, batches(), metadata=metadata, buffers=buffers)


def filter_bytes(items: int, probability: float) -> int:
    """Return the size of a filter of so many values that answers wrongly at most so often."""
    bits = -_WORDS * items / math.log(1 - probability ** (1 / _WORDS))
    size = 1 << math.ceil(math.log2(max(bits / 8, _BLOCK_BYTES)))
    return min(size, _MOST_BYTES)


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
