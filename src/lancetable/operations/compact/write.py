"""Move the live rows of some fragments to new ones within a bounded memory.

Rows are read in windows: neighbouring fragments that fit into one window are read together, large
ones in several windows, and the next window is read while the rows of the last one are written.
Files are closed and opened again behind them, so that mapped bytes do not add up. In a table with
stable row ids the new fragments carry the ids of their rows and both versions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError
from lancetable.file.model import V2_1, file_version
from lancetable.format.manifest import Fragment, InlineSequence
from lancetable.format.manifest.rowids import encode_row_id_runs, encode_versions
from lancetable.format.schema.model import Field
from lancetable.fragment.blobs import read_payloads
from lancetable.fragment.joined_files import read_live_together
from lancetable.fragment.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.fragment.select import Columns
from lancetable.fragment.system import FIRST_VERSION
from lancetable.fragment.write.copy import CopyTarget, copy_fragments
from lancetable.fragment.write.writer import (
    WriteOptions,
    remove_fragments,
    write_fragments,
)
from lancetable.operations.compact.options import SORT_COPIES, CompactOptions
from lancetable.operations.compact.order import Order, order_of, reordered
from lancetable.operations.input.write import table_options
from lancetable.operations.rows.move_rows import Numbers, has_stable_row_ids, target_of
from lancetable.operations.run.memory import collector_paused, give_back
from lancetable.operations.run.runner import AHEAD, read_ahead
from lancetable.scan.plan import ScanPlan, Window, plan, windows
from lancetable.scan.request import MiB, ScanRequest
from lancetable.scan.result import aligned, finish
from lancetable.scan.row_size import Pace, bytes_of, measured

_SHARES = 8
"""What a task reads at a time and what waits for its page take such a part of its memory each;
encoding takes copies of both."""
_MOST_PAGE = 8 * MiB


@dataclass(frozen=True, slots=True)
class CompactTask:
    """Fragments to be rewritten; ``part`` is the version with these fragments only."""

    part: Snapshot
    rows_per_file: int
    options: CompactOptions

    @property
    def window_bytes(self) -> int:
        """About how many bytes are decoded at a time."""
        return self.options.task_bytes // (_SHARES * AHEAD)

    @property
    def part_bytes(self) -> int:
        """About how many bytes of rows are put in order at a time."""
        return self.options.task_bytes // SORT_COPIES


class WrittenGroup(NamedTuple):
    """Result of a task."""

    fragments: list[Fragment]
    order: Order | None = None
    """For each new row its number among the live rows, if the order changed."""
    is_copied: bool = False


def write_group(task: CompactTask) -> WrittenGroup:
    """Write the rows of a task to new fragments; nothing stays when it fails.

    Raises:
        CorruptError: a file is damaged.
        StoreError: a file cannot be read or written.
    """
    with collector_paused(len(task.part.manifest.fragments)):
        return _write_group(task)


def _write_group(task: CompactTask) -> WrittenGroup:
    manifest = task.part.manifest
    options = _write_options(task, len(manifest.schema.fields))
    if task.options.copy_pages and not task.options.is_sorted:
        copied = _copied(task, options)
        if copied is not None:
            return WrittenGroup(_labelled(task.part, copied), is_copied=True)
    names = tuple(field.name for field in manifest.schema.fields)
    planned = plan(manifest.schema, ScanRequest(names, blobs="bytes"))
    order = _order(task) if task.options.is_sorted else None
    reading = LiveRows(planned, Readers(task.part), task.window_bytes)
    batches = reading.batches()
    if order is not None:
        batches = reordered(batches, order, partial(reading.rows_of, task.part_bytes))
    fragments = write_fragments(batches, manifest.schema, target_of(task.part), options)
    return WrittenGroup(_labelled(task.part, fragments, order), order)


def _copied(task: CompactTask, options: WriteOptions) -> list[Fragment] | None:
    part = task.part
    version = file_version(options.storage_version or str(V2_1))
    wanted = CopyTarget(part.manifest.schema, version, target_of(part), task.rows_per_file)
    return copy_fragments(part, part.manifest.fragments, wanted)


def _write_options(task: CompactTask, columns: int) -> WriteOptions:
    share = task.options.task_bytes // _SHARES
    limit = 2 * task.options.target_bytes
    most = task.options.max_bytes_per_file
    if most is not None:
        # Values that wait for their page count as they are, the written ones as they are encoded.
        share = min(share, max(most // _SHARES, MiB))
        limit = min(limit, most + share)
    wanted = WriteOptions(
        max_rows_per_file=task.rows_per_file,
        max_bytes_per_file=limit,
        page_bytes=min(max(share // max(columns, 1), LEAST_SHARED), _MOST_PAGE),
        pending_bytes=share,
    )
    return table_options(task.part.manifest, wanted)


def _order(task: CompactTask) -> Order:
    """Return the order that the rows of a task get."""
    names = (*task.options.sort_by, *task.options.z_order_by)
    planned = plan(task.part.manifest.schema, ScanRequest(names))
    reading = LiveRows(planned, Readers(task.part), task.window_bytes)
    order = order_of(pa.Table.from_batches(list(reading.batches())), task.options)
    # What the keys took is kept for later by the pool; reading the rows would take as much again.
    pa.default_memory_pool().release_unused()
    return order


def _labelled(
    part: Snapshot, fragments: list[Fragment], order: Order | None = None
) -> list[Fragment]:
    """Return new fragments with the ids of the live rows of a part and both their versions."""
    try:
        return _with_lineage(part, fragments, order)
    except BaseException:
        remove_fragments(fragments, target_of(part))
        raise


def _with_lineage(
    part: Snapshot, fragments: Sequence[Fragment], order: Order | None
) -> list[Fragment]:
    if not has_stable_row_ids(part.manifest):
        return list(fragments)
    readers = Readers(part)
    ids = _numbers(readers, ROW_ID, order)
    created = _numbers(readers, CREATED_AT, order)
    updated = _numbers(readers, LAST_UPDATED_AT, order)
    found, first = [], 0
    for fragment in fragments:
        rows = slice(first, first + fragment.physical_rows)
        first += fragment.physical_rows
        found.append(
            fragment._replace(
                row_ids=InlineSequence(encode_row_id_runs(ids[rows])),
                created_at=InlineSequence(encode_versions(created[rows])),
                last_updated_at=InlineSequence(encode_versions(updated[rows])),
            )
        )
    return found


def _numbers(readers: Readers, name: str, order: Order | None) -> Numbers:
    parts = []
    for position in range(len(readers)):
        opened = readers[position].opened
        stored = opened.sequence(name)
        if stored is None and name == ROW_ID:
            raise CorruptError(f"fragment {opened.fragment.id} has no row ids, its table has")
        if stored is None:
            stored = np.full(opened.rows, FIRST_VERSION, np.uint64)
        deletions = opened.deletions
        parts.append(stored if deletions is None else np.delete(stored, deletions.offsets))
    joined = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    return joined if order is None else joined[order]


LEAST_SHARED = 64 * 1024
"""Arrays from so many bytes on may look into a mapped file while they wait for their page."""


class _Read(NamedTuple):
    """Columns of the live rows of one window, or of all rows of neighbouring fragments."""

    position: int
    columns: Columns
    bytes_: int


@dataclass(frozen=True)
class LiveRows:
    """Reads the live rows of a part."""

    plan: ScanPlan
    readers: Readers
    window_bytes: int

    @cached_property
    def _pace(self) -> Pace:
        return measured((self.plan.early, self.plan.late), self.readers.source)

    def rows_of(self, bytes_: int) -> int:
        """Return how many rows take so many bytes, by what is known from those that were read."""
        return self._pace.rows(bytes_)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all live rows in order."""
        handled = 0
        fragments = self.readers.source.manifest.fragments
        for several in read_ahead(self._read, self._jobs(), fragments):
            while several:
                position, columns, bytes_ = several.pop(0)
                yield from self._finished(position, columns)
                # The encoded rows no longer need the mapped bytes.
                del columns
                self.readers[position].opened.release()
                handled += bytes_
                if handled >= AHEAD * self.window_bytes:
                    handled = 0
                    give_back()

    def _jobs(self) -> Iterator[range | Window]:
        """Yield what is read at a time: several whole fragments, or a window of one."""
        position = 0
        while position < len(self.readers):
            stop = self._fitting(position)
            if stop > position + 1 and not self.plan.blobs:
                yield range(position, stop)
            else:
                for each in range(position, stop):
                    yield from self._windows(each)
            position = stop

    def _fitting(self, first: int) -> int:
        """Return the end of the fragments that fit into one window, or of a single one."""
        fragments = self.readers.source.manifest.fragments
        room = self._pace.rows(self.window_bytes)
        stop = first
        while stop < len(fragments):
            room -= fragments[stop].physical_rows or room + 1
            if room < 0:
                break
            stop += 1
        return max(stop, first + 1)

    def _windows(self, position: int) -> Iterator[Window]:
        rows = self.readers[position].opened.rows
        start = 0
        while start < rows:
            step = self._pace.rows(self.window_bytes)
            window = next(windows(position, start, min(start + step, rows), step))
            yield window
            start = window.stop

    def _read(self, job: range | Window) -> list[_Read]:
        if isinstance(job, Window):
            return [self._window(job)]
        together = self._together(job)
        if together is not None:
            return [together]
        return [self._window(window) for position in job for window in self._windows(position)]

    def _together(self, positions: range) -> _Read | None:
        """Return the rows of several fragments; None when they must be read one by one."""
        readers = [self.readers[position] for position in positions]
        columns = read_live_together(readers, self.plan.late)
        for reader in readers:
            reader.opened.release()
        if columns is None:
            return None
        return self._learned(positions[0], columns, sum(map(len, columns[0])))

    def _window(self, window: Window) -> _Read:
        reader = self.readers[window.fragment]
        columns = reader.read_live(self.plan.late, window.start, window.stop)
        columns = [[_own(chunk) for chunk in column] for column in columns]
        return self._learned(window.fragment, columns, window.stop - window.start)

    def _learned(self, position: int, columns: Columns, rows: int) -> _Read:
        bytes_ = bytes_of(columns)
        self._pace.learn(rows, bytes_)
        return _Read(position, columns, bytes_)

    def _finished(self, position: int, columns: Columns) -> Iterator[pa.RecordBatch]:
        rows = sum(map(len, columns[0]))
        if not rows:
            return
        for batch in aligned(dict(zip(self.plan.names, columns, strict=True)), rows):
            for piece in self._pieces(batch):
                done = [[array] for array in piece.columns]
                for slot, field in self.plan.blobs:
                    opened = self.readers[position].opened
                    done[slot] = read_payloads(opened, field, done[slot])
                shown = finish(self.plan, piece.num_rows, done)
                names = self.plan.schema.names
                yield from aligned(dict(zip(names, shown.columns, strict=True)), shown.rows)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Cut a batch where the blobs of its rows are more than a window may hold."""
        weights = _blob_bytes(batch, self.plan.blobs)
        if weights is None or weights.sum() <= self.window_bytes:
            yield batch
            return
        first = held = 0
        for row, weight in enumerate(weights.tolist()):
            if row > first and held + weight > self.window_bytes:
                yield batch.slice(first, row - first)
                first, held = row, 0
            held += weight
        yield batch.slice(first)


def _own(array: pa.Array) -> pa.Array:
    """Return a small array in memory of its own; a large one is stored soon.

    Until its page is full an array may wait long, and one that looks into a mapped file keeps all
    of it that was read.
    """
    return pa.concat_arrays([array, array[:0]]) if array.nbytes < LEAST_SHARED else array


def _blob_bytes(batch: pa.RecordBatch, blobs: Sequence[tuple[int, Field]]) -> Numbers | None:
    """Return the bytes of the blobs of each row, for top-level columns."""
    found = None
    for slot, field in blobs:
        if field.is_blob:
            sizes = pc.fill_null(pc.struct_field(batch.column(slot), ["size"]), 0)
            numbers = sizes.to_numpy(zero_copy_only=False).astype(np.uint64)
            found = numbers if found is None else found + numbers
    return found
