"""Write the rows of a source as new fragments, which no version names yet.

Rows in memory that fill several files are written by several threads, one file each; all other
sources are one stream, so that only the pages of one file are in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from lancetable.commit.leases import extend_lease
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import shown
from lancetable.errors import (
    ConflictError,
    InputError,
    UnknownOutcomeError,
)
from lancetable.format.manifest import BasePath, Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.writer import (
    WriteOptions,
    WriteTarget,
    remove_fragments,
    with_total,
    write_fragments,
)
from lancetable.operations.input.fit import Fit, fit
from lancetable.operations.input.sources import RowSource
from lancetable.operations.run.runner import THREADS, Runner
from lancetable.operations.run.steps import run_steps
from lancetable.store import Store, TableLocation, spread

DEFAULT_WRITE = WriteOptions()
DEFAULT_COMMIT = CommitOptions()


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Rows of one or more new files."""

    table: pa.Table
    schema: Schema
    target: WriteTarget
    options: WriteOptions


def write_part(task: WriteTask) -> list[Fragment]:
    """Write the rows of a task, whose columns are brought to the task's schema first."""
    fitted = fit(task.table.schema, task.schema, is_complete=False)
    batches = map(fitted.apply, task.table.to_batches())
    return write_fragments(batches, fitted.schema, task.target, task.options)


def write_source(
    source: RowSource,
    fitted: Fit,
    target: WriteTarget,
    options: WriteOptions,
    runner: Runner = THREADS,
) -> list[Fragment]:
    """Write all rows of a source; nothing stays when it fails.

    Raises:
        InputError: a value does not fit its column.
        StoreError: the files cannot be written.
    """
    options = with_total(options)
    table, each = source.table, options.max_rows_per_file
    if table is None or table.num_rows <= each or table.nbytes > options.max_bytes_per_file:
        batches = map(fitted.apply, _extending_lease(source.batches))
        return write_fragments(batches, fitted.schema, target, options)
    tasks = (
        WriteTask(table.slice(first, each), fitted.schema, target.turned(first // each), options)
        for first in range(0, table.num_rows, each)
    )
    written = run_steps(runner, write_part, tasks, lambda made: remove_fragments(made, target))
    return [fragment for made in written for fragment in made]


def _extending_lease(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a source that may take long to give them."""
    for batch in batches:
        extend_lease()
        yield batch


def write_target(
    location: TableLocation, store: Store, bases: Sequence[BasePath], options: WriteOptions
) -> WriteTarget:
    """Return where new files of rows go: the table itself, or the bases that options name.

    Raises:
        InputError: the table has no such base.
    """
    places = [_place(location, bases, wish) for wish in options.target_bases]
    if not places:
        return WriteTarget(store)
    return places[0]._replace(others=tuple(places[1:]))


def _place(location: TableLocation, bases: Sequence[BasePath], wish: str) -> WriteTarget:
    for base in bases:
        if wish in {base.name, base.path}:
            store = location.followed(base.path, "base path").open()
            return WriteTarget(store, "data" if base.is_dataset_root else "", base.id)
    known = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    raise InputError(f"the table has no base {wish!r}; known are: {known}")


@contextmanager
def keep_or_remove(fragments: list[Fragment], target: WriteTarget) -> Iterator[None]:
    """Remove the files of new fragments when their commit is known to have failed.

    An interrupt leaves open whether the version was made, so its files stay.
    """
    try:
        yield
    except UnknownOutcomeError:
        raise
    except Exception:
        remove_fragments(fragments, target)
        raise


def check_files_there(places: Sequence[tuple[Store, str]], what: str) -> None:
    """Check that no file that was written for a later commit was removed meanwhile.

    Raises:
        ConflictError: one is missing; ``what`` names its owner in the message.
    """
    width = max((store.width for store, _ in places), default=1)
    found = spread(lambda place: place[0].exists(place[1]), places, width)
    for (store, path), is_there in zip(places, found, strict=True):
        if not is_there:
            raise ConflictError(
                f"file {shown(store, path)!r} of {what} is gone: a cleanup removed it, or it was "
                "committed before; look at the table and do the work again",
                retryable=True,
            )
