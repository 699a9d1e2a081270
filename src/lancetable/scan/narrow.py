"""Ask scalar indices which rows match a predicate, or may match it.

Rows of an exact answer are not compared again; those of another are compared with the parts of the
predicate that were not answered exactly. A fragment that no index describes is scanned; so is one
of which an index names a large part. A segment that cannot be used, or whose files are damaged or
missing, is passed over.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import (
    CorruptError,
    ExpressionError,
    FileNotFoundInStoreError,
    UnsupportedError,
)
from lancetable.expression import (
    And,
    Call,
    Column,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Opaque,
    Or,
    columns,
    to_sql,
    walk,
)
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, kind_of
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.rows import OFFSET_BITS, RowSet
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.readers import Readers
from lancetable.index.base import VALUE, ScalarIndex, in_terms_of_values
from lancetable.index.registry import SCALAR, SEGMENTS, unusable
from lancetable.index.scalar.bitmap import LIST_TESTS
from lancetable.scan.answers import Answer, Both, Either, Known, Leaf, Rows
from lancetable.scan.named_rows import Named, Part, are_runs
from lancetable.scan.plan import ScanPlan

SCAN_FROM = 0.05
"""When an index names a larger part of the rows of a fragment, in many places, it is scanned."""

_log = logging.getLogger("lancetable.scan")
_FAULTS = (CorruptError, FileNotFoundInStoreError, UnsupportedError)
_NULL = IsNull(Column((VALUE,)))


class Narrowing:
    """The rows that indices leave of a predicate."""

    def __init__(self, answer: Answer, readers: Readers) -> None:
        self._answer = answer
        self._readers = readers

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The fragments in which rows may match, in table order; without offsets to be scanned."""
        fragments = self._readers.source.manifest.fragments
        each = (
            Part(position, self._guarded(position, self._answer.known(fragment.id)))
            for position, fragment in enumerate(fragments)
        )
        return tuple(one for one in each if one.known.offsets is None or len(one.known.offsets) > 0)

    @property
    def is_complete(self) -> bool:
        """Whether no fragment is scanned."""
        return all(part.known.offsets is not None for part in self.parts)

    def _guarded(self, position: int, known: Known) -> Known:
        offsets = known.offsets
        if offsets is None or not len(offsets):
            return known
        rows = _physical_rows(self._readers, position)
        offsets = offsets[: np.searchsorted(offsets, rows)] if offsets[-1] >= rows else offsets
        is_large = len(offsets) > SCAN_FROM * rows and not are_runs(offsets)
        if is_large or (known.rest is not None and len(offsets) > rows / 2):
            return Known(None, known.rest)
        return Known(offsets, known.rest)

    def named(
        self, plan_of: Callable[[Expression | None], ScanPlan], parts: Iterable[Part] | None = None
    ) -> Named:
        """Return the rows to read by the plans of what is left of the predicate."""
        return Named(self.parts if parts is None else parts, plan_of)

    def count(self) -> tuple[int, tuple[Part, ...]]:
        """Return the number of live rows in exact answers, and the parts that are left to count."""
        exact = self._answer.exact()
        if exact is None:
            return 0, self.parts
        rows, fragments = exact
        readers = self._readers
        named = [readers.positions[id_] for id_ in fragments]
        for position in readers.with_deletions(named):
            deletions = readers[position].opened.deletions
            if deletions is not None:
                first = np.uint64(readers.source.manifest.fragments[position].id << OFFSET_BITS)
                rows -= RowSet.from_addresses(deletions.offsets.astype(np.uint64) + first)
        left = len(fragments) < len(readers)
        return len(rows), tuple(
            part for part in (self.parts if left else ()) if part.position not in set(named)
        )

    def describe(self) -> list[str]:
        """Return a line for each part of the predicate that indices answered."""
        lines = []
        for leaf in self._answer.leaves:
            for rows, fragments in leaf.found:
                exact = "" if rows.is_exact else "at most "
                lines.append(
                    f"index {', '.join(leaf.names)} on {to_sql(leaf.part)}: {exact}{len(rows)} "
                    f"rows in {len(fragments)} fragments"
                )
        scanned = sum(part.known.offsets is None for part in self.parts)
        lines.append(f"fragments read by row: {len(self.parts) - scanned}, scanned: {scanned}")
        rests = {
            to_sql(part.known.rest)
            for part in self.parts
            if part.known.offsets is not None and part.known.rest is not None
        }
        if scanned < len(self.parts):
            lines.append(f"rows are compared again with: {' or '.join(sorted(rests)) or 'nothing'}")
        return lines


def narrow(readers: Readers, where: Expression) -> Narrowing | None:
    """Ask the indices of a version about a bound predicate; None when none answers a part of it."""
    source = readers.source
    if not isinstance(source, Snapshot) or source.manifest.index_section is None:
        return None
    try:
        segments = source.indices()
        asked = _Asked(source, readers, segments, load_reuse(source, segments))
    except _FAULTS as fault:
        _log.warning("indices are not used: %s", fault)
        return None
    answer = asked.answer(where)
    return None if answer is None else Narrowing(answer, readers)


def _physical_rows(readers: Readers, position: int) -> int:
    known = readers.source.manifest.fragments[position].physical_rows
    return known or readers[position].opened.rows


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
            answers = tuple(self._grouped(part))
            return Both(part, answers) if answers else None
        if isinstance(part, Or):
            each = [self.answer(one) for one in part.operands]
            found = tuple(one for one in each if one is not None)
            return Either(part, found) if len(found) == len(each) else None
        return None

    def _grouped(self, part: And) -> Iterator[tuple[Answer, tuple[int, ...]]]:
        """Yield answers to operands, those on one column together: they may make a range."""
        groups: dict[object, list[int]] = {}
        for number, one in enumerate(part.operands):
            paths = columns(one)
            key = next(iter(paths)) if len(paths) == 1 else number
            groups.setdefault(key, []).append(number)
        if len(groups) == 1:
            groups = {number: [number] for number in range(len(part.operands))}
        for numbers in groups.values():
            operands = tuple(part.operands[number] for number in numbers)
            answer = self.answer(operands[0] if len(operands) == 1 else And(operands))
            if answer is not None:
                yield answer, tuple(numbers)

    def _leaf(self, part: Expression) -> Leaf | None:
        paths = columns(part)
        if len(paths) != 1 or any(isinstance(node, Opaque) for node in walk(part)):
            return None
        field = _field(self.snapshot.manifest.schema, next(iter(paths)))
        if field is None:
            return None
        wanted = in_terms_of_values(part)
        names: dict[str, None] = {}
        found: dict[bool, Rows] = {}
        known: frozenset[int] = frozenset()
        for segment in self._segments(field):
            rows = self._search(segment, wanted, known)
            if rows is not None:
                names[segment.name] = None
                is_exact = rows.rows.is_exact
                before = found.get(is_exact)
                found[is_exact] = rows if before is None else _together(before, rows)
                known |= rows.fragments
        if not found:
            return None
        return Leaf(part, tuple(names), tuple(found[one] for one in (True, False) if one in found))

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
        return named.intersection(self.readers.positions)

    def _search(
        self, segment: IndexSegment, part: Expression, known: frozenset[int]
    ) -> Rows | None:
        """Return the rows that a segment finds in fragments that are not known yet."""
        try:
            described = self._covered(segment) - known
            if not described:
                return None
            store, folder = self.snapshot.index_place(segment)
            index: ScalarIndex = SEGMENTS.open(store, folder, segment)
            fragments = index.covered(described)
            if not fragments:
                return None
            rows = index.search(part)
            if rows is None:
                rows = self._others(segment, index, part, fragments)
            else:
                rows = self._current(segment, rows)
            return None if rows is None else Rows(rows.within(fragments), fragments)
        except _FAULTS as fault:
            _log.warning("index %s is not used: %s", segment.name, fault)
        except ExpressionError as error:
            # A value that only deleted rows have may be the reason: the scan decides.
            _log.debug("index %s is not used: %s", segment.name, error)
        return None

    def _others(
        self, segment: IndexSegment, index: ScalarIndex, part: Expression, fragments: frozenset[int]
    ) -> RowSet | None:
        """Return all rows but those with nulls and those for which the opposite is true."""
        opposite = _opposite(part)
        found = None if opposite is None else index.search(opposite)
        if found is None or not found.is_exact:
            return None
        rows = self._current(segment, found)
        if not isinstance(opposite, IsNull):
            nulls = index.search(_NULL)
            if nulls is None or not nulls.is_exact:
                return None
            rows = rows | self._current(segment, nulls)
        readers = self.readers
        sizes = {id_: _physical_rows(readers, readers.positions[id_]) for id_ in fragments}
        return rows.complement(sizes)

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


def _together(one: Rows, other: Rows) -> Rows:
    return Rows(one.rows | other.rows, one.fragments | other.fragments)


def _opposite(part: Expression) -> Expression | None:
    """Return what is false where a part is true, and unknown where the part is: for nulls.

    None when that is not known.
    """
    match part:
        case Compare(Comparison.NE, Column() as column, Literal(scalar) as value) if (
            scalar.is_valid
        ):
            return Compare(Comparison.EQ, column, value)
        case In(Column(), _, True, values) if values is not None and not values.null_count:
            return replace(part, negated=False)
        case IsNull(Column(), True):
            return replace(part, negated=False)
        case Not(Call(name, (Column(), Literal(scalar))) as call) if name in LIST_TESTS:
            return call if scalar.is_valid else None
        case _:
            return None


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
