"""Expand sequences to one number per row, and choose the smallest segments for given numbers.

Row ids count every physical row, deleted ones included, in file order. Of a version sequence only
the lengths of the spans matter: after compaction their numbers are leftovers of other fragments.

========================  ======================================
form of sorted ids        estimated bytes
========================  ======================================
range with holes          24 + 4 for each hole
range with bitmap         24 + 1 for each 8 numbers of the range
sorted array              24 + 2 for each id
========================  ======================================

Ids without a gap are a range, unsorted ones an array. Of equal sizes the form named first is used.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.manifest.rowids.codec import (
    decode_runs,
    decode_segments,
    encode_runs,
    encode_segments,
)
from lancetable.format.manifest.rowids.segments import (
    Listed,
    Packed,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Run,
    Segment,
    size,
)

Numbers: TypeAlias = npt.NDArray[np.uint64]

MOST_UNASKED = 1 << 26


def decode_row_ids(data: bytes, expected_rows: int | None = None) -> Numbers:
    """Return the row id of each physical row.

    Raises:
        CorruptError: the bytes are damaged, or do not name ``expected_rows`` ids.
    """
    segments = decode_segments(data)
    sizes = [size(segment) for segment in segments]
    total = sum(sizes)
    if expected_rows is not None and total != expected_rows:
        raise CorruptError(f"{total} row ids are stored for {expected_rows} rows")
    if total > MOST_UNASKED and expected_rows is None:
        raise CorruptError(f"a fragment cannot have {total} row ids")
    if not segments:
        return np.empty(0, np.uint64)
    return np.concatenate([_expand(segment) for segment in segments])


class IdSpans(NamedTuple):
    """Row ids as stretches of neighbours: span i is ``firsts[i]`` and the ``sizes[i] - 1`` next."""

    firsts: Numbers
    sizes: npt.NDArray[np.int64]


def decode_id_spans(data: bytes, expected_rows: int) -> IdSpans:
    """Return the row ids of the physical rows as spans; ranges are not spelled out for it.

    Raises:
        CorruptError: the bytes are damaged, or do not name ``expected_rows`` ids.
    """
    segments = decode_segments(data)
    total = sum(size(segment) for segment in segments)
    if total != expected_rows:
        raise CorruptError(f"{total} row ids are stored for {expected_rows} rows")
    found = [
        IdSpans(np.array([segment.start], np.uint64), np.array([segment.end - segment.start]))
        if isinstance(segment, Range)
        else spans_of(_expand(segment))
        for segment in segments
        if size(segment)
    ]
    if len(found) == 1:
        return found[0]
    empty = IdSpans(np.empty(0, np.uint64), np.empty(0, np.int64))
    return IdSpans(*map(np.concatenate, zip(*[empty, *found], strict=True)))


def spans_of(ids: Numbers) -> IdSpans:
    """Return row ids, one for each row, as spans."""
    edges = np.flatnonzero(ids[1:] != ids[:-1] + np.uint64(1)) + 1
    starts = np.concatenate([[0], edges]) if len(ids) else np.empty(0, np.int64)
    return IdSpans(ids[starts], np.diff(np.append(starts, len(ids))))


def largest_row_id(data: bytes) -> int:
    """Return a number that no id of a sequence exceeds, -1 for none.

    Raises:
        CorruptError: the bytes are damaged.
    """
    return max((_last(segment) for segment in decode_segments(data) if size(segment)), default=-1)


def _last(segment: Segment) -> int:
    return int(_unpack(segment.values).max()) if isinstance(segment, Listed) else segment.end - 1


def decode_versions(data: bytes, rows: int) -> Numbers:
    """Return the version stored for each of the fragment's physical rows.

    Raises:
        CorruptError: the bytes are damaged, or cover another number of rows.
    """
    runs = decode_runs(data)
    sizes = [size(run.span) for run in runs]
    if sum(sizes) != rows:
        raise CorruptError(f"{sum(sizes)} row versions are stored for {rows} rows")
    versions = np.array([run.version for run in runs], np.uint64)
    return np.repeat(versions, sizes)


def _unpack(packed: Packed) -> Numbers:
    values = np.frombuffer(packed.data, f"<u{packed.width}").astype(np.uint64)
    if packed.base:
        if values.size and packed.base + int(values.max()) > 2**64 - 1:
            raise CorruptError("a row id does not fit into 64 bits")
        values += np.uint64(packed.base)
    return values


def _expand(segment: Segment) -> Numbers:
    match segment:
        case Range(start, end):
            return np.arange(end - start, dtype=np.uint64) + np.uint64(start)
        case RangeWithHoles():
            return _without_holes(segment)
        case RangeWithBitmap(start, end, bitmap):
            bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
            return np.flatnonzero(bits[: end - start]).astype(np.uint64) + np.uint64(start)
        case Listed(values):
            return _unpack(values)


def _without_holes(segment: RangeWithHoles) -> Numbers:
    start, end, _ = segment
    holes = _unpack(segment.holes)
    if holes.size and not (start <= int(holes.min()) <= int(holes.max()) < end):
        raise CorruptError("a hole of a row id range lies outside it")
    present = np.ones(end - start, np.bool_)
    present[holes - np.uint64(start)] = False
    found = np.flatnonzero(present).astype(np.uint64)
    if found.size != size(segment):
        raise CorruptError("a hole of a row id range is listed twice")
    return found + np.uint64(start)


_LEAST_RUN = 32
"""How long the ascending stretches of ids have to be for a segment of their own, on average."""


def encode_row_ids(ids: npt.NDArray[np.uint64]) -> bytes:
    """Return the sequence of the given ids, one per row, as one segment."""
    return encode_segments([choose_segment(np.asarray(ids, np.uint64))])


def encode_row_id_runs(ids: npt.NDArray[np.uint64]) -> bytes:
    """Return the sequence of ids that ascend for long stretches, one segment for each of them."""
    ids = np.asarray(ids, np.uint64)
    ends = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if ends.size * _LEAST_RUN > ids.size:
        return encode_row_ids(ids)
    return encode_segments([choose_segment(run) for run in np.split(ids, ends)])


def encode_versions(versions: npt.NDArray[np.uint64]) -> bytes:
    """Return the sequence of the given versions, one per row."""
    versions = np.asarray(versions, np.uint64)
    if not versions.size:
        return encode_runs([])
    starts = np.flatnonzero(np.concatenate(([True], versions[1:] != versions[:-1])))
    ends = np.append(starts[1:], versions.size)
    return encode_runs(
        Run(Range(start, end), version)
        for start, end, version in zip(
            starts.tolist(), ends.tolist(), versions[starts].tolist(), strict=True
        )
    )


def choose_segment(ids: npt.NDArray[np.uint64]) -> Segment:
    """Return the smallest segment that holds the ids in their order."""
    if not ids.size:
        return Range(0, 0)
    if (ids[1:] <= ids[:-1]).any():
        return Listed(_pack(ids))
    start, end = int(ids[0]), int(ids[-1]) + 1
    span = end - start
    missing = span - ids.size
    if not missing:
        return Range(start, end)
    with_holes, with_bits, listed = 4 * missing, (span + 7) // 8, 2 * ids.size
    if with_holes <= min(with_bits, listed):
        return RangeWithHoles(start, end, _pack(_holes(ids, start, span)))
    if with_bits <= listed:
        bits = np.packbits(_present(ids, start, span), bitorder="little")
        return RangeWithBitmap(start, end, bits.tobytes())
    return Listed(_pack(ids), is_sorted=True)


def _present(ids: npt.NDArray[np.uint64], start: int, span: int) -> npt.NDArray[np.bool_]:
    present = np.zeros(span, np.bool_)
    present[ids - np.uint64(start)] = True
    return present


def _holes(ids: npt.NDArray[np.uint64], start: int, span: int) -> npt.NDArray[np.uint64]:
    return np.flatnonzero(~_present(ids, start, span)).astype(np.uint64) + np.uint64(start)


def _pack(ids: npt.NDArray[np.uint64]) -> Packed:
    base = int(ids.min())
    reach = int(ids.max()) - base
    if reach > 2**32 - 1:
        return Packed(8, 0, ids.astype("<u8").tobytes())
    width = 2 if reach <= 2**16 - 1 else 4
    return Packed(width, base, (ids - np.uint64(base)).astype(f"<u{width}").tobytes())
