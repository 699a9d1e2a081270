"""Update: set columns of the rows for which a predicate holds to expressions of their old values.

1. Find the matching rows of each part of the table.
2. Moving rows: mark them as deleted where they are, and write them, changed, to new fragments; in
   a table with stable row ids they keep their ids. Other changes of other rows are no conflict.
   Rewriting columns: for each fragment with a match write a file with the set columns of all its
   rows. It pays when most rows of a fragment change but few of its columns; any other change of
   the same fragments makes the update start again.
3. Commit, naming the rows that changed. When nothing matches no version is made.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.commit.options import CommitResult
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Update, UpdateMode
from lancetable.expression import Expression
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.roaring import encode_bitmap
from lancetable.format.schema.model import Schema
from lancetable.fragment.projection import SYSTEM_COLUMNS
from lancetable.fragment.readers import Readers
from lancetable.fragment.write.writer import WriteOptions, remove_fragments, with_total
from lancetable.operations.columns.new_files import last_file, rewrite_all
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.assign import Assignment, bound_to, parse_assignments, set_ids
from lancetable.operations.input.write import keep_or_remove
from lancetable.operations.results import DEFAULTS, ChangeOptions, Done, UpdateResult
from lancetable.operations.rows.find_rows import Found, find_all, plan_find, scanned_fragments
from lancetable.operations.rows.mark_deleted import marked_rows, rows_by_fragment
from lancetable.operations.rows.move_rows import (
    Lineage,
    RowsOf,
    has_stable_row_ids,
    row_batches,
    target_of,
    write_labelled,
)
from lancetable.operations.rows.parts import RowSet, part_of
from lancetable.operations.run.memory import give_back
from lancetable.operations.run.runner import run_steps
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest, Where, parse_where

ROWS_PER_TASK = 256 * 1024


@dataclass(frozen=True, slots=True)
class MoveTask:
    """Rows to write to new fragments, changed."""

    part: Snapshot
    rows: Mapping[int, RowSet]
    values: Mapping[str, Expression]
    options: WriteOptions


def update(
    snapshot: Snapshot,
    values: Mapping[str, str | Expression],
    where: Where = None,
    options: ChangeOptions = DEFAULTS,
) -> Done[UpdateResult]:
    """Set columns of the rows for which a predicate holds, or of all rows, by moving the rows.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression cannot be parsed, bound or computed.
        InputError: a value does not fit its column.
        CommitError: the rows were not changed.
    """
    return _update(_commit_moved, snapshot, values, where, options)


def update_columns(
    snapshot: Snapshot,
    values: Mapping[str, str | Expression],
    where: Where = None,
    options: ChangeOptions = DEFAULTS,
) -> Done[UpdateResult]:
    """Set columns of the rows for which a predicate holds, or of all rows, by rewriting columns.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression cannot be parsed, bound or computed.
        InputError: a value does not fit its column.
        CommitError: the rows were not changed.
    """
    return _update(_commit_rewritten, snapshot, values, where, options)


class _Change(NamedTuple):
    """The rows that an update found, and what it sets."""

    snapshot: Snapshot
    found: list[Found]
    values: Mapping[str, Expression]
    field_ids: tuple[int, ...]
    options: ChangeOptions


def _update(
    write: Callable[[_Change], CommitResult],
    snapshot: Snapshot,
    values: Mapping[str, str | Expression],
    where: Where,
    options: ChangeOptions,
) -> Done[UpdateResult]:
    parsed, wanted = parse_assignments(values), parse_where(where)

    def attempt(latest: Snapshot) -> Done[UpdateResult]:
        field_ids = set_ids(bound_to(latest.manifest.schema, parsed))
        tasks = plan_find(latest, wanted)
        found, scanned = find_all(options.runner, tasks), scanned_fragments(tasks)
        if not found:
            nothing = UpdateResult(latest.version, fragments_scanned=scanned, is_new_version=False)
            return Done(latest, nothing)
        made = write(_Change(latest, found, parsed, field_ids, options))
        rows = sum(len(one.rows) for one in found)
        version = made.snapshot.version
        return Done(made.snapshot, UpdateResult(version, rows, made.attempts, scanned))

    return repeat_and_cover(snapshot, attempt, options.commit, options.runner)


def _commit_moved(change: _Change) -> CommitResult:
    snapshot, found, values, field_ids, options = change
    rows, target = rows_by_fragment(found), target_of(snapshot)
    fragments: list[Fragment] = []
    with (
        keep_or_remove(fragments, target),
        marked_rows(snapshot, rows, options.runner) as marks,
    ):
        moved = run_steps(
            options.runner,
            write_changed,
            plan_moves(snapshot, found, values, with_total(options.write)),
            lambda written: remove_fragments(written, target),
        )
        fragments += (fragment for each in moved for fragment in each)
        operation = replace(marks.update(fragments), fields_for_preserving_frag_bitmap=field_ids)
        return options.make_version(snapshot, operation, options.commit, affected=marks.affected)


def _commit_rewritten(change: _Change) -> CommitResult:
    snapshot, found, values, field_ids, options = change
    written: list[Fragment] = []
    with keep_or_remove(written, target_of(snapshot)):
        changed = rewrite_all(snapshot, found, values, options)
        written += map(last_file, changed)
        operation = Update(
            updated_fragments=tuple(changed),
            fields_modified=field_ids,
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_fragment_offset_bitmaps={
                one.fragment.id: encode_bitmap(np.asarray(one.rows, np.uint32)) for one in found
            },
        )
        return options.make_version(snapshot, operation, options.commit)


def system_columns(assignments: tuple[Assignment, ...], schema: Schema) -> tuple[str, ...]:
    """Return the system columns that expressions read."""
    names = {field.name for field in schema.fields}
    used = {name for one in assignments for name in one.inputs()}
    return tuple(name for name in SYSTEM_COLUMNS if name in used and name not in names)


def plan_moves(
    snapshot: Snapshot,
    found: list[Found],
    values: Mapping[str, Expression],
    options: WriteOptions,
) -> Iterator[MoveTask]:
    """Yield tasks, each with enough rows for a file."""
    most = min(ROWS_PER_TASK, options.max_rows_per_file)
    numbers: list[int] = []
    seen = 0
    for one in found:
        numbers.append(seen // most)
        seen += len(one.rows)
    for _, group in groupby(zip(numbers, found, strict=True), key=lambda pair: pair[0]):
        chosen = [one for _, one in group]
        part = part_of(snapshot, [one.fragment for one in chosen])
        yield MoveTask(part, {one.fragment.id: one.rows for one in chosen}, values, options)


def write_changed(task: MoveTask) -> list[Fragment]:
    """Write the rows of a task to new fragments."""
    part = task.part
    schema = part.manifest.schema
    assignments = bound_to(schema, task.values)
    names = tuple(field.name for field in schema.fields)
    wanted = (*names, *system_columns(assignments, schema))
    planned = plan(schema, ScanRequest(wanted, blobs="bytes"))
    readers = Readers(part)
    lineage = Lineage()

    def moving() -> Iterator[RowsOf]:
        for position, fragment in enumerate(part.manifest.fragments):
            offsets = task.rows[fragment.id].offsets()
            if has_stable_row_ids(part.manifest):
                lineage.add(readers, position, offsets)
            yield RowsOf(position, offsets)

    def changed() -> Iterator[pa.RecordBatch]:
        for batch in row_batches(planned, readers, moving()):
            yield apply_assignments(batch, assignments, names)
            rows = batch.num_rows
            del batch
            give_back(rows)

    return write_labelled(part, changed(), schema, task.options, lineage)


def apply_assignments(
    batch: pa.RecordBatch, assignments: tuple[Assignment, ...], names: Sequence[str]
) -> pa.RecordBatch:
    """Return the named columns of a batch, those that are set in place of the old ones."""
    made = {one.field.name: one.values(batch) for one in assignments}
    arrays = [made[name] if name in made else batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names)
