"""How is a sequence of row numbers written down: a list of segments, each in its cheapest form."""

from typing import NamedTuple, TypeAlias


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


Segment: TypeAlias = Range | RangeWithHoles | RangeWithBitmap | Listed


class Run(NamedTuple):
    """As many rows as the segment has numbers, all of one version."""

    span: Segment
    version: int
