"""ZONEMAP: the least and the largest value of each zone of a fragment.

``zonemap.lance`` has one row per zone: ``min``, ``max``, ``null_count`` and ``nan_count`` (u32),
``fragment_id``, ``zone_start`` and ``zone_length`` (u64). The length spans deleted rows, too. A NaN
hides the true largest value of its zone, so zones with NaN are kept for every comparison.
The rows with nulls are in the global buffer that the metadata ``null_bitmap`` numbers.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lancetable.expression import Column, Expression, IsNull
from lancetable.format.arrays import Mask, Offsets, bitmap, numbers
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.rows import RowSet
from lancetable.index.base import Sink, Source
from lancetable.index.bounds import Bounds
from lancetable.index.codes import codes_of, has_codes, values_of
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar.types import refuses_values
from lancetable.index.specs import Spec, ZoneMap
from lancetable.index.zones import Zones, stored_nulls
from lancetable.index.zoning import PLACE_FIELDS, Zoned, moved_nulls, moved_zones, zones_of

FILE = "zonemap.lance"


class ZoneMapSegment:
    """An opened segment, whole in memory."""

    def __init__(self, files: SegmentFiles) -> None:
        least, largest, nulls, nans = files.read(FILE, ("min", "max", "null_count", "nan_count"))
        self._files = files
        self._zones = Zones(files, FILE)
        self._nulls = np.asarray(nulls)
        # Other writers leave the ends out for some types; the zone then is not one of nulls only.
        (lengths,) = files.read(FILE, ("zone_length",))
        is_unknown = np.asarray(largest.is_null()) & (self._nulls < np.asarray(lengths))
        always = is_unknown | (np.asarray(nans) > 0)
        self._bounds = Bounds(least, largest, self._nulls > 0, always)
        self.covered = self._zones.covered

    def search(self, part: Expression) -> RowSet | None:
        """Return the rows of all zones that may hold a match; those with nulls exactly."""
        if isinstance(part, IsNull) and not part.negated and isinstance(part.operand, Column):
            rows = stored_nulls(self._files, FILE)
            if rows is not None and np.array_equal(self._zones.counted(rows), self._nulls):
                return RowSet.from_addresses(rows)
        zones = self._bounds.may_match(part)
        return None if zones is None else self._zones.rows(zones)


class ZoneMapKind:
    """Build, merge and open segments."""

    name = ZoneMap.kind

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index."""
        return refuses_values(type_)

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment."""
        assert isinstance(spec, ZoneMap)
        nulls = RowBitmaps()
        zones = zones_of(rows, spec.rows_per_zone, nulls)
        _write(map(_summary, zones), type_, spec, sink, nulls)
        return _details(spec)

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several; zones whose rows moved apart become several."""
        assert isinstance(spec, ZoneMap)
        nulls = moved_nulls(sources, FILE)
        if nulls is None:
            return None
        found = [zones for source in sources for zones in _moved(source)]
        _write(_in_table_order(found), type_, spec, sink, nulls)
        return _details(spec)

    def spec(self, files: SegmentFiles) -> ZoneMap:
        """Return the parameters of a segment."""
        rows = files.metadata(FILE).get("rows_per_zone", "")
        return ZoneMap(int(rows)) if rows.isdecimal() and int(rows) else ZoneMap()

    def open(self, files: SegmentFiles) -> ZoneMapSegment:
        """Return an opened segment."""
        return ZoneMapSegment(files)


def _summary(zoned: Zoned) -> list[pa.Array]:
    """Return the columns of the file for some zones."""
    values, is_null = zoned.values, zoned.is_null
    starts = zoned.edges[:-1]
    nulls = nans = np.zeros(len(starts), np.uint32)
    if is_null is not None:
        nulls = np.add.reduceat(is_null, starts, dtype=np.uint32)
    is_out = is_null
    if pt.is_floating(values.type):
        is_nan = np.isnan(_floats(values)) & (True if is_null is None else ~is_null)
        if is_nan.any():
            nans = np.add.reduceat(is_nan, starts, dtype=np.uint32)
            is_out = is_nan if is_null is None else is_null | is_nan
    ends = (_ends_of_codes if has_codes(values.type) else _ends)(values, zoned.edges, is_out)
    if nans.any():
        ends = ends[0], _with_nans(ends[1], nans > 0)
    return [*ends, numbers(nulls), numbers(nans), *zoned.places()]


def _floats(values: pa.Array) -> npt.NDArray[np.floating]:
    width = values.type.bit_width // 8
    found: npt.NDArray[np.floating] = np.frombuffer(values.buffers()[1], f"f{width}")
    return found[values.offset :][: len(values)]


def _ends_of_codes(
    values: pa.Array, edges: Offsets, is_out: Mask | None
) -> tuple[pa.Array, pa.Array]:
    """Return the least and the largest of the values of each zone that are not left out."""
    codes, starts = codes_of(values), edges[:-1]
    if is_out is None:
        least, largest = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
        has_any = None
    else:
        most = np.uint64(2**64 - 1)
        least = np.minimum.reduceat(np.where(is_out, most, codes), starts)
        largest = np.maximum.reduceat(np.where(is_out, np.uint64(0), codes), starts)
        has_any = ~np.logical_and.reduceat(is_out, starts)
        least, largest = np.where(has_any, least, 0), np.where(has_any, largest, 0)
    if pt.is_floating(values.type):
        # Of the two zeros, whose codes are neighbours, each end is the one that encloses both.
        plus = np.uint64(1 << (values.type.bit_width - 1))
        minus = plus - np.uint64(1)
        least = np.where(least == plus, minus, least)
        largest = np.where(largest == minus, plus, largest)
    return _valid_where(has_any, values_of(least, values.type)), _valid_where(
        has_any, values_of(largest, values.type)
    )


def _ends(values: pa.Array, edges: Offsets, is_out: Mask | None) -> tuple[pa.Array, pa.Array]:
    """Return the same of values that have no codes."""
    type_ = values.type
    plain = values.cast(pa.binary()) if pt.is_fixed_size_binary(type_) else values
    found = [
        pc.min_max(plain.slice(first, stop - first))
        for first, stop in itertools.pairwise(edges.tolist())
    ]
    least, largest = (
        pa.concat_arrays([pa.repeat(one[end], 1) for one in found]) for end in ("min", "max")
    )
    return least.cast(type_), largest.cast(type_)


def _valid_where(is_valid: Mask | None, values: pa.Array) -> pa.Array:
    if is_valid is None:
        return values
    buffers = [bitmap(is_valid), values.buffers()[1]]
    return pa.Array.from_buffers(values.type, len(values), buffers)


def _with_nans(largest: pa.Array, has_nan: Mask) -> pa.Array:
    """Return the largest values with NaN for zones that hold one."""
    nan = numbers(np.array([np.nan], f"f{largest.type.bit_width // 8}"))
    whole = pa.concat_arrays([largest, nan])
    return whole.take(numbers(np.where(has_nan, len(largest), np.arange(len(largest)))))


def _moved(source: Source) -> Iterator[list[pa.Array]]:
    """Yield the columns for the zones of a segment where their rows are now."""
    summaries = source.files.read(FILE, ("min", "max", "null_count", "nan_count"))
    for moved in moved_zones(source, FILE):
        yield [*(one.take(numbers(moved.zones)) for one in summaries), *moved.places]


def _in_table_order(zones: Sequence[list[pa.Array]]) -> Iterator[list[pa.Array]]:
    if zones:
        columns = [pa.concat_arrays(some) for some in zip(*zones, strict=True)]
        fragments, starts = (np.asarray(one) for one in columns[4:6])
        order = numbers(np.lexsort((starts, fragments)))
        yield [one.take(order) for one in columns]


def _write(
    zones: Iterable[list[pa.Array]],
    type_: pa.DataType,
    spec: ZoneMap,
    sink: Sink,
    nulls: RowBitmaps,
) -> None:
    """Write zones; ``nulls`` are complete after the last of them."""
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in ("null_count", "nan_count")]
    schema = pa.schema([("min", type_), ("max", type_), *counts, *PLACE_FIELDS])
    buffers: list[bytes] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for columns in zones:
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        buffers.append(nulls.encoded(has_sizes=True))

    metadata = {"rows_per_zone": str(spec.rows_per_zone), "null_bitmap": "1"}
    sink.write(FILE, schema, batches(), metadata=metadata, buffers=buffers)


def _details(spec: ZoneMap) -> bytes:
    """Return the message: field 1 the rows of a zone, 2 no seeds, 3 a null bitmap."""
    return b"\x08" + varint(spec.rows_per_zone) + b"\x10\x00\x18\x01"


def varint(number: int) -> bytes:
    """Return a number as messages store it."""
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
