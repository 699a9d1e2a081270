"""Update: set columns of the rows for which a predicate holds to expressions of their old values.

1. Find the matching rows of each part of the table.
2. Mark them as deleted where they are.
3. Write them, changed, to new fragments; in a table with stable row ids they keep their ids.
4. Commit both together, naming the rows, so that changes of other rows are no conflict.
When nothing matches no version is made.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Update
from lancetable.expression import Expression
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import with_payloads
from lancetable.fragment.projection import SYSTEM_COLUMNS
from lancetable.fragment.readers import Readers
from lancetable.fragment.writer import WriteOptions, remove_fragments, with_total
from lancetable.operations.assign import Assignment, bind_assignments, parse_assignments
from lancetable.operations.changes import DEFAULTS, ChangeOptions, Updated, UpdateResult
from lancetable.operations.delete import affected_rows, mark_all
from lancetable.operations.match import Found, find_all, plan_find
from lancetable.operations.moved import (
    Lineage,
    RowsOf,
    has_stable_row_ids,
    row_batches,
    target_of,
    write_labelled,
)
from lancetable.operations.parts import part_of
from lancetable.operations.relief import give_back
from lancetable.operations.retry import repeat
from lancetable.operations.rowset import RowSet
from lancetable.operations.steps import own_files, run_steps
from lancetable.operations.write import keep_or_remove
from lancetable.scan.columns import binding_schema
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest, Where, parse_where

ROWS_PER_TASK = 256 * 1024


@dataclass(frozen=True, slots=True)
class MoveTask:
    """Rows to be written anew, changed."""

    part: Snapshot
    rows: Mapping[int, RowSet]
    values: Mapping[str, Expression]
    options: WriteOptions


def update(
    snapshot: Snapshot,
    values: Mapping[str, str | Expression],
    where: Where = None,
    options: ChangeOptions = DEFAULTS,
) -> Updated:
    """Set columns of the rows for which a predicate holds, or of all rows.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression cannot be understood, bound or computed.
        InputError: a value does not fit its column.
        CommitError: the rows were not changed.
    """
    parsed, wanted = parse_assignments(values), parse_where(where)
    return repeat(
        snapshot, lambda latest: _attempt(latest, parsed, wanted, options), options.commit
    )


def _attempt(
    snapshot: Snapshot,
    values: Mapping[str, Expression],
    where: Expression | None,
    options: ChangeOptions,
) -> Updated:
    assignments = bound_to(snapshot.manifest.schema, values)
    tasks = plan_find(snapshot, where)
    found = find_all(options.runner, tasks)
    if not found:
        return Updated(snapshot, UpdateResult(snapshot.version, is_new_version=False))
    fragments: list[Fragment] = []
    with own_files(snapshot.store) as files, keep_or_remove(fragments, target_of(snapshot)):
        marked = mark_all(snapshot, found, options)
        files.extend(one.path for one in marked if one.path is not None)
        fragments += _move(snapshot, found, values, options)
        operation = Update(
            removed_fragment_ids=tuple(one.id for one in marked if one.fragment is None),
            updated_fragments=tuple(one.fragment for one in marked if one.fragment is not None),
            new_fragments=tuple(fragments),
            fields_for_preserving_frag_bitmap=set_ids(assignments),
        )
        affected = affected_rows(marked)
        made = options.make_version(snapshot, operation, options.commit, affected=affected)
    rows = sum(len(one.rows) for one in found)
    return Updated(made.snapshot, UpdateResult(made.snapshot.version, rows, made.attempts))


def bound_to(schema: Schema, values: Mapping[str, Expression]) -> tuple[Assignment, ...]:
    """Bind what columns are set to; expressions see the old values and the system columns.

    Raises:
        SchemaError: a column is unknown.
        ExpressionError: an expression does not fit the columns.
    """
    shown = Schema(tuple(with_payloads(field) for field in schema.fields))
    return bind_assignments(values, schema, binding_schema(shown))


def system_columns(assignments: tuple[Assignment, ...], schema: Schema) -> tuple[str, ...]:
    """Return the system columns that expressions read."""
    names = {field.name for field in schema.fields}
    used = {name for one in assignments for name in one.inputs()}
    return tuple(name for name in SYSTEM_COLUMNS if name in used and name not in names)


def set_ids(assignments: tuple[Assignment, ...]) -> tuple[int, ...]:
    """Return the ids of all fields that are set."""
    return tuple(field.id for one in assignments for field in one.field.walk())


def _move(
    snapshot: Snapshot,
    found: list[Found],
    values: Mapping[str, Expression],
    options: ChangeOptions,
) -> list[Fragment]:
    tasks = plan_moves(snapshot, found, values, with_total(options.write))
    written = run_steps(
        options.runner,
        write_changed,
        tasks,
        lambda fragments: remove_fragments(fragments, target_of(snapshot)),
    )
    return [fragment for each in written for fragment in each]


def plan_moves(
    snapshot: Snapshot,
    found: list[Found],
    values: Mapping[str, Expression],
    options: WriteOptions,
) -> Iterator[MoveTask]:
    """Yield tasks of about as many rows as make a file worth having."""
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
