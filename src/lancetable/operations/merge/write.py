"""Write the rows of a merge: changed rows first, then inserted ones.

Rows of one fragment on which one clause acts are written together. Columns that come from the
source are not read from the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.readers import Readers
from lancetable.fragment.writer import WriteOptions
from lancetable.operations.input.fit import write_type
from lancetable.operations.keys.row_buffer import RowBuffer
from lancetable.operations.merge.clauses import SOURCE, TARGET, Act, BoundClause
from lancetable.operations.merge.decide import Actions, Decided, TargetColumns, source_batch
from lancetable.operations.rows.move_rows import Lineage, has_stable_row_ids, write_labelled
from lancetable.operations.rows.parts import part_of
from lancetable.operations.run.memory import give_back

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
            yield _with(base, snapshot, group, none)
            group, held = [], 0
        group.append(one)
        held += len(one.offsets)
    if group and apart:
        yield _with(base, snapshot, group, none)
        group, held = [], 0
    first = 0
    while group or first < len(base.inserted):
        end = first + max(most - held, 0)
        yield _with(base, snapshot, group, (base.inserted[first:end], base.inserted_by[first:end]))
        group, held, first = [], 0, end


def _with(
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
    for field in schema.fields:
        if field.name in computed:
            arrays.append(computed[field.name].values(batch))
        elif field.name in clause.copied:
            arrays.append(batch.column(f"{SOURCE}.{field.name}"))
        elif clause.act is Act.UPDATE and f"{TARGET}.{field.name}" in present:
            arrays.append(batch.column(f"{TARGET}.{field.name}"))
        else:
            arrays.append(pa.nulls(batch.num_rows, write_type(field)))
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in schema.fields])
