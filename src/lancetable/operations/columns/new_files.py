"""Write new values for some columns of a fragment: one more data file with all its rows.

The file holds a value for every row, deleted ones included, since rows are matched by position.
Where it replaces columns of older files, those mark them as no longer theirs; deletion files and
row ids stay as they are.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lancetable.commit.apply.files import TOMBSTONE
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.expression import Expression
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.schema.model import Schema
from lancetable.format.schema.types import without_extensions
from lancetable.fragment.projection import SPILLED_IDS
from lancetable.fragment.readers import Readers
from lancetable.fragment.write.writer import WriteOptions, remove_fragments, with_total
from lancetable.operations.input.assign import Assignment, bound_to, set_ids
from lancetable.operations.results import ChangeOptions
from lancetable.operations.rows.find_rows import Found
from lancetable.operations.rows.move_rows import target_of, write_rows
from lancetable.operations.rows.parts import RowSet, part_of, part_windows, read_rows
from lancetable.operations.run.runner import run_steps
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.scan.result import aligned

_NO_LIMIT = 2**62


def write_columns(
    part: Snapshot,
    batches: Iterable[pa.RecordBatch],
    schema: Schema,
    rows: int,
    options: WriteOptions,
) -> DataFile:
    """Write columns of one fragment, which has so many rows, to a new file.

    Raises:
        InputError: the batches have another number of rows.
        StoreError: the file cannot be written; none stays behind.
    """
    whole = replace(options, max_rows_per_file=_NO_LIMIT, max_bytes_per_file=_NO_LIMIT)
    fragments = write_rows(part, batches, schema, whole)
    written = sum(fragment.physical_rows for fragment in fragments)
    if written != rows or len(fragments) != 1:
        remove_fragments(fragments, target_of(part))
        raise InputError(f"a fragment of {rows} rows got {written} values for a column")
    return fragments[0].files[0]


def with_columns(
    fragment: Fragment, file: DataFile, rows: int, replaced: Collection[int] = ()
) -> Fragment:
    """Return the fragment with one more file, which holds some columns in place of older ones."""
    files = tuple(_without(old, replaced) for old in fragment.files)
    return fragment._replace(files=(*files, file), physical_rows=rows)


def _without(file: DataFile, replaced: Collection[int]) -> DataFile:
    if not any(id_ in replaced for id_ in file.fields):
        return file
    fields = tuple(TOMBSTONE if id_ in replaced else id_ for id_ in file.fields)
    return file._replace(fields=fields)


def with_live_files(fragment: Fragment, schema: Schema) -> Fragment:
    """Return the fragment without files none of whose columns is in the schema any more."""
    live = {field.id for field in schema.walk()}.union(SPILLED_IDS.values())
    return fragment._replace(
        files=tuple(file for file in fragment.files if not live.isdisjoint(file.fields))
    )


def last_file(fragment: Fragment) -> Fragment:
    """Return a fragment of the newest file alone, to be removed if it is not wanted."""
    return fragment._replace(files=fragment.files[-1:])


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """A fragment some of whose rows get new values in some columns."""

    part: Snapshot
    rows: RowSet
    values: Mapping[str, Expression]
    options: WriteOptions


def rewrite_all(
    snapshot: Snapshot,
    found: Sequence[Found],
    values: Mapping[str, Expression],
    options: ChangeOptions,
) -> list[Fragment]:
    """Write the set columns of every fragment with matching rows; return the changed fragments."""
    write, target = with_total(options.write), target_of(snapshot)
    return run_steps(
        options.runner,
        rewrite_columns,
        [RewriteTask(part_of(snapshot, [one.fragment]), one.rows, values, write) for one in found],
        lambda fragment: remove_fragments([last_file(fragment)], target),
    )


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
    """Take values of two arrays; places past the end of the first count in the second."""
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
