"""Build one segment of an index from data, from older segments, or from both.

1. Read the column of some fragments and let the kind of index write a segment.
2. With older segments, let the kind merge them with the new one, whose files then go.
3. Where the kind cannot merge, or an older segment is damaged, build the segment from the data of
   all fragments.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from lancetable.commit.reuse import load_reuse
from lancetable.commit.snapshot import Snapshot
from lancetable.errors import CorruptError, FileNotFoundInStoreError, SchemaError
from lancetable.file.model import file_version
from lancetable.format.arrays import Mask
from lancetable.format.manifest import IndexSegment
from lancetable.format.manifest.indices.kinds import KINDS, holds_row_ids, kind_of
from lancetable.format.manifest.names import index_folder
from lancetable.format.manifest.reuse import FragmentReuse
from lancetable.format.manifest.roaring import encode_bitmap
from lancetable.format.rows import OFFSET_BITS
from lancetable.format.schema.project import path_of, resolve
from lancetable.format.schema.types import arrow_type, storage_type, without_extensions
from lancetable.fragment.projection import ROW_ADDRESS, ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.fragment.write.progress import Progress, ProgressCallback
from lancetable.index.base import ROW, VALUE, Numbers, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.registry import BUILT
from lancetable.index.sink import new_segment
from lancetable.index.specs import Spec, written_version
from lancetable.operations.index.describe import covered
from lancetable.operations.input.write import replaced_version
from lancetable.operations.rows.move_rows import has_stable_row_ids
from lancetable.operations.rows.parts import part_of
from lancetable.operations.run.runner import THREADS, Runner, run_steps
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.scanner import Scan

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """One new segment: fragments to read, and older segments to merge with them."""

    snapshot: Snapshot
    name: str
    column: str
    spec: Spec
    fragment_ids: frozenset[int]
    memory_bytes: int
    merged: tuple[IndexSegment, ...] = ()
    progress: ProgressCallback | None = None
    """Called with the rows read; it stays behind when the task goes to another process."""

    def __reduce__(self) -> tuple[object, ...]:
        values = (getattr(self, one.name) for one in fields(self) if one.name != "progress")
        return type(self), tuple(values)


def build_segment(task: SegmentTask) -> IndexSegment:
    """Write a segment and return its entry.

    Raises:
        CorruptError: a data file is damaged.
        StoreError: a file cannot be read or written; nothing stays behind.
    """
    if not task.merged:
        return _built(task)
    fresh = _built(replace(task, merged=())) if task.fragment_ids else None
    made = None
    try:
        made = _merged(task, fresh)
    except (CorruptError, FileNotFoundInStoreError) as fault:
        _log.warning("index %s is built from data: %s", task.name, fault)
    finally:
        if fresh is not None:
            remove_segment(task.snapshot, fresh)
    if made is not None:
        return made
    reuse = load_reuse(task.snapshot, task.snapshot.indices())
    ids = task.fragment_ids.union(*(covered(one, task.snapshot, reuse) for one in task.merged))
    return _built(replace(task, fragment_ids=ids, merged=()))


def build_segments(
    snapshot: Snapshot, tasks: Sequence[SegmentTask], runner: Runner | None
) -> list[IndexSegment]:
    """Write the segments of some tasks; after an error none of their files stays."""
    return run_steps(
        runner or THREADS, build_segment, tasks, lambda segment: remove_segment(snapshot, segment)
    )


def remove_segment(snapshot: Snapshot, segment: IndexSegment) -> None:
    """Remove the files of a segment that no version names."""
    from lancetable.commit.publish import discard  # noqa: PLC0415 - after failures only

    discard(snapshot.store, paths_of(segment))


def paths_of(segment: IndexSegment) -> list[str]:
    """Return the paths of the files of a new segment."""
    return [f"{index_folder(segment.uuid)}/{file.path}" for file in segment.files]


def _built(task: SegmentTask) -> IndexSegment:
    snapshot = task.snapshot
    type_, kind = column_type(snapshot, task.column), BUILT[task.spec.kind]
    with new_segment(snapshot.store, file_version(replaced_version(snapshot.manifest))) as sink:
        details = kind.build(_rows(task), type_, task.spec, sink, task.memory_bytes)
        files = tuple(sink.files)
    return _entry(task, sink.uuid, details)._replace(files=files)


def _merged(task: SegmentTask, fresh: IndexSegment | None) -> IndexSegment | None:
    snapshot = task.snapshot
    reuse = load_reuse(snapshot, snapshot.indices())
    readers = Readers(snapshot)
    sources, known = [], set(task.fragment_ids)
    for segment in task.merged:
        ids = covered(segment, snapshot, reuse)
        known |= ids
        sources.append(_source(snapshot, readers, segment, ids, reuse))
    if fresh is not None:
        new = SegmentFiles(snapshot.store, index_folder(fresh.uuid), fresh)
        sources.append(Source(new, lambda rows: (rows, np.ones(len(rows), np.bool_))))
    type_, kind = column_type(snapshot, task.column), BUILT[task.spec.kind]
    with new_segment(snapshot.store, file_version(replaced_version(snapshot.manifest))) as sink:
        details = kind.merge(sources, type_, task.spec, sink, task.memory_bytes)
        files = tuple(sink.files)
    if details is None:
        return None
    oldest = min(one.dataset_version for one in task.merged)
    entry = _entry(replace(task, fragment_ids=frozenset(known)), sink.uuid, details)
    return entry._replace(files=files, dataset_version=oldest)


def _entry(task: SegmentTask, uuid: str, details: bytes) -> IndexSegment:
    kind, snapshot = KINDS[task.spec.kind], task.snapshot
    is_stable = has_stable_row_ids(snapshot.manifest)
    return IndexSegment(
        uuid=uuid,
        name=task.name,
        fields=(resolve(snapshot.manifest.schema, task.column)[-1].id,),
        dataset_version=snapshot.version,
        fragment_bitmap=encode_bitmap(sorted(task.fragment_ids)),
        type_url=kind.type_url,
        details=details,
        index_version=written_version(task.spec, stable_row_ids=is_stable),
        created_at=datetime.now(UTC),
    )


def column_of(snapshot: Snapshot, segment: IndexSegment) -> str:
    """Return the path of the column that a segment is on.

    Raises:
        SchemaError: the column was dropped.
    """
    found = path_of(snapshot.manifest.schema, segment.fields[0])
    if found is None:
        raise SchemaError(
            f"index {segment.name!r} is on field {segment.fields[0]}, which the table does not "
            "have any more; drop the index"
        )
    return found


def column_type(snapshot: Snapshot, column: str) -> pa.DataType:
    """Return the type of the values of a column."""
    return storage_type(arrow_type(resolve(snapshot.manifest.schema, column)[-1]))


def _rows(task: SegmentTask) -> Iterator[pa.RecordBatch]:
    """Yield the live rows of the fragments of a task."""
    snapshot = task.snapshot
    kind = KINDS[task.spec.kind]
    is_stable = has_stable_row_ids(snapshot.manifest)
    has_ids = is_stable and kind.written(stable_row_ids=True) <= kind.row_ids
    fragments = [one for one in snapshot.manifest.fragments if one.id in task.fragment_ids]
    request = ScanRequest(columns=(task.column, ROW_ID if has_ids else ROW_ADDRESS))
    options = ScanOptions(memory_bytes=max(task.memory_bytes // 16, 1), lease_seconds=0)
    for batch in Scan(Readers(part_of(snapshot, fragments)), request, options).to_batches():
        values = without_extensions(batch.column(0))
        yield pa.RecordBatch.from_arrays([values, batch.column(1)], [VALUE, ROW])
        if task.progress is not None:
            task.progress(Progress(batch.num_rows))


def _source(
    snapshot: Snapshot,
    readers: Readers,
    segment: IndexSegment,
    known: Iterable[int],
    reuse: FragmentReuse | None,
) -> Source:
    """Return an older segment with the present rows of what it describes."""
    store, folder = snapshot.index_place(segment)
    kind = kind_of(segment)
    row_ids = readers.row_id_index
    holds_ids = row_ids is not None and holds_row_ids(segment)
    writes_ids = row_ids is not None and kind.written(stable_row_ids=True) <= kind.row_ids
    ids = np.array(sorted(known), np.uint64)

    def translate(rows: Numbers) -> tuple[Numbers, Mask]:
        if holds_ids and row_ids is not None:
            addresses, is_kept = row_ids.find(rows)
        elif reuse is not None:
            addresses, is_kept = reuse.translate(rows)
        else:
            addresses, is_kept = rows, np.ones(len(rows), np.bool_)
        is_kept = is_kept & np.isin(addresses >> np.uint64(OFFSET_BITS), ids)
        return (rows if writes_ids else addresses), is_kept

    return Source(SegmentFiles(store, folder, segment), translate)
