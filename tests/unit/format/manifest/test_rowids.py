"""Row id and version sequences, every form of a segment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import CorruptError
from lancetable.format.manifest.rowids import decode_row_ids, decode_versions
from lancetable.format.proto import rowids_pb2

Segment = rowids_pb2.U64Segment
Array = rowids_pb2.EncodedU64Array
TOP = 2**64 - 1


def packed(values, width):
    if width == 8:
        return Array(u64_array=Array.U64Array(values=np.array(values, "<u8").tobytes()))
    base = min(values, default=0)
    offsets = np.array([value - base for value in values], f"<u{width}").tobytes()
    if width == 2:
        return Array(u16_array=Array.U16Array(base=base, offsets=offsets))
    return Array(u32_array=Array.U32Array(base=base, offsets=offsets))


@st.composite
def segments(draw):
    """Return a segment and the numbers it stands for."""
    start = draw(st.one_of(st.integers(0, 100), st.integers(2**63 - 50, TOP - 5000)))
    span = draw(st.integers(0, 300))
    wanted = range(start, start + span)
    width = draw(st.sampled_from([2, 4, 8]))
    match draw(st.sampled_from(["range", "holes", "bitmap", "array"])):
        case "range":
            return Segment(range=Segment.Range(start=start, end=start + span)), list(wanted)
        case "holes":
            holes = draw(st.sets(st.sampled_from(wanted), max_size=20)) if span else set()
            form = Segment.RangeWithHoles(
                start=start, end=start + span, holes=packed(sorted(holes), width)
            )
            return Segment(range_with_holes=form), [one for one in wanted if one not in holes]
        case "bitmap":
            bits = draw(st.lists(st.booleans(), min_size=span, max_size=span))
            bitmap = np.packbits(np.array(bits, bool), bitorder="little").tobytes()
            form = Segment.RangeWithBitmap(start=start, end=start + span, bitmap=bitmap)
            present = [one for one, bit in zip(wanted, bits, strict=True) if bit]
            return Segment(range_with_bitmap=form), present
        case _:
            values = draw(st.lists(st.integers(start, start + 5000), max_size=30))
            if draw(st.booleans()):
                return Segment(sorted_array=packed(sorted(values), width)), sorted(values)
            return Segment(array=packed(values, width)), values


@given(st.lists(segments(), max_size=5))
def test_segments_are_spelled_out_in_order(parts):
    data = rowids_pb2.RowIdSequence(segments=[part for part, _ in parts]).SerializeToString()
    expected = [value for _, values in parts for value in values]
    found = decode_row_ids(data, len(expected))
    assert found.dtype == np.uint64
    assert found.tolist() == expected
    with pytest.raises(CorruptError, match="row ids are stored"):
        decode_row_ids(data, len(expected) + 1)


@given(st.lists(st.tuples(segments(), st.integers(0, TOP)), max_size=5))
def test_of_a_version_run_only_the_length_counts(parts):
    runs = [
        rowids_pb2.RowDatasetVersionRun(span=part, version=version) for (part, _), version in parts
    ]
    data = rowids_pb2.RowDatasetVersionSequence(runs=runs).SerializeToString()
    expected = [version for (_, values), version in parts for _ in values]
    assert decode_versions(data, len(expected)).tolist() == expected
    with pytest.raises(CorruptError, match="row versions"):
        decode_versions(data, len(expected) + 1)


@pytest.mark.parametrize(
    "segment",
    [
        Segment(),
        Segment(range=Segment.Range(start=5, end=4)),
        Segment(range=Segment.Range(start=0, end=2**62)),
        Segment(array=Array(u32_array=Array.U32Array(offsets=b"123"))),
        Segment(array=Array(u16_array=Array.U16Array(base=TOP, offsets=b"\1\0\2\0"))),
        Segment(range_with_bitmap=Segment.RangeWithBitmap(start=0, end=2**40, bitmap=b"\xff")),
        Segment(range_with_holes=Segment.RangeWithHoles(start=5, end=8, holes=packed([4], 2))),
        Segment(range_with_holes=Segment.RangeWithHoles(start=5, end=8, holes=packed([6, 6], 2))),
        Segment(range_with_holes=Segment.RangeWithHoles(start=5, end=6, holes=packed([5] * 9, 2))),
    ],
)
def test_segments_that_cannot_be(segment):
    with pytest.raises(CorruptError):
        decode_row_ids(rowids_pb2.RowIdSequence(segments=[segment]).SerializeToString())


@given(st.binary(max_size=60))
def test_any_bytes_are_a_sequence_or_damage(data):
    for decode in (decode_row_ids, decode_versions):
        try:
            assert len(decode(data, 10)) == 10
        except CorruptError:
            continue
