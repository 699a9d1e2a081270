"""Compare what an index segment answers with the rows that it covers.

1. Read values of the column: some at random, or all distinct ones.
2. Ask the segment for the rows with these values, and for those without a value.
3. Read the column again, and find out which rows should have been named.

A segment must name all of them. It may name others only where its kind narrows instead of deciding.
What it does not answer is not compared: values of very many rows, and those in JSON documents.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError
from lancetable.expression import Call, Column, Expression, In, IsNull, bind_predicate, to_sql
from lancetable.expression.tree import Literals, literal
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import kind_of
from lancetable.format.schema.project import resolve
from lancetable.format.schema.types import without_extensions
from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.fragment.readers import Readers
from lancetable.index.base import in_terms_of_values, matching
from lancetable.index.registry import SEGMENTS, unusable
from lancetable.operations.index.segments import column_of
from lancetable.operations.rows.parts import part_of
from lancetable.scan.answers import Rows
from lancetable.scan.ask_indices import Indices
from lancetable.scan.columns import binding_schema
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.scanner import Scan

SAMPLE = 64
"""How many values of each segment a sample has."""
CHUNK = 4096
"""How many values are asked for at once when all are."""
FEW = 8
"""How many values are asked for one by one, by kinds that take one text or geometry."""

Questions = Callable[[Column, pa.Array], Iterator[Expression]]


@dataclass(frozen=True, slots=True)
class _Segment:
    """One segment, and the part of the version that it covers."""

    part: Snapshot
    segment: IndexSegment
    column: str
    indices: Indices

    def answer(self, question: Expression) -> tuple[Rows, ...] | None:
        """Return the rows that it names; None when it does not answer the question."""
        schema = binding_schema(self.part.manifest.schema)
        found = self.indices.answer(bind_predicate(question, schema))
        return None if found is None else tuple(rows for one in found.leaves for rows in one.found)

    def batches(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield the values of the column with the addresses of their rows."""
        request = ScanRequest(columns=(self.column, ROW_ADDRESS))
        scan = Scan(Readers(self.part), request, ScanOptions(lease_seconds=0))
        for batch in scan.to_batches():
            yield without_extensions(batch.column(0)), batch.column(1)


def check_segment_rows(snapshot: Snapshot, segment: IndexSegment, *, is_whole: bool) -> None:
    """Compare what a segment of a version answers with the rows that it covers.

    Raises:
        CorruptError: it is damaged, misses rows, or names rows of other values.
    """
    ask = _QUESTIONS.get(kind_of(segment).name)
    if ask is None or unusable(segment, snapshot.manifest.schema) is not None:
        return
    SEGMENTS.open(*snapshot.index_place(segment), segment)
    opened = _opened(snapshot, segment)
    if opened is None:
        return
    path = Column(tuple(field.name for field in resolve(snapshot.manifest.schema, opened.column)))
    values = _values(opened, is_whole=is_whole)
    for first in range(0, len(values), CHUNK):
        for question in ask(path, values.slice(first, CHUNK)):
            _compare(opened, question)
    if kind_of(segment).name in _WITH_NULLS:
        _compare(opened, IsNull(path))


def _opened(snapshot: Snapshot, segment: IndexSegment) -> _Segment | None:
    """Return a segment that covers something and that predicates are answered with."""
    whole = _alone(snapshot, segment)
    covered = frozenset[int]().union(*(one.fragments for one in whole.by_field[segment.fields[0]]))
    if not covered:
        return None
    fragments = (one for one in snapshot.manifest.fragments if one.id in covered)
    part = part_of(snapshot, fragments)
    return _Segment(part, segment, column_of(snapshot, segment), _alone(part, segment))


def _alone(snapshot: Snapshot, segment: IndexSegment) -> Indices:
    """Return the indices of a version without all other segments."""
    found, field = Indices.of(snapshot, Readers(snapshot)), segment.fields[0]
    same = [one for one in found.by_field.get(field, ()) if one.segment.uuid == segment.uuid]
    return replace(found, by_field={field: same})


def _values(opened: _Segment, *, is_whole: bool) -> pa.Array:
    """Return values of the column, without nulls: all that are distinct, or some of them."""
    draw, kept = random.Random(opened.segment.uuid), []  # noqa: S311 - no secret
    for values, _ in opened.batches():
        there = values.drop_null()
        if not is_whole and len(there) > SAMPLE:
            there = there.take(sorted(draw.sample(range(len(there)), SAMPLE)))
        kept.append(there)
    if not kept:
        return pa.array([], pa.null())
    joined = pa.concat_arrays(kept)
    if is_whole:
        return _distinct(joined)
    places = sorted(draw.sample(range(len(joined)), min(len(joined), SAMPLE)))
    return _distinct(joined.take(places))


def _distinct(values: pa.Array) -> pa.Array:
    """Return distinct values, in order where they have one, so that neighbours are asked for."""
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        values = values.flatten().drop_null()
    try:
        values = values.unique()
        return values.take(pc.array_sort_indices(values))
    except pa.ArrowNotImplementedError:
        return values


def _compare(opened: _Segment, question: Expression) -> None:
    found = opened.answer(question)
    if found is None:
        for part in _halves(question):
            _compare(opened, part)
        return
    schema = binding_schema(opened.part.manifest.schema)
    wanted = in_terms_of_values(bind_predicate(question, schema))
    named = np.concatenate([one.rows.addresses() for one in found])
    is_exact = all(one.rows.is_exact for one in found)
    for values, rows in opened.batches():
        addresses = np.asarray(rows)
        should = matching(wanted, values)
        does = np.isin(addresses, named, assume_unique=True)
        missed, extra = should & ~does, ~should & does
        wrong = missed if missed.any() or not is_exact else extra
        if wrong.any():
            what = "misses" if missed.any() else "wrongly names"
            raise CorruptError(
                f"it {what} {np.count_nonzero(wrong)} rows for {_shown(question)}, such as the row "
                f"at address {addresses[wrong][0]}"
            )


def _halves(question: Expression) -> Iterator[Expression]:
    """Yield a question that was not answered in two parts; it may concern too many pages."""
    if isinstance(question, In) and isinstance(question.items, Literals):
        values = question.items.array
        middle = len(values) // 2
        for part in (values[:middle], values[middle:]) if middle else ():
            yield replace(question, items=Literals(part))


def _shown(question: Expression) -> str:
    text = to_sql(question)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _equal(column: Column, values: pa.Array) -> Iterator[Expression]:
    if len(values):
        yield In(column, Literals(values))


def _labels(column: Column, values: pa.Array) -> Iterator[Expression]:
    for value in values[:SAMPLE]:
        yield Call("array_has", (column, literal(value.as_py(), values.type)))


def _texts(column: Column, values: pa.Array) -> Iterator[Expression]:
    for value in values[:FEW]:
        if len(value.as_py()) >= 3:
            yield Call("contains", (column, literal(value.as_py()[:20])))


def _geometries(column: Column, values: pa.Array) -> Iterator[Expression]:
    for value in values[:FEW] if find_spec("shapely") else ():
        yield Call("st_intersects", (column, literal(value.as_py(), values.type)))


_QUESTIONS: Mapping[str, Questions] = {
    "btree": _equal,
    "bitmap": _equal,
    "zonemap": _equal,
    "bloomfilter": _equal,
    "labellist": _labels,
    "ngram": _texts,
    "rtree": _geometries,
}
"""What is asked, by the kind of index."""
_WITH_NULLS = frozenset({"btree", "bitmap", "zonemap", "bloomfilter", "rtree"})
"""Kinds that know the rows without a value."""
