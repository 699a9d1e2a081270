"""Which rows does a predicate hold for, and what becomes of the fragments that lose them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.expression import Expression, Literal
from lancetable.format.manifest import Fragment
from lancetable.format.rows import MAX_OFFSET, OFFSET_BITS
from lancetable.fragment.counts import live_rows
from lancetable.fragment.deletions import write_deletions
from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.fragment.readers import Readers
from lancetable.operations.collector import collector_paused
from lancetable.operations.parts import Offsets, part_of, parts, suited
from lancetable.operations.rowset import RowSet
from lancetable.operations.runner import Runner
from lancetable.operations.steps import run_steps
from lancetable.scan import execute
from lancetable.scan.columns import bound_predicate
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.store import spread

Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class FindTask:
    """A part of a table in which rows are looked for; ``None`` finds every row."""

    part: Snapshot
    where: Expression | None
    threads: int = 1


class Found(NamedTuple):
    """The live rows of one fragment that were found."""

    fragment: Fragment
    rows: RowSet
    is_all: bool
    """True when no live row is left out."""


def plan_find(snapshot: Snapshot, where: Expression | None) -> list[FindTask]:
    """Return one task for each part of a version that may hold a match.

    Raises:
        ExpressionError: the predicate does not fit the columns.
    """
    bound = None if where is None else bound_predicate(where, snapshot.manifest.schema)
    if isinstance(bound, Literal) and bound.value is not True:
        return []
    wanted = None if isinstance(bound, Literal) else where
    found = list(parts(snapshot))
    threads = ScanOptions().threads if len(found) == 1 else 1
    return [FindTask(part, wanted, threads) for part in found]


def find_rows(task: FindTask) -> list[Found]:
    """Return the rows of a part for which the predicate holds, by fragment."""
    if task.where is None:
        return list(_everything(task.part))
    readers = Readers(task.part)
    planned = plan(task.part.manifest.schema, ScanRequest(columns=(ROW_ADDRESS,), where=task.where))
    options = ScanOptions(threads=task.threads)
    pieces = execute.run(planned, readers, options, is_stream=True)
    with collector_paused(len(readers)):
        chunks = [chunk for piece in pieces for chunk in piece.columns[0]]
    if not chunks:
        return []
    addresses = pa.chunked_array(chunks).to_numpy().astype(np.uint64, copy=False)
    found = []
    for id_, offsets in by_fragment(addresses).items():
        position = readers.positions[id_]
        live = readers.live_rows(position)
        fragment = task.part.manifest.fragments[position]
        found.append(Found(fragment, RowSet.of(offsets), len(offsets) == live))
    return found


def find_all(runner: Runner, tasks: Sequence[FindTask]) -> list[Found]:
    """Return what all tasks find."""
    suited_to = suited(runner, [task.part for task in tasks])
    return [one for each in run_steps(suited_to, find_rows, tasks) for one in each]


def _everything(part: Snapshot) -> Iterator[Found]:
    readers = Readers(part)
    for position, fragment in enumerate(part.manifest.fragments):
        offsets = readers[position].live_offsets(0, readers[position].opened.rows)
        if len(offsets):
            yield Found(fragment, RowSet.of(offsets), is_all=True)


def by_fragment(addresses: Addresses) -> dict[int, Offsets]:
    """Return ascending addresses as offsets by fragment."""
    ids = (addresses >> np.uint64(OFFSET_BITS)).astype(np.int64)
    offsets = (addresses & np.uint64(MAX_OFFSET)).astype(np.int64)
    edges = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1]))) if len(ids) else ids
    ends = [*edges[1:].tolist(), len(ids)]
    return {
        int(ids[first]): offsets[first:end]
        for first, end in zip(edges.tolist(), ends, strict=False)
    }


@dataclass(frozen=True, slots=True)
class MarkTask:
    """Rows of some fragments that are to be deleted."""

    part: Snapshot
    rows: Mapping[int, RowSet]


class Marked(NamedTuple):
    """A fragment that lost rows; ``fragment`` is ``None`` when none is left."""

    id: int
    rows: RowSet
    fragment: Fragment | None
    path: str | None
    """The new deletion file."""


def plan_mark(snapshot: Snapshot, rows: Mapping[int, RowSet]) -> list[MarkTask]:
    """Return tasks that delete the given rows."""
    touched = [one for one in snapshot.manifest.fragments if one.id in rows and len(rows[one.id])]
    return [
        MarkTask(part, {one.id: rows[one.id] for one in part.manifest.fragments})
        for part in parts(part_of(snapshot, touched))
    ]


def mark_deleted(task: MarkTask) -> list[Marked]:
    """Write larger deletion files for the fragments of a task.

    Raises:
        StoreError: a file cannot be written; none stays behind.
    """
    part, readers = task.part, Readers(task.part)
    failed: list[BaseException] = []

    def mark(position: int) -> Marked | None:
        if failed:
            return None
        try:
            return _mark(part, readers, position, task.rows[part.manifest.fragments[position].id])
        except BaseException as error:
            # Kept until all are done, so that what others wrote meanwhile is undone, too.
            failed.append(error)
            return None

    done = spread(mark, range(len(readers)), part.store.width)
    marked = [one for one in done if one is not None]
    if failed:
        undo_marks(part, marked)
        raise failed[0]
    return marked


def _mark(part: Snapshot, readers: Readers, position: int, rows: RowSet) -> Marked:
    fragment = part.manifest.fragments[position]
    known = live_rows(fragment)
    if len(rows) == (readers.live_rows(position) if known is None else known):
        return Marked(fragment.id, rows, None, None)
    opened = readers[position].opened
    deletions = opened.deletions
    offsets = rows.offsets()
    gone = offsets if deletions is None else np.union1d(deletions.offsets, offsets)
    made = write_deletions(part.store, fragment, gone, read_version=part.version)
    changed = fragment._replace(deletion_file=made.file, physical_rows=opened.rows)
    return Marked(fragment.id, rows, changed, made.path)


def undo_marks(part: Snapshot, marked: list[Marked]) -> None:
    """Remove the deletion files of fragments that no version will name."""
    for one in marked:
        if one.path is not None:
            part.store.delete(one.path)
