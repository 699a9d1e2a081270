"""Ask the indices of a version which rows match a predicate, or may match it.

A segment that cannot be used is passed over, and so is one whose files are damaged, missing or in a
place that is not allowed.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import (
    CorruptError,
    ExpressionError,
    FileNotFoundInStoreError,
    InputError,
    LimitError,
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
    walk,
)
from lancetable.format.limits import read_limits
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import holds_row_ids, kind_of
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.rows import RowSet
from lancetable.format.schema.model import Field, Schema
from lancetable.fragment.readers import Readers
from lancetable.index.base import VALUE, ScalarIndex, in_terms_of_values
from lancetable.index.registry import SCALAR, SEGMENTS, unusable
from lancetable.index.scalar.bitmap import LIST_TESTS
from lancetable.scan.answers import Answer, Both, Either, Leaf, Rows

FAULTS = (CorruptError, FileNotFoundInStoreError, LimitError, UnsupportedError)
_NULL = IsNull(Column((VALUE,)))
_ROW_BYTES = 8
_log = logging.getLogger("lancetable.scan")


class Usable(NamedTuple):
    """A segment that can be asked, and what it describes."""

    segment: IndexSegment
    fragments: frozenset[int]
    is_zoned: bool
    holds_ids: bool
    """Whether its rows are row ids instead of addresses."""


@dataclass(frozen=True, slots=True)
class Indices:
    """The indices of one version."""

    snapshot: Snapshot
    readers: Readers
    reuse: FragmentReuse | None
    by_field: Mapping[int, Sequence[Usable]]
    """The segments that can be asked, those of exact kinds first."""
    unused: dict[int, dict[str, str]]
    """Why other indices are passed over, by field and name; those whose files were found damaged
    join them."""

    @classmethod
    def of(cls, snapshot: Snapshot, readers: Readers) -> Self:
        """Sort the segments of a version by their columns.

        Raises:
            CorruptError: the index section or the record of moved rows is damaged.
            UnsupportedError: a later release wrote the record of moved rows.
        """
        segments = snapshot.indices()
        reuse = load_reuse(snapshot, segments)
        by_field: dict[int, list[Usable]] = {}
        unused: dict[int, dict[str, str]] = {}
        for segment in segments:
            if kind_of(segment).name not in SCALAR:
                continue
            reason = unusable(segment)
            if reason is None and kind_of(segment).name not in SCALAR:
                continue
            if reason is None:
                fragments = _described(segment, reuse).intersection(readers.positions)
                holds_ids = readers.row_id_index is not None and holds_row_ids(segment)
                one = Usable(segment, fragments, kind_of(segment).is_zoned, holds_ids)
                by_field.setdefault(segment.fields[0], []).append(one)
            else:
                _log.debug("index %s is not used: %s", segment.name, reason)
                if segment.fields:
                    unused.setdefault(segment.fields[0], {})[segment.name] = reason
        order = list(SCALAR)
        for each in by_field.values():
            each.sort(key=lambda one: order.index(kind_of(one.segment).name))
        return cls(snapshot, readers, reuse, by_field, unused)

    def passed_over(self, where: Expression) -> list[str]:
        """Return a line for each index on a column of a predicate that is not used, and why."""
        fields = (_field(self.snapshot.manifest.schema, path) for path in columns(where))
        return [
            f"not used: {name}, {reason}"
            for field in fields
            if field is not None
            for name, reason in self.unused.get(field.id, {}).items()
        ]

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
            paths = _paths(one)
            key = paths.pop() if len(paths) == 1 else number
            groups.setdefault(key, []).append(number)
        if len(groups) == 1:
            groups = {number: [number] for number in range(len(part.operands))}
        for numbers in groups.values():
            operands = tuple(part.operands[number] for number in numbers)
            answer = self.answer(operands[0] if len(operands) == 1 else And(operands))
            if answer is not None:
                yield answer, tuple(numbers)

    def _leaf(self, part: Expression) -> Leaf | None:
        paths = _paths(part)
        field = _field(self.snapshot.manifest.schema, paths.pop()) if len(paths) == 1 else None
        if field is None:
            return None
        usable = self.by_field.get(field.id)
        if usable is None:
            return None
        wanted = in_terms_of_values(part)
        names: dict[str, None] = {}
        found: dict[bool, Rows] = {}
        known: frozenset[int] = frozenset()
        for one in usable:
            rows = self._search(one, wanted, known)
            if rows is not None:
                names[one.segment.name] = None
                is_exact = rows.rows.is_exact
                before = found.get(is_exact)
                found[is_exact] = rows if before is None else _together(before, rows)
                known |= rows.fragments
        if not found:
            return None
        return Leaf(part, tuple(names), tuple(found[one] for one in (True, False) if one in found))

    def _search(self, one: Usable, part: Expression, known: frozenset[int]) -> Rows | None:
        """Return the rows that a segment finds in fragments that are not known yet."""
        segment = one.segment
        described = one.fragments - known if known else one.fragments
        if not described:
            return None
        try:
            store, folder = self.snapshot.index_place(segment)
            index: ScalarIndex = SEGMENTS.open(store, folder, segment)
            fragments = index.covered(described)
            if not fragments:
                return None
            rows = index.search(part)
            if rows is None:
                rows = self._others(one, index, part, fragments)
            else:
                read_limits().check_page(_ROW_BYTES * len(rows), len(rows))
                rows = self._current(one, rows)
            return None if rows is None else Rows(rows.within(fragments), fragments)
        except ExpressionError as error:
            # A value that only deleted rows have may be the reason: the scan decides.
            _log.debug("index %s is not used: %s", segment.name, error)
        except (*FAULTS, InputError) as fault:
            is_old = isinstance(fault, UnsupportedError)
            level = logging.DEBUG if is_old else logging.WARNING
            _log.log(level, "index %s is not used: %s", segment.name, fault)
            self.unused.setdefault(segment.fields[0], {})[segment.name] = str(fault)
        return None

    def _others(
        self, one: Usable, index: ScalarIndex, part: Expression, fragments: frozenset[int]
    ) -> RowSet | None:
        """Return all rows but those with nulls and those for which the opposite is true."""
        opposite = _opposite(part)
        found = None if opposite is None else index.search(opposite)
        if found is None or not found.is_exact:
            return None
        rows = self._current(one, found)
        if not isinstance(opposite, IsNull):
            nulls = index.search(_NULL)
            if nulls is None or not nulls.is_exact:
                return None
            rows = rows | self._current(one, nulls)
        readers = self.readers
        sizes = {id_: physical_rows(readers, readers.positions[id_]) for id_ in fragments}
        return rows.complement(sizes)

    def _current(self, one: Usable, rows: RowSet) -> RowSet:
        """Return the addresses that rows of a segment have in this version."""
        ids = self.readers.row_id_index
        if one.holds_ids and ids is not None:
            addresses, is_live = ids.find(rows.addresses())
            return RowSet.from_addresses(addresses[is_live], is_exact=rows.is_exact)
        if self.reuse is None or one.is_zoned:
            return rows
        addresses, is_kept = self.reuse.translate(rows.addresses())
        return RowSet.from_addresses(addresses[is_kept], is_exact=rows.is_exact)


def _described(segment: IndexSegment, reuse: FragmentReuse | None) -> frozenset[int]:
    """Return the fragments that a segment describes, those that moved rows are in now included."""
    named = segment.fragment_ids or frozenset()
    return named if reuse is None or kind_of(segment).is_zoned else reuse.covered(named)


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


def _paths(part: Expression) -> set[tuple[str, ...]]:
    """Return the columns that a part reads; none when Arrow evaluates some of it."""
    nodes = walk(part)
    if any(isinstance(node, Opaque) for node in nodes):
        return set()
    return {node.path for node in nodes if isinstance(node, Column)}


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


def physical_rows(readers: Readers, position: int) -> int:
    """Return the number of rows of a fragment, deleted ones included."""
    known = readers.source.manifest.fragments[position].physical_rows
    return known or readers[position].opened.rows
