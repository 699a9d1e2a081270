"""Mark rows as deleted: write larger deletion files for the fragments that lose them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete, Update
from lancetable.format.manifest import Fragment
from lancetable.fragment.deletions import write_deletions
from lancetable.fragment.readers import Readers
from lancetable.operations.rows.find_rows import Found
from lancetable.operations.rows.parts import RowSet, part_of, parts
from lancetable.operations.run.runner import Runner, own_files, run_steps
from lancetable.store import spread


@dataclass(frozen=True, slots=True)
class MarkTask:
    """Rows of some fragments to delete."""

    part: Snapshot
    rows: Mapping[int, RowSet]


class Marked(NamedTuple):
    """A fragment that lost rows; ``fragment`` is ``None`` when none is left."""

    id: int
    rows: RowSet
    fragment: Fragment | None
    path: str | None
    """The new deletion file."""


class Marks(tuple[Marked, ...]):
    """All fragments that lose rows in one change."""

    __slots__ = ()

    @property
    def updated(self) -> tuple[Fragment, ...]:
        """The fragments that keep some rows, with their new deletion files."""
        return tuple([one.fragment for one in self if one.fragment is not None])

    @property
    def removed(self) -> tuple[int, ...]:
        """The ids of the fragments that keep no row."""
        return tuple([one.id for one in self if one.fragment is None])

    @property
    def affected(self) -> dict[int, RowSet]:
        """The rows that the remaining fragments lose, by fragment id."""
        return {one.id: one.rows for one in self if one.fragment is not None}

    @property
    def paths(self) -> tuple[str, ...]:
        """The new deletion files."""
        return tuple([one.path for one in self if one.path is not None])

    def delete(self, predicate: str) -> Delete:
        """Return the operation that deletes the rows."""
        return Delete(self.updated, self.removed, predicate)

    def update(self, new_fragments: Sequence[Fragment]) -> Update:
        """Return the operation that deletes the rows and adds new fragments."""
        return Update(self.removed, self.updated, tuple(new_fragments))


@contextmanager
def marked_rows(snapshot: Snapshot, rows: Mapping[int, RowSet], runner: Runner) -> Iterator[Marks]:
    """Mark rows; remove the new deletion files when their commit is known to have failed."""
    with own_files(snapshot.store) as files:
        marks = mark_rows(snapshot, rows, runner)
        files.extend(marks.paths)
        yield marks


def rows_by_fragment(found: Sequence[Found]) -> dict[int, RowSet]:
    """Return the rows that were found, by fragment id."""
    return {one.fragment.id: one.rows for one in found}


def mark_rows(snapshot: Snapshot, rows: Mapping[int, RowSet], runner: Runner) -> Marks:
    """Write the deletion files of all fragments that lose some live rows."""
    tasks = plan_mark(snapshot, rows)
    results = run_steps(runner, mark_deleted, tasks, lambda marked: undo_marks(snapshot, marked))
    return Marks([one for each in results for one in each])


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
        StoreError: a file cannot be written; the files written so far are removed.
    """
    part, readers = task.part, Readers(task.part)
    failed: list[BaseException] = []

    def mark(position: int) -> Marked | None:
        if failed:
            return None
        try:
            return _mark(part, readers, position, task.rows[part.manifest.fragments[position].id])
        except BaseException as error:
            # Raised after all threads have ended, so that the files of all of them are removed.
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
    known = fragment.live_rows
    if len(rows) == (readers.live_rows(position) if known is None else known):
        return Marked(fragment.id, rows, None, None)
    opened = readers[position].opened
    deletions = opened.deletions
    offsets = rows.offsets()
    gone = offsets if deletions is None else np.union1d(deletions.offsets, offsets)
    made = write_deletions(part.store, fragment, gone, read_version=part.version)
    changed = fragment._replace(deletion_file=made.file, physical_rows=opened.rows)
    return Marked(fragment.id, rows, changed, made.path)


def undo_marks(part: Snapshot, marked: Sequence[Marked]) -> None:
    """Remove the deletion files of a change that was not committed."""
    for one in marked:
        if one.path is not None:
            part.store.delete(one.path)
