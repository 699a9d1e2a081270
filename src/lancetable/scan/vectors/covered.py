"""The segments that serve a search: which fragments each describes, and which rows are live."""

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lancetable.commit.reuse import load_reuse, reuse_segment
from lancetable.commit.snapshot import Snapshot
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, is_known, kind_of
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.fragment.readers import Readers
from lancetable.index.registry import VECTORS
from lancetable.index.vector.live import Live
from lancetable.index.vector.segment import Moved, VectorSegment
from lancetable.scan.ask_indices import FAULTS
from lancetable.scan.fragments import readers_of
from lancetable.scan.vectors.exact import VectorColumn

_log = logging.getLogger("lancetable.scan")


class Part(NamedTuple):
    """A segment and the fragments that it serves."""

    entry: IndexSegment
    opened: VectorSegment
    readers: Readers
    """Of its fragments only."""
    live: Live
    moved: Moved | None


class Coverage:
    """The segments of one index that serve a search in a version, and the other fragments."""

    def __init__(self, readers: Readers, column: VectorColumn, metric: str | None) -> None:
        """Let nothing serve the search; a metric that is not given is that of the index."""
        self._readers = readers
        self._column = column
        self._metric = metric
        self._name: str | None = None
        self.notes: list[str] = []
        self.parts: list[Part] = []
        self.uncovered = frozenset(one.id for one in readers.source.manifest.fragments)

    @classmethod
    def of(
        cls,
        readers: Readers,
        snapshot: Snapshot,
        column: VectorColumn,
        metric: str | None,
        passed_over: frozenset[str] = frozenset(),
    ) -> "Coverage":
        """Return what serves a search; segments that are passed over, or damaged, do not."""
        found = cls(readers, column, metric)
        try:
            segments = snapshot.indices() if snapshot.manifest.index_section is not None else ()
            reuse = load_reuse(snapshot, segments)
        except FAULTS as fault:
            found._note(f"indices are not used: {fault}")
            return found
        record = reuse_segment(segments)
        moved = None
        if reuse is not None and record is not None:
            moved = Moved(record.uuid, reuse.translate)
        for segment in _usable(segments, column):
            if segment.uuid not in passed_over:
                found._add(snapshot, segment, reuse, moved)
        return found

    @property
    def metric(self) -> str | None:
        """The metric of the index; None without one."""
        return self.parts[0].opened.layout.metric if self.parts else None

    @cached_property
    def rows(self) -> int:
        """The number of live rows of the fragments that segments describe."""
        return sum(part.readers.starts[-1] for part in self.parts)

    @cached_property
    def rest(self) -> Readers:
        """Readers of the fragments that no segment describes."""
        source = self._readers.source
        if not self.parts or not isinstance(source, Snapshot):
            return self._readers
        ids = [one.id for one in source.manifest.fragments if one.id in self.uncovered]
        return readers_of(source, ids)

    def _add(
        self,
        snapshot: Snapshot,
        segment: IndexSegment,
        reuse: FragmentReuse | None,
        moved: Moved | None,
    ) -> None:
        if self._name not in {None, segment.name}:
            return
        named = segment.fragment_ids or frozenset()
        ids = (reuse.covered(named) if reuse is not None else named) & self.uncovered
        if not ids:
            return
        try:
            opened = VECTORS.open(*snapshot.index_place(segment), segment)
        except FAULTS as fault:
            self._note(f"index {segment.name} is not used: {fault}")
            return
        layout, type_ = opened.layout, self._column.type
        if layout.dim != type_.dim or layout.metric not in type_.metrics:
            self._note(f"index {segment.name} is of {layout.dim} dimensions by {layout.metric}")
            return
        if self._metric not in {None, layout.metric}:
            self._note(f"index {segment.name} is by {layout.metric}, not by {self._metric}")
            return
        self._metric, self._name = layout.metric, segment.name
        self.uncovered -= ids
        chosen = [one.id for one in snapshot.manifest.fragments if one.id in ids]
        readers = readers_of(snapshot, chosen)
        holds_ids = readers.row_id_index is not None and holds_row_ids(segment)
        live = _live_ids(readers) if holds_ids else _live_addresses(readers)
        self.parts.append(Part(segment, opened, readers, live, None if holds_ids else moved))

    def _note(self, text: str) -> None:
        _log.warning("%s", text)
        self.notes.append(text)


def _usable(segments: Sequence[IndexSegment], column: VectorColumn) -> list[IndexSegment]:
    """Return the segments of vector indices on a column whose version is known."""
    return [
        one
        for one in segments
        if kind_of(one).is_vector and one.fields[:1] == (column.field_id,) and is_known(one)
    ]


def _live_addresses(readers: Readers) -> Live:
    fragments = readers.source.manifest.fragments
    deleted = readers.with_deletions(range(len(fragments))) if readers.has_deletions else []
    marked = {}
    for position in deleted:
        opened = readers[position].opened
        mask = np.ones(opened.rows, np.bool_)
        if opened.deletions is not None:
            mask[opened.deletions.offsets] = False
        marked[fragments[position].id] = mask
    counts = {
        one.id: one.physical_rows or readers[position].opened.rows
        for position, one in enumerate(fragments)
        if one.id not in marked
    }
    return Live.of(counts, marked)


def _live_ids(readers: Readers) -> Live:
    index = readers.row_id_index
    assert index is not None
    return Live.spanning(*index.spans)
