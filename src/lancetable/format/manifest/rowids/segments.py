"""Segments of a sequence of row numbers, each in its smallest form."""

from typing import NamedTuple, TypeAlias

from lancetable.errors import CorruptError


class Packed(NamedTuple):
    """Little-endian numbers of ``width`` bytes, each to be added to ``base``."""

    width: int
    base: int
    data: bytes


class Range(NamedTuple):
    """All numbers from ``start`` up to, not including, ``end``."""

    start: int
    end: int


class RangeWithHoles(NamedTuple):
    """A range without the numbers listed."""

    start: int
    end: int
    holes: Packed


class RangeWithBitmap(NamedTuple):
    """A range of which one bit per number, least significant first, says what is present."""

    start: int
    end: int
    bitmap: bytes


class Listed(NamedTuple):
    """Each number on its own, in any order."""

    values: Packed
    is_sorted: bool = False


Segment: TypeAlias = Range | RangeWithHoles | RangeWithBitmap | Listed


class Run(NamedTuple):
    """As many rows as the segment has numbers, all of one version."""

    span: Segment
    version: int


def size(segment: Segment) -> int:
    """Return how many numbers a segment holds.

    Raises:
        CorruptError: its parts contradict each other.
    """
    match segment:
        case Range(start, end):
            return end - start
        case RangeWithHoles(start, end, holes):
            return _beside_holes(end - start, len(holes.data) // holes.width)
        case RangeWithBitmap():
            return bits(segment).bit_count()
        case Listed(values):
            return len(values.data) // values.width


def _beside_holes(span: int, holes: int) -> int:
    if holes > span:
        raise CorruptError(f"a row id range of {span} has {holes} holes")
    return span - holes


def bits(segment: RangeWithBitmap) -> int:
    """Return the bits as one number, those beyond the range cleared.

    Raises:
        CorruptError: there are fewer bits than numbers in the range.
    """
    span = segment.end - segment.start
    if span > 8 * len(segment.bitmap):
        raise CorruptError(
            f"a row id range of {span} has a bitmap of only {8 * len(segment.bitmap)} bits"
        )
    return int.from_bytes(segment.bitmap, "little") & ((1 << span) - 1)
