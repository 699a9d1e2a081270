"""Choose the smallest segments for given row ids and row versions.

========================  ======================================
form of sorted ids        estimated bytes
========================  ======================================
range with holes          24 + 4 for each hole
range with bitmap         24 + 1 for each 8 numbers of the range
sorted array              24 + 2 for each id
========================  ======================================

Ids without a gap are a range, unsorted ones an array. Of equal sizes the form named first is used.
"""

import numpy as np
import numpy.typing as npt

from lancetable.format.manifest.rowids.codec import encode_runs, encode_segments
from lancetable.format.manifest.rowids.segments import (
    Listed,
    Packed,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Run,
    Segment,
)

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
