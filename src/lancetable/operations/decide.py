"""Which clause of a merge acts on which row.

Rows of a fragment come with the rows of the source they match, or with none. The answer names a
clause for each row by its number, -1 for rows that stay as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.expression import evaluate_mask
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.readers import Readers
from lancetable.operations.clauses import SOURCE, TARGET, BoundClause, Sides, When
from lancetable.operations.kept import Kept
from lancetable.operations.parts import Offsets, cut_offsets, read_rows
from lancetable.scan.plan import ScanPlan, plan
from lancetable.scan.request import ScanRequest

Actions = npt.NDArray[np.int16]

NO_ROW = -1
NOTHING = -1


class Decided(NamedTuple):
    """Rows of one fragment, the rows of the source that belong to them, and what is done."""

    fragment: Fragment
    offsets: Offsets
    rows: Offsets
    actions: Actions


@dataclass(frozen=True, slots=True)
class DecideTask:
    """A part of a table, its matched rows, and the clauses of a merge."""

    part: Snapshot
    matches: "dict[int, tuple[Offsets, Offsets]]"
    """By fragment: offsets, ascending, and rows of the source."""
    clauses: tuple[BoundClause, ...]
    kept: Kept

    def of(self, when: When) -> list[tuple[int, BoundClause]]:
        """Return the clauses of one kind with their numbers."""
        return [(at, one) for at, one in enumerate(self.clauses) if one.when is when]


def decide_part(task: DecideTask) -> list[Decided]:
    """Decide about the rows of a part: matched ones, and where clauses ask for it all others."""
    readers = Readers(task.part)
    matched, others = task.of(When.MATCHED), task.of(When.NOT_MATCHED_BY_SOURCE)
    decided = []
    for position, fragment in enumerate(task.part.manifest.fragments):
        none = np.empty(0, np.int64)
        offsets, rows = task.matches.get(fragment.id, (none, none))
        groups = []
        if matched and len(offsets):
            groups.append((offsets, rows, matched))
        if others:
            live = readers[position].live_offsets(0, readers[position].opened.rows)
            rest = np.setdiff1d(live, offsets, assume_unique=True)
            groups.append((rest, np.full(len(rest), NO_ROW), others))
        for some, of_source, clauses in groups:
            actions = _decide(task, readers, position, (some, of_source), clauses)
            chosen = actions != NOTHING
            if chosen.any():
                decided.append(Decided(fragment, some[chosen], of_source[chosen], actions[chosen]))
    return decided


def _decide(
    task: DecideTask,
    readers: Readers,
    position: int,
    pairs: tuple[Offsets, Offsets],
    clauses: Sequence[tuple[int, BoundClause]],
) -> Actions:
    offsets, rows = pairs
    if clauses[0][1].condition is None:
        return np.full(len(offsets), clauses[0][0], np.int16)
    sides = joined_sides([clause.condition_sides() for _, clause in clauses])
    read = TargetColumns(task.part.manifest.schema, sides.target)
    actions = []
    start = 0
    for run in read.runs(readers, offsets):
        of_source = rows[start : start + len(run)]
        start += len(run)
        batch = read.joined(readers, position, run, task.kept, of_source, sides.source)
        actions.append(choose(clauses, batch))
    return np.concatenate(actions) if actions else np.empty(0, np.int16)


def choose(clauses: Sequence[tuple[int, BoundClause]], batch: pa.RecordBatch) -> Actions:
    """Return for each row the number of the first clause whose condition holds."""
    actions = np.full(batch.num_rows, NOTHING, np.int16)
    for number, clause in clauses:
        is_open = actions == NOTHING
        if clause.condition is not None:
            is_open &= evaluate_mask(clause.condition, batch)
        actions[is_open] = number
    return actions


def joined_sides(all_sides: Sequence[Sides]) -> Sides:
    """Return the columns that several expressions read together."""
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
        kept: Kept,
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
    clauses: tuple[BoundClause, ...], kept: Kept, rows: Offsets
) -> tuple[Offsets, Actions]:
    """Return which of the rows of a source that match nothing are inserted, and by which clause."""
    own = [(at, one) for at, one in enumerate(clauses) if one.when is When.NOT_MATCHED]
    if not own or not len(rows):
        return np.empty(0, np.int64), np.empty(0, np.int16)
    if own[0][1].condition is None:
        return rows, np.full(len(rows), own[0][0], np.int16)
    names = joined_sides([clause.condition_sides() for _, clause in own]).source
    actions = []
    step = 64 * 1024
    for first in range(0, len(rows), step):
        batch = source_batch(kept, rows[first : first + step], names)
        actions.append(choose(own, batch))
    found = np.concatenate(actions)
    return rows[found != NOTHING], found[found != NOTHING]


def source_batch(kept: Kept, rows: Offsets, names: Sequence[str]) -> pa.RecordBatch:
    """Return rows of the source with their columns named by their side."""
    if not names:
        return pa.RecordBatch.from_arrays([pa.nulls(len(rows))], [""])
    batch = kept.take(rows, names)
    return pa.RecordBatch.from_arrays(batch.columns, [f"{SOURCE}.{name}" for name in names])
