"""ZONEMAP: the least and the largest value of each zone of a fragment.

``zonemap.lance`` has one row per zone: ``min``, ``max``, ``null_count`` and ``nan_count`` (u32),
``fragment_id``, ``zone_start`` and ``zone_length`` (u64). The length spans deleted rows, too. A NaN
hides the true largest value of its zone, so zones with NaN are kept for every comparison.
The rows with nulls are in the global buffer that the metadata ``null_bitmap`` numbers.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression import Column, Expression, IsNull
from lancetable.format.encoding.kernels.sets import RowBitmaps
from lancetable.format.rows import RowSet
from lancetable.index.base import ROW, VALUE, Sink, Source
from lancetable.index.bounds import Bounds
from lancetable.index.files import SegmentFiles
from lancetable.index.scalar.types import refuses_values
from lancetable.index.specs import Spec, ZoneMap
from lancetable.index.zones import (
    PLACES,
    Zone,
    Zones,
    moved_nulls,
    moved_zones,
    stored_nulls,
    varint,
    zones_of,
)

FILE = "zonemap.lance"


class ZoneMapSegment:
    """An opened segment, whole in memory."""

    def __init__(self, files: SegmentFiles) -> None:
        least, largest, nulls, nans = files.read(FILE, ("min", "max", "null_count", "nan_count"))
        self._files = files
        self._zones = Zones(files, FILE)
        self._nulls = np.asarray(nulls)
        self._bounds = Bounds(least, largest, np.asarray(nulls) > 0, np.asarray(nans) > 0)
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
        found = []
        for zone in zones_of(rows, spec.rows_per_zone):
            values = zone.rows.column(VALUE)
            nulls.add(zone.rows.column(ROW).to_numpy()[np.asarray(values.is_null())])
            found.append(_summary(values, zone))
        _write(found, type_, spec, sink, nulls)
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
        found = [zone for source in sources for zone in _moved(source)]
        found.sort(key=lambda one: one[4:])
        _write(found, type_, spec, sink, nulls)
        return _details(spec)

    def spec(self, files: SegmentFiles) -> ZoneMap:
        """Return the parameters of a segment."""
        rows = files.metadata(FILE).get("rows_per_zone", "")
        return ZoneMap(int(rows)) if rows.isdecimal() and int(rows) else ZoneMap()

    def open(self, files: SegmentFiles) -> ZoneMapSegment:
        """Return an opened segment."""
        return ZoneMapSegment(files)


class _Summary(NamedTuple):
    """One zone; ``least`` and ``largest`` are arrays of one value."""

    least: pa.Array
    largest: pa.Array
    nulls: int
    nans: int
    fragment: int
    start: int
    length: int


def _summary(values: pa.Array, zone: Zone) -> _Summary:
    type_, valid, nans = values.type, values.drop_null(), 0
    if pa.types.is_floating(type_):
        is_nan = pc.is_nan(valid)
        nans = pc.sum(is_nan).as_py() or 0
        valid = valid.filter(pc.invert(is_nan))
    ordered = _extremes(valid)
    least, largest = (pa.array([one], type_) for one in ordered)
    if nans:
        largest = pa.array([float("nan")], type_)
    return _Summary(least, largest, values.null_count, nans, zone.fragment, zone.start, zone.length)


def _extremes(values: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and the largest value; of the two zeros those that enclose both."""
    type_ = values.type
    if pa.types.is_fixed_size_binary(type_):
        values = values.cast(pa.binary())
    elif pa.types.is_float16(type_):
        values = values.cast(pa.float32())
    found = pc.min_max(values)
    least, largest = found["min"], found["max"]
    if pa.types.is_floating(type_) and least.is_valid:
        least, largest = (
            pa.scalar(zero if one.as_py() == 0 else one.as_py(), one.type)
            for one, zero in ((least, -0.0), (largest, 0.0))
        )
    return least.cast(type_), largest.cast(type_)


def _moved(source: Source) -> Iterator[_Summary]:
    """Yield the zones of a segment where their rows are now."""
    least, largest, nulls, nans = source.files.read(FILE, ("min", "max", "null_count", "nan_count"))
    for number, *place in moved_zones(source, FILE):
        ends = least.slice(number, 1), largest.slice(number, 1)
        yield _Summary(*ends, nulls[number].as_py(), nans[number].as_py(), *place)


def _write(
    zones: Sequence[_Summary],
    type_: pa.DataType,
    spec: ZoneMap,
    sink: Sink,
    nulls: RowBitmaps,
) -> None:
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in ("null_count", "nan_count")]
    places = [pa.field(name, pa.uint64(), nullable=False) for name in PLACES]
    schema = pa.schema([("min", type_), ("max", type_), *counts, *places])
    nothing = pa.array([], type_)
    ends = [pa.concat_arrays([nothing, *(zone[number] for zone in zones)]) for number in (0, 1)]
    others = [
        pa.array([zone[number] for zone in zones], schema.field(number).type)
        for number in range(2, len(schema))
    ]
    batch = pa.RecordBatch.from_arrays([*ends, *others], schema=schema)
    metadata = {"rows_per_zone": str(spec.rows_per_zone), "null_bitmap": "1"}
    sink.write(FILE, schema, [batch], metadata=metadata, buffers=[nulls.encoded(has_sizes=True)])


def _details(spec: ZoneMap) -> bytes:
    """Return the message: field 1 the rows of a zone, 2 no seeds, 3 a null bitmap."""
    return b"\x08" + varint(spec.rows_per_zone) + b"\x10\x00\x18\x01"
