"""Describe the indices of a version: kind, columns, segments, and how many rows they cover."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import (
    CorruptError,
    FileNotFoundInStoreError,
    InputError,
    UnsupportedError,
)
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import is_system, kind_of, message_name
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.schema.project import path_of
from lancetable.index.registry import SCALAR, SEGMENTS, unusable

_FAULTS = (CorruptError, FileNotFoundInStoreError, InputError, UnsupportedError)


class SegmentInfo(NamedTuple):
    """One segment of an index, and what it covers of a version."""

    segment: IndexSegment
    kind: str
    columns: tuple[str, ...]
    covered: frozenset[int]
    """The fragments of the version that it covers."""
    rows_covered: int
    unusable: str | None
    """Why predicates are not answered with it; None when they are."""


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """One index of a table, and how far it covers the version."""

    name: str
    kind: str
    """Such as ``btree``; for an unknown kind the name of the message that describes it."""
    columns: tuple[str, ...]
    segments: tuple[IndexSegment, ...] = field(repr=False)
    fragments: int = 0
    """Fragments of the version."""
    fragments_covered: int = 0
    rows_covered: int = 0
    """Live rows of the fragments that the index covers."""
    rows_uncovered: int = 0
    """Live rows that are scanned."""
    bytes: int = 0
    created_at: datetime | None = None
    unusable: str | None = None
    """Why predicates are not answered with it; None when they are."""

    @property
    def is_system(self) -> bool:
        """True for bookkeeping of the format."""
        return is_system(self.segments[0])

    @property
    def summary(self) -> str:
        """The index and its coverage in one line."""
        if self.unusable is not None:
            return f"{self.kind} {self.name}: not used, {self.unusable}"
        text = f"{self.kind} {self.name}: {self.fragments_covered} of {self.fragments} fragments"
        return f"{text}, {self.rows_uncovered:,} rows uncovered" if self.rows_uncovered else text


def describe_indices(snapshot: Snapshot) -> dict[str, IndexInfo]:
    """Return the indices of a version by name, those of the format itself included.

    Raises:
        CorruptError: the list of segments is damaged.
    """
    grouped: dict[str, list[SegmentInfo]] = {}
    for one in describe_segments(snapshot):
        grouped.setdefault(one.segment.name, []).append(one)
    rows = _rows(snapshot) if grouped else {}
    return {name: _index(group, rows) for name, group in grouped.items()}


def coverage(snapshot: Snapshot) -> list[str]:
    """Return a line for each index on data: its kind, its name and what it covers.

    Raises:
        CorruptError: the list of segments is damaged.
    """
    return [one.summary for one in describe_indices(snapshot).values() if not one.is_system]


def describe_segments(snapshot: Snapshot) -> list[SegmentInfo]:
    """Return the segments of a version with what they cover.

    Raises:
        CorruptError: the list of segments is damaged.
    """
    segments = snapshot.indices()
    if not segments:
        return []
    fault, reuse = None, None
    try:
        reuse = load_reuse(snapshot, segments)
    except _FAULTS as error:
        fault = str(error)
    rows, found = _rows(snapshot), []
    for segment in segments:
        reason = unusable(segment, snapshot.manifest.schema)
        if not is_system(segment):
            reason = reason or fault or _unreadable(snapshot, segment)
        ids = frozenset[int]() if fault else covered(segment, snapshot, reuse)
        kind, schema = kind_of(segment), snapshot.manifest.schema
        found.append(
            SegmentInfo(
                segment,
                kind.public_name if kind.newest >= 0 else message_name(segment) or "unknown",
                tuple(path_of(schema, one) or str(one) for one in segment.fields),
                ids,
                sum(rows[id_] for id_ in ids),
                reason,
            )
        )
    return found


def _unreadable(snapshot: Snapshot, segment: IndexSegment) -> str | None:
    """Return why the files of an old segment cannot be read; newer ones list their files."""
    if segment.files or kind_of(segment).name not in SCALAR:
        return None
    try:
        SEGMENTS.open(*snapshot.index_place(segment), segment)
    except _FAULTS as fault:
        return str(fault)
    return None


def covered(
    segment: IndexSegment, snapshot: Snapshot, reuse: FragmentReuse | None
) -> frozenset[int]:
    """Return the fragments of a version that a segment covers.

    Zones name fragments instead of rows, so the record of moved rows does not apply to them. Where
    there is such a record, other writers name fragments in the segment that its files lack, and
    the files decide.
    """
    named = segment.fragment_ids or frozenset()
    is_zoned = kind_of(segment).is_zoned
    if reuse is not None and not is_zoned:
        named = reuse.covered(named)
    existing = named & frozenset(one.id for one in snapshot.manifest.fragments)
    if reuse is None or not existing or not is_zoned or unusable(segment) is not None:
        return existing
    try:
        return SEGMENTS.open(*snapshot.index_place(segment), segment).covered(existing)
    except _FAULTS:
        return frozenset()


def _rows(snapshot: Snapshot) -> dict[int, int]:
    return {one.id: one.live_rows or 0 for one in snapshot.manifest.fragments}


def _index(segments: Sequence[SegmentInfo], rows: Mapping[int, int]) -> IndexInfo:
    first = segments[0]
    entries = tuple(one.segment for one in segments)
    used = [one for one in segments if one.unusable is None]
    known = frozenset[int]().union(*(one.covered for one in used or segments))
    described = sum(rows[id_] for id_ in known)
    return IndexInfo(
        name=first.segment.name,
        kind=first.kind,
        columns=first.columns,
        segments=entries,
        fragments=len(rows),
        fragments_covered=len(known),
        rows_covered=described,
        rows_uncovered=sum(rows.values()) - described,
        bytes=sum(file.size for one in entries for file in one.files),
        created_at=max((one.created_at for one in entries if one.created_at), default=None),
        unusable=None if used else first.unusable,
    )
