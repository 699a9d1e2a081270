"""Add columns to all fragments of a version: one more file each, with the values of a maker.

Values are computed for live rows only; deleted rows get nulls, or some value where nulls are
forbidden. Files that were written for a fragment are used again when the commit has to be
repeated and the fragment is the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import data_files
from lancetable.format.arrays import Offsets
from lancetable.format.manifest import DataFile, Fragment
from lancetable.format.schema.model import Field, Schema
from lancetable.format.schema.project import project_ids
from lancetable.format.schema.types import arrow_type, without_extensions
from lancetable.fragment.readers import Readers
from lancetable.fragment.write.writer import WriteOptions, remove_fragments
from lancetable.operations.columns.column_values import Maker, fingerprint
from lancetable.operations.columns.new_files import write_columns
from lancetable.operations.input.write import keep_or_remove
from lancetable.operations.results import ChangeOptions, Done
from lancetable.operations.retry import repeat
from lancetable.operations.rows.move_rows import target_of
from lancetable.operations.rows.parts import part_of, read_rows
from lancetable.operations.run.runner import run_steps
from lancetable.scan.plan import ScanPlan, plan, windows
from lancetable.scan.request import MiB, ScanRequest
from lancetable.scan.row_size import measured

R = TypeVar("R")
_WINDOW_BYTES = 16 * MiB


@dataclass(frozen=True, slots=True)
class ExtendTask:
    """A fragment that gets values for some fields of a new schema."""

    part: Snapshot
    schema: Schema
    new_ids: tuple[int, ...]
    """The ids of the fields that the maker gives, in its order."""
    maker: Maker
    options: WriteOptions
    batch_rows: int


class Extension:
    """The files that a change of columns writes, by fragment."""

    def __init__(self, maker: Maker, options: ChangeOptions, batch_rows: int = 2**62) -> None:
        self.maker = maker
        self._options = options
        self._batch_rows = batch_rows
        self._written: dict[tuple[object, ...], DataFile | None] = {}
        self.fragments: list[Fragment] = []
        """Every new file as a fragment of its own, to be removed if nothing comes of it."""

    def write(
        self, snapshot: Snapshot, schema: Schema, new_ids: Sequence[int]
    ) -> dict[int, DataFile]:
        """Return a file with the new fields for each fragment; one of nulls only may have none."""
        ids = tuple(new_ids)
        missing = [
            one for one in snapshot.manifest.fragments if _key(one, ids) not in self._written
        ]
        for one, file in zip(missing, self._run(snapshot, schema, ids, missing), strict=True):
            self._written[_key(one, ids)] = file
        files = [(one.id, self._written[_key(one, ids)]) for one in snapshot.manifest.fragments]
        return {id_: file for id_, file in files if file is not None}

    def _run(
        self, snapshot: Snapshot, schema: Schema, ids: tuple[int, ...], missing: list[Fragment]
    ) -> Sequence[DataFile | None]:
        """Write the files of some fragments."""
        tasks = [
            ExtendTask(
                part_of(snapshot, [one]),
                schema,
                ids,
                self.maker,
                self._options.write,
                self._batch_rows,
            )
            for one in missing
        ]
        target = target_of(snapshot)
        results = run_steps(
            self._options.runner,
            extend_fragment,
            tasks,
            lambda file: remove_fragments([Fragment(0, (file,))], target),
        )
        self.fragments += [Fragment(0, (file,)) for file in results]
        return results

    def commit(self, snapshot: Snapshot, attempt: Callable[[Snapshot], Done[R]]) -> Done[R]:
        """Repeat an attempt until it is committed, and remove files that no version needs."""
        with keep_or_remove(self.fragments, target_of(snapshot)):
            done = repeat(snapshot, attempt, self._options.commit)
        self.remove_unused(done.snapshot)
        return done

    def remove_unused(self, snapshot: Snapshot) -> None:
        """Remove files of fragments that were gone when the commit landed."""
        used = {file.path for one in snapshot.manifest.fragments for file in one.files}
        unused = [one for one in self.fragments if one.files[0].path not in used]
        remove_fragments(unused, target_of(snapshot))


def _key(fragment: Fragment, ids: tuple[int, ...]) -> tuple[object, ...]:
    return fragment.id, data_files(fragment), ids


def extend_fragment(task: ExtendTask) -> DataFile:
    """Write the new columns of one fragment."""
    readers = Readers(task.part)
    rows = readers[0].opened.rows
    stored = stored_part(task.schema, task.new_ids)
    return write_columns(task.part, _batches(task, readers, stored), stored, rows, task.options)


def stored_part(schema: Schema, new_ids: Sequence[int]) -> Schema:
    """Return the part of a schema that a file with some fields holds."""
    chosen = frozenset(new_ids)
    ids = {below.id for field in schema.walk() if field.id in chosen for below in field.walk()}
    return project_ids(schema, ids)


def _batches(task: ExtendTask, readers: Readers, stored: Schema) -> Iterator[pa.RecordBatch]:
    fields = {field.id: field for field in task.schema.walk()}
    new = [fields[id_] for id_ in task.new_ids]
    parents = [field.name for field in stored.fields if field.id not in task.new_ids]
    inputs = tuple(dict.fromkeys((*task.maker.inputs, *parents)))
    old = task.part.manifest.schema
    planned = plan(old, ScanRequest(inputs, blobs="bytes"))
    reader = readers[0]
    filler = cache(lambda: _filler(task, new, planned, readers))

    # A function, so that of the rows that were read nothing is held while the new ones are written.
    def extended(start: int, stop: int) -> pa.RecordBatch:
        rows = stop - start
        is_whole = reader.live_rows_within(start, stop) == rows
        live = range(start, stop) if is_whole else reader.live_offsets(start, stop)
        batch = _read(planned, readers, live)
        made = _make(task, new, batch, f"{start}-{stop}")
        values = dict(zip(task.new_ids, made, strict=True))
        if not isinstance(live, range):
            places = live - start
            batch = _spread_batch(batch, places, rows)
            values = {
                id_: _spread(array, places, rows, filler().get(id_))
                for id_, array in values.items()
            }
        arrays = [_nested(field, values, batch) for field in stored.fields]
        return pa.RecordBatch.from_arrays(arrays, [field.name for field in stored.fields])

    for start, stop in _ranges(planned, readers, task.batch_rows):
        yield extended(start, stop)


def first_batch(
    snapshot: Snapshot, maker: Maker, batch_rows: int
) -> tuple[str, pa.RecordBatch] | None:
    """Return the first batch of live rows that a maker will get, and the text for its place."""
    planned = plan(snapshot.manifest.schema, ScanRequest(maker.inputs, blobs="bytes"))
    for fragment in snapshot.manifest.fragments:
        part = part_of(snapshot, [fragment])
        readers = Readers(part)
        for start, stop in _ranges(planned, readers, batch_rows):
            live = readers[0].live_offsets(start, stop)
            if len(live):
                return place_of(part, f"{start}-{stop}"), _read(planned, readers, live)
    return None


def _ranges(planned: ScanPlan, readers: Readers, batch_rows: int) -> Iterator[tuple[int, int]]:
    pace = measured((planned.late,), readers.source)
    step = max(min(pace.rows(_WINDOW_BYTES), batch_rows), 1)
    for window in windows(0, 0, readers[0].opened.rows, step):
        yield window.start, window.stop


def _read(planned: ScanPlan, readers: Readers, offsets: Offsets | range) -> pa.RecordBatch:
    names = planned.schema.names
    if not names:
        return pa.RecordBatch.from_arrays([pa.nulls(len(offsets))], [""])
    if not len(offsets):
        arrays = [pa.nulls(0, type_) for type_ in planned.types]
    else:
        columns = read_rows(planned, readers[0], offsets).columns
        arrays = [chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) for chunks in columns]
    return pa.RecordBatch.from_arrays(arrays, names)


def _make(
    task: ExtendTask, new: Sequence[Field], batch: pa.RecordBatch, rows: str
) -> list[pa.Array]:
    if not batch.num_rows:
        return [pa.nulls(0, arrow_type(field)) for field in new]
    return task.maker.make(batch, new, place_of(task.part, rows))


def place_of(part: Snapshot, rows: str) -> str:
    """Return a text for rows of a fragment that is another one when its content is another."""
    (fragment,) = part.manifest.fragments
    content = fingerprint([*data_files(fragment), repr(fragment.deletion_file)])
    return f"{fragment.id}-{rows}-{content}"


def _filler(
    task: ExtendTask, new: Sequence[Field], planned: ScanPlan, readers: Readers
) -> dict[int, pa.Array]:
    """Return a value for deleted rows of each field that forbids nulls."""
    required = [field for field in new if not field.nullable]
    if not required:
        return {}
    first = readers[0].live_offsets(0, readers[0].opened.rows)[:1]
    made = _make(task, new, _read(planned, readers, first), "first")
    return {
        field.id: array
        for field, array in zip(new, made, strict=True)
        if not field.nullable and len(array)
    }


def _spread(array: pa.Array, places: Offsets, rows: int, filler: pa.Array | None) -> pa.Array:
    """Return values at their places among more rows, the others null or the filler."""
    order = np.full(rows, len(array), np.int64)
    order[places] = np.arange(len(array))
    array = without_extensions(array)
    if filler is not None:
        return pa.concat_arrays([array, filler]).take(pa.array(order))
    return array.take(pa.array(order, mask=order == len(array)))


def _spread_batch(batch: pa.RecordBatch, places: Offsets, rows: int) -> pa.RecordBatch:
    arrays = [_spread(array, places, rows, None) for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def _nested(field: Field, values: Mapping[int, pa.Array], batch: pa.RecordBatch) -> pa.Array:
    """Return a new field, or the structs around it, which are missing where they were."""
    if field.id in values:
        return values[field.id]
    return _inside(field, values, batch.column(field.name))


def _inside(field: Field, values: Mapping[int, pa.Array], parent: pa.Array) -> pa.Array:
    parent = without_extensions(parent)
    children = [
        values[child.id]
        if child.id in values
        else _inside(child, values, pc.struct_field(parent, [child.name]))
        for child in field.children
    ]
    fields = [
        pa.field(child.name, array.type, child.nullable)
        for child, array in zip(field.children, children, strict=True)
    ]
    mask = parent.is_null() if parent.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
