"""Decide which clause of a merge acts on each row.

Rows of a fragment come with the rows of the source they match, or with none. The answer names a
clause for each row by its number; rows on which none acts are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.expression import evaluate_mask
from lancetable.format.arrays import Mask, Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.rows import row_address
from lancetable.format.schema.model import Schema
from lancetable.fragment.readers import Readers
from lancetable.operations.keys.join import KeyIndex, Pairs, join_part
from lancetable.operations.keys.spill import RowBuffer
from lancetable.operations.merge.clauses import SOURCE, TARGET, Act, BoundClause, Sides, When
from lancetable.operations.rows.parts import RowSet, cut_offsets, read_rows
from lancetable.operations.run.memory import collector_paused
from lancetable.scan.plan import ScanPlan, plan
from lancetable.scan.request import ScanRequest

Actions = npt.NDArray[np.int16]
Numbered = Sequence[tuple[int, BoundClause]]
"""Clauses of one kind with their numbers."""

NO_ROW = -1
NOTHING = -1
_INSERTED_AT_A_TIME = 64 * 1024


class Decided(NamedTuple):
    """Rows of one fragment, the rows of the source that belong to them, and what is done."""

    fragment: Fragment
    offsets: Offsets
    rows: Offsets
    actions: Actions

    def where(self, chosen: Mask) -> "Decided":
        """Return some of the rows."""
        return Decided(self.fragment, self.offsets[chosen], self.rows[chosen], self.actions[chosen])


class Matched(NamedTuple):
    """Decisions about a part of the table."""

    decided: tuple[Decided, ...]
    offsets: Mapping[int, Offsets]
    """By fragment: the rows that match a row of the source."""
    rows: Offsets
    """The rows of the source that match."""
    ambiguous: Offsets
    """Rows of the source that match a row which another one matches too."""


@dataclass(frozen=True, slots=True)
class MatchTask:
    """A part of a table, the keys that are looked for in it, and the clauses for matched rows."""

    part: Snapshot
    on: tuple[str, ...]
    index: KeyIndex
    clauses: tuple[BoundClause, ...]
    kept: RowBuffer
    """The columns of the source that conditions read."""
    named: Mapping[int, RowSet]
    """By fragment: the rows that indices name; fragments that are left out are scanned."""


@dataclass(frozen=True, slots=True)
class RestTask:
    """A part of a table of which some rows match the source; the others are decided about."""

    part: Snapshot
    matched: Mapping[int, RowSet]
    clauses: tuple[BoundClause, ...]


def numbered(clauses: Sequence[BoundClause], when: When) -> Numbered:
    """Return the clauses of one kind with their numbers."""
    return [(at, one) for at, one in enumerate(clauses) if one.when is when]


def match_part(task: MatchTask) -> Matched:
    """Find the rows of a part that have a key of the source, and decide about them."""
    with collector_paused(len(task.part.manifest.fragments)):
        readers = Readers(task.part)
        found = join_part(readers, task.on, task.index, task.named)
        return decide_pairs(readers, found, task.clauses, task.kept)


def decide_pairs(
    readers: Readers,
    found: Iterable[tuple[int, Pairs]],
    all_clauses: Sequence[BoundClause],
    kept: RowBuffer,
) -> Matched:
    """Decide about rows of a part, by the positions of their fragments."""
    clauses = numbered(all_clauses, When.MATCHED)
    decided: list[Decided] = []
    offsets: dict[int, Offsets] = {}
    rows: list[Offsets] = []
    ambiguous: list[Offsets] = []
    for position, pairs in found:
        fragment = readers.source.manifest.fragments[position]
        again = np.flatnonzero(pairs.offsets[1:] == pairs.offsets[:-1])
        rows.append(pairs.rows)
        if len(again):
            ambiguous.append(pairs.rows[again])
        offsets[fragment.id] = np.unique(pairs.offsets) if len(again) else pairs.offsets
        if clauses and not ambiguous:
            decided += _decided(readers, position, (pairs.offsets, pairs.rows), clauses, kept)
        readers[position].opened.release()
    return Matched(tuple(decided), offsets, _concatenated(rows), _concatenated(ambiguous))


def _concatenated(arrays: list[Offsets]) -> Offsets:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def decide_rest(task: RestTask) -> list[Decided]:
    """Decide about the rows of a part that no row of the source matches."""
    clauses = numbered(task.clauses, When.NOT_MATCHED_BY_SOURCE)
    readers = Readers(task.part)
    nothing = RowBuffer(pa.schema([]), [])
    decided: list[Decided] = []
    for position, fragment in enumerate(task.part.manifest.fragments):
        rest = readers[position].live_offsets(0, readers[position].opened.rows)
        if fragment.id in task.matched:
            matched = task.matched[fragment.id].offsets()
            rest = np.setdiff1d(rest, matched, assume_unique=True)
        none = np.full(len(rest), NO_ROW)
        decided += _decided(readers, position, (rest, none), clauses, nothing)
        readers[position].opened.release()
    return decided


def _decided(
    readers: Readers,
    position: int,
    pairs: tuple[Offsets, Offsets],
    clauses: Numbered,
    kept: RowBuffer,
) -> Iterator[Decided]:
    """Yield the rows of a fragment on which a clause acts, if there are any."""
    fragment = readers.source.manifest.fragments[position]
    all_rows = Decided(fragment, *pairs, _actions(readers, position, pairs, clauses, kept))
    _refuse_matches(all_rows, clauses)
    chosen = all_rows.actions != NOTHING
    if chosen.all():
        if len(chosen):
            yield all_rows
    elif chosen.any():
        yield all_rows.where(chosen)


def _refuse_matches(decided: Decided, clauses: Numbered) -> None:
    """Check that no clause acts which is there to fail."""
    failing = [number for number, clause in clauses if clause.act is Act.FAIL]
    if not failing:
        return
    found = np.flatnonzero(np.isin(decided.actions, failing))
    if len(found):
        address = row_address(decided.fragment.id, int(decided.offsets[found[0]]))
        raise InputError(
            f"{len(found)} rows of fragment {decided.fragment.id} match the source, which "
            f"when_matched_fail() forbids; see take(row_addresses=[{address}]) for the first"
        )


def _actions(
    readers: Readers,
    position: int,
    pairs: tuple[Offsets, Offsets],
    clauses: Numbered,
    kept: RowBuffer,
) -> Actions:
    offsets, rows = pairs
    if clauses[0][1].condition is None:
        return np.full(len(offsets), clauses[0][0], np.int16)
    sides = condition_sides(clauses)
    read = TargetColumns(readers.source.manifest.schema, sides.target)
    actions = []
    start = 0
    for run in read.runs(readers, offsets):
        of_source = rows[start : start + len(run)]
        start += len(run)
        batch = read.joined(readers, position, run, kept, of_source, sides.source)
        actions.append(choose(clauses, batch))
    return np.concatenate(actions) if actions else np.empty(0, np.int16)


def choose(clauses: Numbered, batch: pa.RecordBatch) -> Actions:
    """Return for each row the number of the first clause whose condition holds."""
    actions = np.full(batch.num_rows, NOTHING, np.int16)
    for number, clause in clauses:
        is_open = actions == NOTHING
        if clause.condition is not None:
            is_open &= evaluate_mask(clause.condition, batch)
        actions[is_open] = number
    return actions


def condition_sides(clauses: Numbered) -> Sides:
    """Return the columns that conditions read together; none when the first always holds."""
    if not clauses or clauses[0][1].condition is None:
        return Sides((), ())
    all_sides = [clause.condition_sides() for _, clause in clauses]
    return Sides(
        tuple(dict.fromkeys(name for sides in all_sides for name in sides.target)),
        tuple(dict.fromkeys(name for sides in all_sides for name in sides.source)),
    )


class TargetColumns:
    """Some columns of the table, to be read for rows of its fragments."""

    def __init__(self, schema: Schema, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._plan: ScanPlan = plan(schema, ScanRequest(self._names, blobs="bytes"))

    def runs(self, readers: Readers, offsets: Offsets) -> Iterator[Offsets]:
        """Cut rows into runs of bounded size."""
        return cut_offsets(self._plan, readers, offsets)

    def joined(
        self,
        readers: Readers,
        position: int,
        offsets: Offsets,
        kept: RowBuffer,
        rows: Offsets,
        source: Sequence[str],
    ) -> pa.RecordBatch:
        """Return rows of a fragment beside rows of the source, columns named by their side."""
        names = [f"{TARGET}.{name}" for name in self._names]
        arrays = []
        if names:
            piece = read_rows(self._plan, readers[position], offsets)
            arrays = [
                chunks[0] if len(chunks) == 1 else _combined(chunks) for chunks in piece.columns
            ]
        if source:
            arrays += kept.take(rows, source).columns
            names += [f"{SOURCE}.{name}" for name in source]
        if not names:
            arrays, names = [pa.nulls(len(offsets))], [""]
        return pa.RecordBatch.from_arrays(arrays, names)


def _combined(chunks: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(chunks)


def decide_inserts(
    clauses: Sequence[BoundClause], kept: RowBuffer, rows: Offsets
) -> tuple[Offsets, Actions]:
    """Return which of the rows of a source that match nothing are inserted, and by which clause."""
    own = numbered(clauses, When.NOT_MATCHED)
    if not own or not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.int16)
    if own[0][1].condition is None:
        return rows, np.full(len(rows), own[0][0], np.int16)
    names = condition_sides(own).source
    actions = []
    for first in range(0, len(rows), _INSERTED_AT_A_TIME):
        batch = source_batch(kept, rows[first : first + _INSERTED_AT_A_TIME], names)
        actions.append(choose(own, batch))
    found = np.concatenate(actions)
    return rows[found != NOTHING], found[found != NOTHING]


def source_batch(kept: RowBuffer, rows: Offsets, names: Sequence[str]) -> pa.RecordBatch:
    """Return rows of the source with their columns named by their side."""
    if not names:
        return pa.RecordBatch.from_arrays([pa.nulls(len(rows))], [""])
    batch = kept.take(rows, names)
    return pa.RecordBatch.from_arrays(batch.columns, [f"{SOURCE}.{name}" for name in names])
