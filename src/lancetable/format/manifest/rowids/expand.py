"""Expand sequences to one number per row of a fragment.

Row ids count every physical row, deleted ones included, in file order. Of a version sequence only
the lengths of the spans matter: after compaction their numbers are leftovers of other fragments.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.errors import CorruptError
from lancetable.format.manifest.rowids.codec import decode_runs, decode_segments
from lancetable.format.manifest.rowids.segments import (
    Listed,
    Packed,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
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
