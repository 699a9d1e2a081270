"""Match the rows of a part of the source, decide about them and write them.

A source that fits into memory is one part. A larger one is several, and each finds its rows by a
look at all keys of the table; parts never share a key, so each is complete in itself. What stays in
memory from part to part is small: which rows of the table change, and a filter of inserted keys.

Changed rows are written first, then inserted ones. Rows of one fragment on which one clause acts
are written together. Columns that come from the source are not read from the table.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.format.arrays import Offsets
from lancetable.format.encoding.kernels.xxhash import Hashes
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.readers import Readers
from lancetable.fragment.write.writer import WriteOptions, remove_fragments
from lancetable.operations.input.fit import write_type
from lancetable.operations.keys.join import SourceKeys
from lancetable.operations.keys.keys import InsertedKeys
from lancetable.operations.keys.spill import ROW_BYTES, RowBuffer
from lancetable.operations.merge.clauses import SOURCE, TARGET, Act, BoundClause, When
from lancetable.operations.merge.decide import (
    Actions,
    Decided,
    Matched,
    MatchTask,
    RestTask,
    TargetColumns,
    condition_sides,
    decide_inserts,
    decide_rest,
    match_part,
    numbered,
    source_batch,
)
from lancetable.operations.rows.find_rows import named_rows, of_part
from lancetable.operations.rows.move_rows import (
    Lineage,
    has_stable_row_ids,
    target_of,
    write_labelled,
)
from lancetable.operations.rows.parts import RowSet, part_of, parts, suited
from lancetable.operations.run.memory import give_back
from lancetable.operations.run.runner import Runner, run_steps

_PARTS_AT_A_TIME = 8


ROWS_PER_TASK = 256 * 1024


_INSERTED_AT_A_TIME = 64 * 1024


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Rows to be written: changed ones by fragment, and rows of the source to insert."""

    part: Snapshot
    schema: Schema
    moved: tuple[Decided, ...]
    inserted: Offsets
    inserted_by: Actions
    clauses: tuple[BoundClause, ...]
    kept: RowBuffer
    options: WriteOptions


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Values that all parts of a source share."""

    snapshot: Snapshot
    schema: Schema
    """Of the table after the merge."""
    on: tuple[str, ...]
    keys: SourceKeys
    clauses: tuple[BoundClause, ...]
    write: WriteOptions
    runner: Runner
    memory_limit: int
    allows_duplicates: bool

    @property
    def rows_at_a_time(self) -> int:
        """About how many rows are decided about before they are written."""
        return max(self.memory_limit // ROW_BYTES, ROWS_PER_TASK)

    def has(self, when: When) -> bool:
        """Say whether there is a clause for rows of a kind."""
        return bool(numbered(self.clauses, when))


class PartDone(NamedTuple):
    """Result of one part of the source, a small value that can be sent."""

    fragments: tuple[Fragment, ...]
    changed: dict[int, RowSet]
    matched: dict[int, RowSet]
    inserted_hashes: Hashes
    inserted: int
    updated: int
    deleted: int


@dataclass(slots=True)
class MergeWork:
    """Results of the rows so far."""

    plan: MergePlan
    inserted_keys: InsertedKeys
    fragments: list[Fragment]
    """New fragments, each noted as soon as its files are there."""
    changed: dict[int, RowSet] = field(default_factory=dict)
    """By fragment: rows that are changed or deleted."""
    matched: dict[int, RowSet] = field(default_factory=dict)
    """By fragment: rows that match the source, noted where clauses need the others."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    scanned: int = 0
    """Fragments whose keys were all compared."""
    _waiting: list[Decided] = field(default_factory=list)
    _are_distinct: bool = False
    """Whether the keys of the current part are known to differ."""

    def take_part(
        self, kept: RowBuffer, *, is_last: bool, matches: Iterable[Matched] | None = None
    ) -> None:
        """Apply one part of the source; its matches may be known already.

        Raises:
            InputError: rows of the source share a key.
        """
        plan = self.plan
        self._are_distinct = False
        is_matched = np.zeros(kept.rows, np.bool_)
        for found in self._matches(kept) if matches is None else matches:
            if plan.has(When.MATCHED) and len(found.ambiguous):
                raise InputError(
                    "several rows of the source match one row of the table, with the keys "
                    f"{plan.keys.shown(kept, found.ambiguous)}; keep one row for each key"
                )
            is_matched[found.rows] = True
            self._note(found)
            self._decide(found.decided, kept)
        if is_last and plan.has(When.NOT_MATCHED_BY_SOURCE):
            for decided in self._rest():
                self._decide(decided, kept)
        rows, by = decide_inserts(plan.clauses, kept, np.flatnonzero(~is_matched))
        if len(rows):
            allowed = plan.allows_duplicates or self._are_distinct
            plan.keys.record(kept, rows, self.inserted_keys, allows_duplicates=allowed)
        self.inserted += len(rows)
        give_back(kept.rows)
        self._write(self._task(kept, rows, by))

    def done(self) -> PartDone:
        """Return what became of the rows; made for a part alone, with keys that keep all hashes."""
        return PartDone(
            tuple(self.fragments),
            self.changed,
            self.matched,
            self.inserted_keys.hashes(),
            self.inserted,
            self.updated,
            self.deleted,
        )

    def absorb(self, done: PartDone) -> None:
        """Take in what became of a part elsewhere."""
        self.fragments += done.fragments
        self.inserted_keys.add(done.inserted_hashes)
        for known, rows in ((self.changed, done.changed), (self.matched, done.matched)):
            for id_, some in rows.items():
                known[id_] = _with(known, id_, some.offsets())
        self.inserted += done.inserted
        self.updated += done.updated
        self.deleted += done.deleted

    def take_rest(self) -> None:
        """Decide about rows that no part matches, when all parts were absorbed."""
        if self.plan.has(When.NOT_MATCHED_BY_SOURCE):
            nothing = RowBuffer(pa.schema([]), [])
            for decided in self._rest():
                self._decide(decided, nothing)
            none = np.empty(0, np.int64)
            self._write(self._task(nothing, none, none.astype(np.int16)))

    def _matches(self, kept: RowBuffer) -> Iterator[Matched]:
        plan = self.plan
        if not kept.rows:
            return
        index = plan.keys.index(kept)
        self._are_distinct = index.is_unique
        clauses = plan.clauses
        read = condition_sides(numbered(clauses, When.MATCHED)).source
        narrow = kept.select(read) if read else RowBuffer(kept.schema, [])
        left, named = self._with_keys(kept)
        self.scanned += len(left.manifest.fragments) - len(named)
        for group in _groups(left, plan.rows_at_a_time):
            tasks = [
                MatchTask(part, plan.on, index, clauses, narrow, of_part(named, part))
                for part in group
            ]
            yield from run_steps(suited(plan.runner, group), match_part, tasks)

    def _with_keys(self, kept: RowBuffer) -> tuple[Snapshot, Mapping[int, RowSet]]:
        """Return the fragments that may have keys of the source, and what indices know of them."""
        snapshot = self.plan.snapshot
        if snapshot.manifest.index_section is None:
            return snapshot, {}
        where = self.plan.keys.predicate(kept, snapshot.manifest.schema)
        left, named = named_rows(snapshot, where)
        return left, {id_: one.rows for id_, one in named.items()}

    def _rest(self) -> Iterator[list[Decided]]:
        plan = self.plan
        for group in _groups(plan.snapshot, plan.rows_at_a_time):
            tasks = []
            for part in group:
                ids = [one.id for one in part.manifest.fragments]
                known = {id_: self.matched[id_] for id_ in ids if id_ in self.matched}
                tasks.append(RestTask(part, known, plan.clauses))
            yield from run_steps(plan.runner, decide_rest, tasks)

    def _note(self, found: Matched) -> None:
        if self.plan.has(When.NOT_MATCHED_BY_SOURCE):
            for id_, offsets in found.offsets.items():
                self.matched[id_] = _with(self.matched, id_, offsets)

    def _decide(self, decided: Iterable[Decided], kept: RowBuffer) -> None:
        """Note what is done with rows; many of them are written at once."""
        clauses = self.plan.clauses
        updates = np.array([clause.act is Act.UPDATE for clause in clauses])
        for one in decided:
            self.changed[one.fragment.id] = _with(self.changed, one.fragment.id, one.offsets)
            is_update = updates[one.actions]
            count = int(is_update.sum())
            self.updated += count
            self.deleted += len(one.offsets) - count
            if count:
                self._waiting.append(one if is_update.all() else one.where(is_update))
        if sum(len(one.offsets) for one in self._waiting) >= self.plan.rows_at_a_time:
            none = np.empty(0, np.int64)
            self._write(self._task(kept, none, none.astype(np.int16)))

    def _task(self, kept: RowBuffer, rows: Offsets, by: Actions) -> MergeTask:
        plan = self.plan
        moved, self._waiting = tuple(self._waiting), []
        return MergeTask(
            plan.snapshot, plan.schema, moved, rows, by, plan.clauses, kept, plan.write
        )

    def _write(self, all_rows: MergeTask) -> None:
        snapshot = self.plan.snapshot
        apart = self.plan.schema is not snapshot.manifest.schema
        target = target_of(snapshot)
        written = run_steps(
            self.plan.runner,
            write_merged,
            plan_writes(all_rows, snapshot, apart=apart),
            lambda fragments: remove_fragments(fragments, target),
        )
        self.fragments += [fragment for each in written for fragment in each]


def _with(known: dict[int, RowSet], id_: int, offsets: Offsets) -> RowSet:
    return known[id_].union(offsets) if id_ in known else RowSet.of(offsets)


def _groups(snapshot: Snapshot, most: int) -> Iterator[list[Snapshot]]:
    """Yield the parts of a version in groups of about so many rows, but enough to work on."""
    group: list[Snapshot] = []
    held = 0
    for part in parts(snapshot):
        group.append(part)
        held += sum(one.physical_rows or 0 for one in part.manifest.fragments)
        if held >= most and len(group) >= _PARTS_AT_A_TIME:
            yield group
            group, held = [], 0
    if group:
        yield group


def plan_writes(base: MergeTask, snapshot: Snapshot, *, apart: bool) -> Iterator[MergeTask]:
    """Divide the rows of a merge into tasks of about as many rows as make a file worth having.

    With ``apart`` changed and inserted rows never share a fragment.
    """
    most = min(ROWS_PER_TASK, base.options.max_rows_per_file)
    group: list[Decided] = []
    held = 0
    none = (base.inserted[:0], base.inserted_by[:0])
    for one in base.moved:
        if group and held + len(one.offsets) > most:
            yield _task_of(base, snapshot, group, none)
            group, held = [], 0
        group.append(one)
        held += len(one.offsets)
    if group and apart:
        yield _task_of(base, snapshot, group, none)
        group, held = [], 0
    first = 0
    while group or first < len(base.inserted):
        end = first + max(most - held, 0)
        yield _task_of(
            base, snapshot, group, (base.inserted[first:end], base.inserted_by[first:end])
        )
        group, held, first = [], 0, end


def _task_of(
    base: MergeTask,
    snapshot: Snapshot,
    group: list[Decided],
    inserted: tuple[Offsets, Actions],
) -> MergeTask:
    part = part_of(snapshot, [one.fragment for one in group])
    return MergeTask(
        part, base.schema, tuple(group), *inserted, base.clauses, base.kept, base.options
    )


def write_merged(task: MergeTask) -> list[Fragment]:
    """Write the rows of a task to new fragments."""
    lineage = Lineage()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from _changed(task, lineage)
        yield from _inserted(task)

    return write_labelled(task.part, batches(), task.schema, task.options, lineage)


def _changed(task: MergeTask, lineage: Lineage) -> Iterator[pa.RecordBatch]:
    readers = Readers(task.part)
    for position, one in enumerate(task.moved):
        for number in np.unique(one.actions).tolist():
            chosen = one.actions == number
            offsets, rows = one.offsets[chosen], one.rows[chosen]
            if has_stable_row_ids(task.part.manifest):
                lineage.add(readers, position, offsets)
            clause = task.clauses[number]
            sides = clause.value_sides()
            given = {*clause.copied, *(each.field.name for each in clause.assignments)}
            same = [field.name for field in task.schema.fields if field.name not in given]
            # The new schema gives nulls for columns that the fragments do not have yet.
            read = TargetColumns(task.schema, tuple(dict.fromkeys((*same, *sides.target))))
            start = 0
            for run in read.runs(readers, offsets):
                of_source = rows[start : start + len(run)]
                start += len(run)
                joined = read.joined(readers, position, run, task.kept, of_source, sides.source)
                yield _finished(task.schema, clause, joined)
                del joined
                give_back(len(run))
        readers[position].opened.release()


def _inserted(task: MergeTask) -> Iterator[pa.RecordBatch]:
    for number in np.unique(task.inserted_by).tolist():
        clause = task.clauses[number]
        rows = task.inserted[task.inserted_by == number]
        names = clause.value_sides().source
        for first in range(0, len(rows), _INSERTED_AT_A_TIME):
            batch = source_batch(task.kept, rows[first : first + _INSERTED_AT_A_TIME], names)
            yield _finished(task.schema, clause, batch)
            give_back(batch.num_rows)


def _finished(schema: Schema, clause: BoundClause, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return all columns of the table: from the source, computed, as they were, or null."""
    computed = {one.field.name: one for one in clause.assignments}
    present = set(batch.schema.names)
    arrays = []
    for one in schema.fields:
        if one.name in computed:
            arrays.append(computed[one.name].values(batch))
        elif one.name in clause.copied:
            arrays.append(batch.column(f"{SOURCE}.{one.name}"))
        elif clause.act is Act.UPDATE and f"{TARGET}.{one.name}" in present:
            arrays.append(batch.column(f"{TARGET}.{one.name}"))
        else:
            arrays.append(pa.nulls(batch.num_rows, write_type(one)))
    return pa.RecordBatch.from_arrays(arrays, [one.name for one in schema.fields])
