"""Merge: change, delete and insert rows by comparing a source with the table on key columns.

1. Keep the rows of the source: in memory, or on disk in parts that each fit into it.
2. For each part find the table's rows with its keys, decide which clause acts on which row, and
   write changed rows, then inserted ones. Rows of the source that match nothing may be inserted;
   with the last part it is known which rows of the table match nothing.
3. Mark the rows that are changed or deleted.
4. Commit all of it as one Update that names the inserted keys, so that of two merges that insert
   one key only one lands; the other starts again and finds the key. New columns need a Merge of
   all fragments instead, which no other change of rows can pass either.
Without anything to do no version is made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.errors import ConflictError, InputError
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.writer import with_total
from lancetable.operations.input.file_version import check_stored, table_options
from lancetable.operations.input.fit import write_schema, write_type
from lancetable.operations.input.sources import read_source
from lancetable.operations.input.write import keep_or_remove
from lancetable.operations.keys.keys import InsertedKeys
from lancetable.operations.keys.row_buffer import RowBuffer
from lancetable.operations.keys.source_keys import SourceKeys, source_keys
from lancetable.operations.keys.spill import keep
from lancetable.operations.merge.clauses import Clause, bind_clauses
from lancetable.operations.merge.match_rows import MergePlan, MergeWork
from lancetable.operations.merge.source import SourcePlan, check_keys, merged_schema, plan_source
from lancetable.operations.results import ChangeOptions, Done, MergeResult
from lancetable.operations.retry import repeat
from lancetable.operations.rows.mark_deleted import Marks, marked_rows
from lancetable.operations.rows.move_rows import target_of
from lancetable.operations.rows.new_fragments import merge_of_all

MiB = 1024**2


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Options of a merge."""

    change: ChangeOptions = field(default_factory=ChangeOptions)
    memory_bytes: int = 512 * MiB
    """About how many bytes may be used for the rows of the source and what is known of them.

    A larger source goes through files on disk; each part of it costs a look at the table's keys.
    """
    spill_folder: str | None = None
    """Where these files go; by default where the system keeps temporary files."""
    evolves_schema: bool = False
    """Add the columns of the source that the table lacks."""
    allows_duplicates: bool = False
    """Insert all rows of the source that share a key which the table does not have."""

    def __post_init__(self) -> None:
        if self.memory_bytes < 1:
            raise InputError(f"memory_bytes is {self.memory_bytes}; give a number of bytes from 1")


class _Job(NamedTuple):
    on: tuple[str, ...]
    clauses: tuple[Clause, ...]
    options: MergeOptions
    source: pa.Schema
    plan: SourcePlan
    keys: SourceKeys
    spread: "Spread"


class Spread(Protocol):
    """Runner for a source whose parts are elsewhere."""

    def run(self, plan: MergePlan, source: SourcePlan, fragments: list[Fragment]) -> MergeWork:
        """Return the results of all rows; new fragments are noted as soon as they are known."""
        ...


@dataclass(frozen=True, slots=True)
class _Here:
    """Parts that are taken one after the other, in this process."""

    parts: list[RowBuffer]

    def run(self, plan: MergePlan, source: SourcePlan, fragments: list[Fragment]) -> MergeWork:
        del source
        keys = InsertedKeys(sum(part.rows for part in self.parts))
        work = MergeWork(plan, keys, fragments)
        for number, part in enumerate(self.parts, 1):
            work.take_part(part, is_last=number == len(self.parts))
            part.release()
        return work


def merge(
    snapshot: Snapshot,
    data: object,
    on: Sequence[str],
    clauses: Sequence[Clause],
    options: MergeOptions,
) -> Done[MergeResult]:
    """Merge rows into a table.

    Raises:
        SchemaError: the columns do not fit the table.
        ExpressionError: a condition or a value does not fit the columns.
        InputError: rows of the source share a key, or a value does not fit its column.
        CommitError: nothing was changed.
    """
    source = read_source(data, write_schema(snapshot.manifest.schema))

    def spread(planned: SourcePlan, keys: SourceKeys) -> Spread:
        parts = keep(
            planned.kept,
            planned.batches(source),
            options.memory_bytes,
            keys=keys.of,
            folder=options.spill_folder,
        )
        return _Here(parts)

    return merge_spread(snapshot, source.schema, on, clauses, options, spread)


def merge_spread(
    snapshot: Snapshot,
    source: pa.Schema,
    on: Sequence[str],
    clauses: Sequence[Clause],
    options: MergeOptions,
    spread: Callable[[SourcePlan, SourceKeys], Spread],
) -> Done[MergeResult]:
    """Merge rows of a schema, wherever they are, into a table.

    Raises:
        SchemaError: the columns do not fit the table.
        ExpressionError: a condition or a value does not fit the columns.
        InputError: rows of the source share a key, or a value does not fit its column.
        CommitError: nothing was changed.
    """
    if not clauses:
        raise InputError("the merge has no clause; say what to do, e.g. when_matched_update_all()")
    check_keys(snapshot.manifest.schema, on)
    schema = merged_schema(snapshot, source, clauses, evolves=options.evolves_schema)
    planned = plan_source(source, schema, on, clauses)
    bind_clauses(clauses, schema, planned.kept)
    keys = source_keys(planned.fit.schema, on)
    job = _Job(tuple(on), tuple(clauses), options, source, planned, keys, spread(planned, keys))
    return repeat(snapshot, lambda latest: _attempt(latest, job), options.change.commit)


def _attempt(snapshot: Snapshot, job: _Job) -> Done[MergeResult]:
    plan = _plan(snapshot, job)
    old = snapshot.manifest.schema
    ids = check_keys(old, job.on)
    fragments: list[Fragment] = []
    change = job.options.change
    with keep_or_remove(fragments, target_of(snapshot)):
        work = job.spread.run(plan, job.plan, fragments)
        if not work.changed and not fragments and plan.schema is old:
            nothing = MergeResult(snapshot.version, casts=job.plan.fit.casts, is_new_version=False)
            return Done(snapshot, nothing)
        with marked_rows(snapshot, work.changed, change.runner) as marks:
            made = change.make_version(
                snapshot,
                _operation(plan, work, fragments, marks, ids),
                change.commit,
                affected=marks.affected if plan.schema is old else None,
            )
    return Done(
        made.snapshot,
        MergeResult(
            made.snapshot.version,
            work.inserted,
            work.updated,
            work.deleted,
            made.attempts,
            job.plan.fit.casts,
        ),
    )


def _plan(snapshot: Snapshot, job: _Job) -> MergePlan:
    options = job.options
    schema = merged_schema(snapshot, job.source, job.clauses, evolves=options.evolves_schema)
    _refuse_retyped(schema, job)
    check_stored(schema, table_options(snapshot.manifest, options.change.write))
    return MergePlan(
        snapshot,
        schema,
        job.on,
        job.keys,
        bind_clauses(job.clauses, schema, job.plan.kept),
        with_total(options.change.write),
        options.change.runner,
        options.memory_bytes,
        options.allows_duplicates,
    )


def _refuse_retyped(schema: Schema, job: _Job) -> None:
    """Check that the kept rows still have the types of the table."""
    known = {one.name: one for one in schema.fields}
    for one in job.plan.fit.schema.fields:
        if one.name not in known or write_type(known[one.name]) != write_type(one):
            raise ConflictError(
                f"another writer retyped or dropped column {one.name!r}; merge again"
            )


def _operation(
    plan: MergePlan, work: MergeWork, fragments: list[Fragment], marks: Marks, ids: tuple[int, ...]
) -> Operation:
    manifest = plan.snapshot.manifest
    if plan.schema is not manifest.schema:
        return merge_of_all(manifest, plan.schema, fragments, marks)
    return replace(
        marks.update(fragments),
        fields_for_preserving_frag_bitmap=tuple(one.id for one in manifest.schema.walk()),
        inserted_rows=work.inserted_keys.filter(ids),
    )
