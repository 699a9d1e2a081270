"""Ask scalar indices which rows of which fragments may match a predicate.

Rows that an index names are still compared with the whole predicate, so an index can only save
work. A fragment that no index describes is scanned; so is one of which an index names a large part.
A segment that cannot be used, or whose files are damaged or missing, is passed over.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import (
    CorruptError,
    ExpressionError,
    FileNotFoundInStoreError,
    UnsupportedError,
)
from lancetable.expression import And, Expression, IsTrue, Opaque, Or, columns, to_sql, walk
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, kind_of
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.rows import RowSet
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.readers import Readers
from lancetable.index.base import ScalarIndex, in_terms_of_values
from lancetable.index.registry import SCALAR, SEGMENTS, unusable

SCAN_FROM = 0.05
"""When an index names a larger part of the rows of a fragment, its pages are scanned."""

Offsets: TypeAlias = npt.NDArray[np.int64]
_log = logging.getLogger("lancetable.scan")
_FAULTS = (CorruptError, ExpressionError, FileNotFoundInStoreError, UnsupportedError)


class Leaf(NamedTuple):
    """What indices answered to one part of a predicate."""

    part: Expression
    names: tuple[str, ...]
    rows: RowSet
    covered: frozenset[int]

    def offsets(self, fragment_id: int) -> Offsets | None:
        """Return the rows of a fragment that may match; None when any may."""
        return self.rows.of_fragment(fragment_id) if fragment_id in self.covered else None


@dataclass(frozen=True, slots=True)
class Both:
    """Answers of which all hold."""

    answers: "tuple[Answer, ...]"

    def offsets(self, fragment_id: int) -> Offsets | None:
        """Return the rows of a fragment that may match; None when any may."""
        found: Offsets | None = None
        for answer in self.answers:
            each = answer.offsets(fragment_id)
            if each is not None:
                found = each if found is None else np.intersect1d(found, each, assume_unique=True)
        return found


@dataclass(frozen=True, slots=True)
class Either:
    """Answers of which one holds."""

    answers: "tuple[Answer, ...]"

    def offsets(self, fragment_id: int) -> Offsets | None:
        """Return the rows of a fragment that may match; None when any may."""
        found = np.empty(0, np.int64)
        for answer in self.answers:
            each = answer.offsets(fragment_id)
            if each is None:
                return None
            found = np.union1d(found, each)
        return found


Answer: TypeAlias = Leaf | Both | Either


class Narrowing:
    """The rows that indices leave of a predicate."""

    def __init__(self, answer: Answer, readers: Readers) -> None:
        self._answer = answer
        self._readers = readers

    def offsets(self, position: int) -> Offsets | None:
        """Return the rows to read of the fragment at a position; None to scan all of it."""
        fragment = self._readers.source.manifest.fragments[position]
        found = self._answer.offsets(fragment.id)
        if found is None:
            return None
        rows = self._readers[position].opened.rows
        return None if len(found) > SCAN_FROM * rows else found[found < rows]

    def describe(self) -> list[str]:
        """Return a line for each part of the predicate that indices answered."""
        lines = []
        for leaf in _leaves(self._answer):
            exact = "" if leaf.rows.is_exact else "at most "
            lines.append(
                f"index {', '.join(leaf.names)} on {to_sql(leaf.part)}: {exact}{len(leaf.rows)} "
                f"rows in {len(leaf.covered)} fragments"
            )
        total = len(self._readers)
        scanned = sum(self.offsets(position) is None for position in range(total))
        lines.append(
            f"fragments read by row: {total - scanned}, scanned: {scanned}; every row is compared "
            "with the whole predicate"
        )
        return lines


def narrow(readers: Readers, where: Expression | None) -> Narrowing | None:
    """Ask the indices of a version about a predicate; None when no index answers a part of it."""
    source = readers.source
    if where is None or not isinstance(source, Snapshot) or source.manifest.index_section is None:
        return None
    try:
        segments = source.indices()
        asked = _Asked(source, readers, segments, load_reuse(source, segments))
    except _FAULTS as fault:
        _log.warning("indices are not used: %s", fault)
        return None
    answer = asked.answer(where)
    return None if answer is None else Narrowing(answer, readers)


@dataclass(frozen=True, slots=True)
class _Asked:
    snapshot: Snapshot
    readers: Readers
    segments: Sequence[IndexSegment]
    reuse: FragmentReuse | None

    def answer(self, part: Expression) -> Answer | None:
        """Return what indices know about a part of a predicate."""
        if isinstance(part, IsTrue) and part.value and not part.negated:
            return self.answer(part.operand)
        leaf = self._leaf(part)
        if leaf is not None:
            return leaf
        if isinstance(part, And):
            known = [one for one in map(self.answer, part.operands) if one is not None]
            return Both(tuple(known)) if known else None
        if isinstance(part, Or):
            each = [self.answer(one) for one in part.operands]
            found = tuple(one for one in each if one is not None)
            return Either(found) if len(found) == len(each) else None
        return None

    def _leaf(self, part: Expression) -> Leaf | None:
        paths = columns(part)
        if len(paths) != 1 or any(isinstance(node, Opaque) for node in walk(part)):
            return None
        field = _field(self.snapshot.manifest.schema, next(iter(paths)))
        if field is None:
            return None
        wanted = in_terms_of_values(part)
        names: dict[str, None] = {}
        rows: RowSet | None = None
        covered: frozenset[int] = frozenset()
        for segment in self._segments(field):
            found = self._search(segment, wanted, covered)
            if found is not None:
                names[segment.name] = None
                rows = found[0] if rows is None else rows | found[0]
                covered |= found[1]
        return None if rows is None else Leaf(part, tuple(names), rows, covered)

    def _segments(self, field: Field) -> list[IndexSegment]:
        """Return the usable segments on a column, those of exact kinds first."""
        found = []
        for segment in self.segments:
            if segment.fields[:1] != (field.id,):
                continue
            reason = unusable(segment)
            if reason is None:
                found.append(segment)
            else:
                _log.debug("index %s is not used: %s", segment.name, reason)
        order = list(SCALAR)
        return sorted(found, key=lambda segment: order.index(kind_of(segment).name))

    def _covered(self, segment: IndexSegment) -> frozenset[int]:
        """Return the fragments of the version that a segment describes."""
        named = segment.fragment_ids or frozenset()
        if self.reuse is not None and not kind_of(segment).is_zoned:
            named = self.reuse.covered(named)
        return named & frozenset(self.readers.positions)

    def _search(
        self, segment: IndexSegment, part: Expression, known: frozenset[int]
    ) -> tuple[RowSet, frozenset[int]] | None:
        """Return the rows that a segment finds, and the fragments it describes."""
        try:
            described = self._covered(segment)
            if described <= known:
                return None
            store, folder = self.snapshot.index_place(segment)
            index: ScalarIndex = SEGMENTS.open(store, folder, segment)
            covered = index.covered(described)
            rows = index.search(part) if covered else None
            return None if rows is None else (self._current(segment, rows), covered)
        except _FAULTS as fault:
            _log.warning("index %s is not used: %s", segment.name, fault)
            return None

    def _current(self, segment: IndexSegment, rows: RowSet) -> RowSet:
        """Return the addresses that rows of a segment have in this version."""
        ids = self.readers.row_id_index
        if ids is not None and holds_row_ids(segment):
            addresses, is_live = ids.find(rows.addresses())
            return RowSet.from_addresses(addresses[is_live], is_exact=rows.is_exact)
        if self.reuse is None or kind_of(segment).is_zoned:
            return rows
        addresses, is_kept = self.reuse.translate(rows.addresses())
        return RowSet.from_addresses(addresses[is_kept], is_exact=rows.is_exact)


def _leaves(answer: Answer) -> list[Leaf]:
    if isinstance(answer, Leaf):
        return [answer]
    return [leaf for one in answer.answers for leaf in _leaves(one)]


def _field(schema: Schema, path: tuple[str, ...]) -> Field | None:
    """Return the field at a path of structs."""
    fields: Sequence[Field] = schema.fields
    found: Field | None = None
    for name in path:
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            return None
        fields = found.children
    return found
