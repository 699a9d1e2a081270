"""Update by columns: new files for the columns that are set, the rows stay where they are.

1. Find the matching rows of each part of the table.
2. For each fragment with a match write a file with the set columns of all its rows.
3. Older files give up these columns; deleted rows and row ids stay as they were.
4. Commit, naming which rows changed; any other change of the same fragments makes it start again.
It pays when most rows of a fragment change but few of its columns. When nothing matches no version
is made.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Update, UpdateMode
from lancetable.expression import Expression
from lancetable.format.manifest import Fragment
from lancetable.format.manifest.roaring import encode_bitmap
from lancetable.format.schema.model import Schema
from lancetable.format.schema.types import without_extensions
from lancetable.fragment.readers import Readers
from lancetable.fragment.writer import WriteOptions, remove_fragments, with_total
from lancetable.operations.assign import Assignment, parse_assignments
from lancetable.operations.changes import DEFAULTS, ChangeOptions, Updated, UpdateResult
from lancetable.operations.match import Found, find_all, plan_find
from lancetable.operations.moved import target_of
from lancetable.operations.new_files import last_file, with_columns, write_columns
from lancetable.operations.parts import Offsets, part_of, part_windows, read_rows
from lancetable.operations.retry import repeat
from lancetable.operations.rowset import RowSet
from lancetable.operations.steps import run_steps
from lancetable.operations.update import bound_to, set_ids
from lancetable.operations.write import keep_or_remove
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest, Where, parse_where
from lancetable.scan.result import aligned


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """A fragment some of whose rows get new values in some columns."""

    part: Snapshot
    rows: RowSet
    values: Mapping[str, Expression]
    options: WriteOptions


def update_columns(
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
    target = target_of(snapshot)
    written: list[Fragment] = []
    write = with_total(options.write)
    with keep_or_remove(written, target):
        changed = run_steps(
            options.runner,
            rewrite_columns,
            [_task(snapshot, one, values, write) for one in found],
            lambda fragment: remove_fragments([last_file(fragment)], target),
        )
        written += map(last_file, changed)
        operation = Update(
            updated_fragments=tuple(changed),
            fields_modified=set_ids(assignments),
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_fragment_offset_bitmaps={
                one.fragment.id: encode_bitmap(np.asarray(one.rows, np.uint32)) for one in found
            },
        )
        made = options.make_version(snapshot, operation, options.commit)
    rows = sum(len(one.rows) for one in found)
    return Updated(made.snapshot, UpdateResult(made.snapshot.version, rows, made.attempts))


def _task(
    snapshot: Snapshot, one: Found, values: Mapping[str, Expression], write: WriteOptions
) -> RewriteTask:
    return RewriteTask(part_of(snapshot, [one.fragment]), one.rows, values, write)


def rewrite_columns(task: RewriteTask) -> Fragment:
    """Write the set columns of all rows of a fragment, and return the fragment with that file."""
    part = task.part
    (fragment,) = part.manifest.fragments
    schema = part.manifest.schema
    assignments = bound_to(schema, task.values)
    fields = Schema(tuple(one.field for one in assignments), schema.metadata)
    readers = Readers(part)
    rows = readers[0].opened.rows
    file = write_columns(part, _rewritten(task, assignments, readers), fields, rows, task.options)
    return with_columns(fragment, file, rows, frozenset(set_ids(assignments)))


def _rewritten(
    task: RewriteTask, assignments: tuple[Assignment, ...], readers: Readers
) -> Iterator[pa.RecordBatch]:
    schema = task.part.manifest.schema
    names = tuple(one.field.name for one in assignments)
    used = sorted({name for one in assignments for name in one.inputs()})
    old = plan(schema, ScanRequest(names, blobs="bytes"))
    read = plan(schema, ScanRequest(tuple(used), blobs="bytes"))
    offsets = task.rows.offsets()
    for window in part_windows(old, readers):
        every = np.arange(window.start, window.stop)
        first, last = np.searchsorted(offsets, [window.start, window.stop])
        matched = offsets[first:last]
        before = _batch(read_rows(old, readers[0], every).columns, names)
        if not len(matched):
            yield before
            continue
        piece = read_rows(read, readers[0], matched)
        (inputs,) = _combined(dict(zip(used, piece.columns, strict=True)), len(matched))
        places = every - window.start
        places[matched - window.start] = np.arange(len(matched)) + len(every)
        arrays = [
            overlaid(before.column(one.field.name), one.values(inputs), places)
            for one in assignments
        ]
        yield pa.RecordBatch.from_arrays(arrays, names)


def overlaid(old: pa.Array, new: pa.Array, places: Offsets) -> pa.Array:
    """Return values of two arrays: places past the end of the first count in the second."""
    both = [without_extensions(old), without_extensions(new)]
    return pa.concat_arrays(both).take(pa.array(places))


def _batch(pieces: list[list[pa.Array]], names: tuple[str, ...]) -> pa.RecordBatch:
    arrays = [
        chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks).combine_chunks()
        for chunks in pieces
    ]
    return pa.RecordBatch.from_arrays(arrays, names)


def _combined(pieces: dict[str, list[pa.Array]], rows: int) -> list[pa.RecordBatch]:
    return aligned({name: [pa.concat_arrays(chunks)] for name, chunks in pieces.items()}, rows)
