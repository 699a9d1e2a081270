"""Which bytes to fetch: ranges, and the merging of neighbours into fewer requests."""

from collections.abc import Sequence
from typing import NamedTuple


class ByteRange(NamedTuple):
    """The bytes ``[start, stop)`` of one file."""

    start: int
    stop: int


def merge_neighbours(ranges: Sequence[ByteRange], *, gap: int) -> list[ByteRange]:
    """Return the fewest ranges that cover all given ones, bridging holes of up to ``gap`` bytes."""
    merged: list[ByteRange] = []
    for wanted in sorted(ranges):
        if merged and wanted.start <= merged[-1].stop + gap:
            merged[-1] = ByteRange(merged[-1].start, max(merged[-1].stop, wanted.stop))
        else:
            merged.append(wanted)
    return merged
