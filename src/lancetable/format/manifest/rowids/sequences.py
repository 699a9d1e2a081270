"""Sequences for the rows of a new version: ranges, lengths, joins (without expanding them)."""

from collections.abc import Iterable

from lancetable.format.manifest.rowids.codec import (
    decode_runs,
    decode_segments,
    encode_runs,
    encode_segments,
)
from lancetable.format.manifest.rowids.segments import Range, Run, size


def id_range(start: int, count: int) -> bytes:
    """Return the row id sequence ``start``, ``start + 1``, … of ``count`` rows."""
    return encode_segments([Range(start, start + count)] if count else [Range(0, 0)])


def id_count(data: bytes) -> int:
    """Return the number of ids of a row id sequence.

    Raises:
        CorruptError: the bytes are damaged.
    """
    return sum(size(segment) for segment in decode_segments(data))


def joined_ids(parts: Iterable[bytes]) -> bytes:
    """Return row id sequences one behind the other, each encoded as it was."""
    return b"".join(parts)


def same_version(rows: int, version: int) -> bytes:
    """Return the version sequence of rows that share one version."""
    return encode_runs([Run(Range(0, rows), version)])


def version_count(data: bytes) -> int:
    """Return the number of rows of a version sequence.

    Raises:
        CorruptError: the bytes are damaged.
    """
    return sum(size(run.span) for run in decode_runs(data))


def extended_versions(data: bytes, rows: int, version: int) -> bytes:
    """Return a version sequence with ``rows`` more rows of one version behind it."""
    first = version_count(data)
    return data + encode_runs([Run(Range(first, first + rows), version)]) if rows else data
