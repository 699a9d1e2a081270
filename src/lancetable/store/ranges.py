"""Byte ranges, and merging neighbours into fewer requests."""

from collections.abc import Sequence
from typing import NamedTuple


class ByteRange(NamedTuple):
    """The bytes ``[start, stop)`` of one file."""

    start: int
    stop: int


def merge_neighbours(
    ranges: Sequence[ByteRange], *, gap: int, most: int | None = None
) -> list[ByteRange]:
    """Return few ranges that cover all given ones, bridging holes of up to ``gap`` bytes.

    A hole is not bridged when that would make a range of more than ``most`` bytes.
    """
    merged: list[ByteRange] = []
    for wanted in sorted(ranges):
        last = merged[-1] if merged else None
        if last is None or not _belongs(last, wanted, gap, most):
            merged.append(wanted)
        else:
            merged[-1] = ByteRange(last.start, max(last.stop, wanted.stop))
    return merged


def _belongs(last: ByteRange, wanted: ByteRange, gap: int, most: int | None) -> bool:
    if wanted.start <= last.stop:
        return True
    if wanted.start > last.stop + gap:
        return False
    return most is None or wanted.stop - last.start <= most


def divide(range_: ByteRange, most: int) -> list[ByteRange]:
    """Cut a range into equal pieces of at most ``most`` bytes."""
    size = range_.stop - range_.start
    pieces = max(-(-size // most), 1)
    each = -(-size // pieces)
    starts = range(range_.start, range_.stop, max(each, 1)) if size else [range_.start]
    return [ByteRange(start, min(start + each, range_.stop)) for start in starts]
