"""One column of texts in a version: its index, and the rows that the index does not describe.

The index is the one on the column that describes the most fragments. Its segments must have been
made by the same analysis; others are passed over, as are damaged ones, and their rows are analysed
when they are searched.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import pyarrow.types as pt

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import SchemaError, UnsupportedError
from lancetable.expression.analysis.analyzer import QueryToken, analyze_query
from lancetable.expression.analysis.parameters import Analysis
from lancetable.format.arrays import Mask
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import is_known, kind_of
from lancetable.format.rows import OFFSET_BITS
from lancetable.format.schema.model import Field
from lancetable.format.schema.project import resolve
from lancetable.format.schema.types import arrow_type
from lancetable.fragment.readers import Readers
from lancetable.index.base import Numbers
from lancetable.index.registry import TEXTS
from lancetable.index.text.documents import Documents, Member, StatisticsOf
from lancetable.index.text.memory import Wanted
from lancetable.index.text.partition import StoredPartition
from lancetable.index.text.segment import TextSegment
from lancetable.scan.ask_indices import FAULTS
from lancetable.scan.request import ScanOptions
from lancetable.scan.texts.segments import Segments
from lancetable.scan.texts.uncovered import Uncovered

KIND = "inverted"
_MOST_QUERIES = 1000
_log = logging.getLogger("lancetable.scan")


class Served(NamedTuple):
    """A segment, and the fragments whose rows it finds."""

    entry: IndexSegment
    opened: TextSegment
    fragments: frozenset[int]


class TextColumn:
    """A column of texts."""

    def __init__(
        self,
        snapshot: Snapshot,
        readers: Readers,
        path: str,
        *,
        use_indices: bool = True,
        analysis: Analysis | None = None,
    ) -> None:
        """Find the index of a column; without one, texts are analysed by ``analysis``.

        Raises:
            SchemaError: there is no such column, or it does not hold texts.
        """
        self.path = path
        self._readers = readers
        field = resolve(snapshot.manifest.schema, path)[-1]
        kind = text_kind(field)
        if kind is None:
            raise SchemaError(
                f"column {path!r} of type {arrow_type(field)} does not hold texts; expected "
                "strings, lists of strings or JSON documents"
            )
        self._known: dict[StatisticsOf, Documents] = {}
        self._queries: dict[str, tuple[QueryToken, ...]] = {}
        self.served: list[Served] = []
        self._segments: Segments | None = None
        if use_indices and snapshot.manifest.index_section is not None:
            try:
                self._segments = Segments.of(snapshot, readers)
                self.served = _served(self._segments, field.id)
            except FAULTS as fault:
                _log.warning("indices are not used: %s", fault)
        given = Analysis() if analysis is None else analysis
        self.analysis = self.served[0].opened.analysis if self.served else given.of_documents(kind)
        covered = frozenset[int]().union(*(one.fragments for one in self.served))
        every = frozenset(one.id for one in snapshot.manifest.fragments)
        self.uncovered = Uncovered(snapshot, path, self.analysis, every - covered)

    @property
    def index_name(self) -> str | None:
        """The name of the index; None when the column has none."""
        return self.served[0].entry.name if self.served else None

    @cached_property
    def _stored(self) -> list[Member]:
        return [
            self._member(one, partition)
            for one in self.served
            for partition in one.opened.partitions
        ]

    def _member(self, served: Served, partition: StoredPartition) -> Member:
        """Return the documents of a partition as they are in the version."""
        segments = self._segments
        assert segments is not None
        addresses, exist = segments.addresses(served.entry, partition.rows)
        live = segments.live(addresses, served.fragments)
        if exist is not None:
            live &= exist
        removed = served.opened.removed
        if removed and exist is None:
            live &= ~_are_of(partition.rows >> np.uint64(OFFSET_BITS), removed)
        has_ids = self._readers.row_id_index is not None
        rows = partition.rows if has_ids else addresses
        return Member(partition, rows, None if live.all() else live)

    def documents(
        self,
        wanted: Wanted,
        options: ScanOptions,
        statistics: StatisticsOf,
        *,
        indexed_only: bool,
    ) -> Documents:
        """Return the documents with the words that are wanted.

        Raises:
            CorruptError: a file of the index, or a value, is damaged.
            UnsupportedError: rows must be analysed by a tokenizer that this release does not have.
        """
        if indexed_only or not self.uncovered.fragments:
            found = self._known.get(statistics)
            if found is None:
                found = self._known[statistics] = Documents(self._stored, statistics)
            return found
        others = self.uncovered.partitions(wanted, options)
        return Documents(
            [*self._stored, *(Member(one, one.rows, None) for one in others)], statistics
        )

    def query_tokens(self, text: str) -> tuple[QueryToken, ...]:
        """Return the words that a query asks for.

        The words of a tokenizer that this release does not have are those between spaces.

        Raises:
            InputError: the query is not one on JSON documents.
        """
        found = self._queries.get(text)
        if found is None:
            try:
                found = tuple(analyze_query(self.analysis, text))
            except UnsupportedError:
                found = tuple(QueryToken(word, place) for place, word in enumerate(text.split()))
            if len(self._queries) >= _MOST_QUERIES:
                self._queries.clear()
            self._queries[text] = found
        return found

    def describe(self) -> list[str]:
        """Return in words which rows the index finds, and which are analysed."""
        lines = []
        if self.served:
            fragments = sum(len(one.fragments) for one in self.served)
            lines.append(
                f"index {self.index_name}: {len(self.served)} segments, {fragments} fragments"
            )
        if self.uncovered.fragments:
            why = "" if self.served else "no index: "
            lines.append(f"{why}{self.uncovered.fragments} fragments are analysed when searched")
        return lines


def text_kind(field: Field) -> Literal["text", "json"] | None:
    """Return ``text`` or ``json``, as a column holds; None when it holds neither."""
    if field.logical_type == "json":
        return "json"
    type_ = arrow_type(field)
    if pt.is_list(type_) or pt.is_large_list(type_):
        type_ = type_.value_type
    is_text = pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_)
    return "text" if is_text else None


def are_alike(one: Analysis, other: Analysis) -> bool:
    """Return whether two analyses make the same words of a text."""
    return replace(one, with_position=False) == replace(other, with_position=False)


def _served(segments: Segments, field_id: int) -> list[Served]:
    """Return the segments of the index on a column that describes the most fragments."""
    named: dict[str, list[IndexSegment]] = {}
    for entry in segments.entries:
        if entry.fields[:1] == (field_id,) and kind_of(entry).name == KIND and is_known(entry):
            named.setdefault(entry.name, []).append(entry)
    found = [[*_usable(segments, entries)] for entries in named.values()]
    return max(found, key=lambda each: sum(len(one.fragments) for one in each), default=[])


def _usable(segments: Segments, entries: Sequence[IndexSegment]) -> Iterator[Served]:
    known: frozenset[int] = frozenset()
    analysis: Analysis | None = None
    for entry in entries:
        try:
            opened = TEXTS.open(*segments.snapshot.index_place(entry), entry)
            if not opened.partitions and entry.fragment_ids:
                continue
            if analysis is not None and not are_alike(opened.analysis, analysis):
                _log.warning("a segment of index %s is not used: other analysis", entry.name)
                continue
        except FAULTS as fault:
            _log.warning("index %s is not used: %s", entry.name, fault)
            continue
        analysis = opened.analysis
        fragments = segments.covered(entry) - known
        known |= fragments
        yield Served(entry, opened, fragments)


def _are_of(fragments: Numbers, ids: frozenset[int]) -> Mask:
    return np.isin(fragments, np.array(sorted(ids), np.uint64))
