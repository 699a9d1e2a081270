"""Row id and version sequences between their messages and values."""

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from lancetable.errors import CorruptError
from lancetable.format.manifest.rowids.segments import (
    Listed,
    Packed,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Run,
    Segment,
)
from lancetable.format.proto import rowids_pb2


def decode_segments(data: bytes) -> list[Segment]:
    """Return the segments of a row id sequence.

    Raises:
        CorruptError: the bytes are not such a message.
    """
    try:
        message = rowids_pb2.RowIdSequence.FromString(data)
    except DecodeError:
        raise CorruptError("the row id sequence is not a valid message") from None
    return [_segment(segment) for segment in message.segments]


def encode_segments(segments: Iterable[Segment]) -> bytes:
    """Return the message of a row id sequence.

    The messages of two sequences, one behind the other, are the message of both together.
    """
    message = rowids_pb2.RowIdSequence(segments=[_encoded(segment) for segment in segments])
    return bytes(message.SerializeToString())


def encode_runs(runs: Iterable[Run]) -> bytes:
    """Return the message of a version sequence."""
    message = rowids_pb2.RowDatasetVersionSequence(
        runs=[
            rowids_pb2.RowDatasetVersionRun(span=_encoded(run.span), version=run.version)
            for run in runs
        ]
    )
    return bytes(message.SerializeToString())


def decode_runs(data: bytes) -> list[Run]:
    """Return the runs of a version sequence.

    Raises:
        CorruptError: the bytes are not such a message.
    """
    try:
        message = rowids_pb2.RowDatasetVersionSequence.FromString(data)
    except DecodeError:
        raise CorruptError("the version sequence is not a valid message") from None
    return [Run(_segment(run.span), run.version) for run in message.runs]


def _segment(message: rowids_pb2.U64Segment) -> Segment:
    kind = message.WhichOneof("segment")
    if kind in {"sorted_array", "array"}:
        return Listed(_packed(getattr(message, kind)), kind == "sorted_array")
    if kind is None:
        raise CorruptError("a segment of a row id sequence has no known form")
    stored = getattr(message, kind)
    if stored.end < stored.start:
        raise CorruptError(f"a row id range goes from {stored.start} down to {stored.end}")
    if kind == "range":
        return Range(stored.start, stored.end)
    if kind == "range_with_holes":
        return RangeWithHoles(stored.start, stored.end, _packed(stored.holes))
    return RangeWithBitmap(stored.start, stored.end, stored.bitmap)


def _packed(message: rowids_pb2.EncodedU64Array) -> Packed:
    kind = message.WhichOneof("array")
    if kind == "u16_array":
        packed = Packed(2, message.u16_array.base, message.u16_array.offsets)
    elif kind == "u32_array":
        packed = Packed(4, message.u32_array.base, message.u32_array.offsets)
    elif kind == "u64_array":
        packed = Packed(8, 0, message.u64_array.values)
    else:
        packed = Packed(8, 0, b"")
    if len(packed.data) % packed.width:
        raise CorruptError(
            f"an array of row ids of {packed.width} bytes each has {len(packed.data)} bytes"
        )
    return packed


def _encoded(segment: Segment) -> rowids_pb2.U64Segment:
    message = rowids_pb2.U64Segment()
    match segment:
        case Range(start, end):
            message.range.start, message.range.end = start, end
            message.range.SetInParent()
        case RangeWithHoles(start, end, holes):
            message.range_with_holes.start, message.range_with_holes.end = start, end
            _pack(message.range_with_holes.holes, holes)
        case RangeWithBitmap(start, end, bitmap):
            message.range_with_bitmap.start, message.range_with_bitmap.end = start, end
            message.range_with_bitmap.bitmap = bitmap
        case Listed(values, is_sorted):
            _pack(message.sorted_array if is_sorted else message.array, values)
    return message


def _pack(message: rowids_pb2.EncodedU64Array, packed: Packed) -> None:
    width, base, data = packed
    if width == 8:
        message.u64_array.values = data
        message.u64_array.SetInParent()
        return
    narrow = message.u16_array if width == 2 else message.u32_array
    narrow.base, narrow.offsets = base, data
    narrow.SetInParent()
