"""Write the live rows of some fragments to new ones within a bounded memory.

Rows are read in windows, and files are closed and opened again behind them, so that mapped bytes do
not add up. In a table with stable row ids the new fragments carry the ids of their rows and both
versions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError
from lancetable.file.model import V2_1, file_version
from lancetable.format.manifest import Fragment, InlineSequence
from lancetable.format.manifest.rowids import encode_row_id_runs, encode_versions
from lancetable.fragment.copy import CopyTarget, copy_fragments
from lancetable.fragment.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.fragment.system import FIRST_VERSION
from lancetable.fragment.writer import (
    WriteOptions,
    remove_fragments,
    write_fragments,
)
from lancetable.operations.compact.options import SORT_COPIES, CompactOptions
from lancetable.operations.compact.order import Order, order_of, reordered
from lancetable.operations.compact.read import LEAST_SHARED, LiveRows
from lancetable.operations.input.file_version import table_options
from lancetable.operations.rows.move_rows import Numbers, has_stable_row_ids, target_of
from lancetable.operations.run.memory import collector_paused
from lancetable.operations.run.runner import AHEAD
from lancetable.scan.plan import plan
from lancetable.scan.request import MiB, ScanRequest

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
