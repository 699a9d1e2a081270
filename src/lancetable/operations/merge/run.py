"""Merge: change, delete and insert rows by comparing a source with the table on key columns.

1. Collect the clauses with a ``MergeBuilder``; nothing happens before its ``execute``.
2. Keep the rows of the source: in memory, or on disk in parts that each fit into it.
3. For each part find the table's rows with its keys, decide which clause acts on which row, and
   write changed rows, then inserted ones. Rows of the source that match nothing may be inserted;
   with the last part it is known which rows of the table match nothing.
4. Mark the rows that are changed or deleted.
5. Commit all of it as one Update that names the inserted keys, so that of two merges that insert
   one key only one lands; the other starts again and finds the key. New columns need a Merge of
   all fragments instead, which no other change of rows can pass either.
Without anything to do no version is made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Operation
from lancetable.errors import ConflictError, InputError
from lancetable.expression import Expression
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.write.writer import with_total
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.assign import parse_assignments
from lancetable.operations.input.fit import read_rows, write_type
from lancetable.operations.input.write import check_stored, keep_or_remove, table_options
from lancetable.operations.keys.join import SourceKeys, source_keys
from lancetable.operations.keys.keys import InsertedKeys
from lancetable.operations.keys.spill import RowBuffer, keep
from lancetable.operations.merge.clauses import (
    Act,
    BoundClause,
    Clause,
    When,
    bind_clauses,
    set_fields,
)
from lancetable.operations.merge.match_rows import MergePlan, MergeWork
from lancetable.operations.merge.source import SourcePlan, check_keys, merged_schema, plan_source
from lancetable.operations.prepared_transaction import PreparedTransaction, prepare_transaction
from lancetable.operations.results import ChangeOptions, Done, MergeResult
from lancetable.operations.rows.mark_deleted import Marks, marked_rows
from lancetable.operations.rows.move_rows import target_of
from lancetable.operations.rows.new_fragments import merge_of_all
from lancetable.options import byte_size
from lancetable.scan.request import Where, parse_where

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
    schema: Schema
    """Of the table after the merge, as the clauses are bound to it."""
    bound: tuple[BoundClause, ...]
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
    source = read_rows(data, snapshot.manifest.schema)

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
    bound = bind_clauses(clauses, schema, planned.kept)
    keys = source_keys(planned.fit.schema, on)
    parts = spread(planned, keys)
    job = _Job(tuple(on), tuple(clauses), options, source, schema, bound, planned, keys, parts)
    return repeat_and_cover(
        snapshot,
        lambda latest: _attempt(latest, job),
        options.change.commit,
        options.change.runner,
    )


def _attempt(snapshot: Snapshot, job: _Job) -> Done[MergeResult]:
    plan = _plan(snapshot, job)
    old = snapshot.manifest.schema
    ids = check_keys(old, job.on)
    fragments: list[Fragment] = []
    change = job.options.change
    with keep_or_remove(fragments, target_of(snapshot)):
        work = job.spread.run(plan, job.plan, fragments)
        if not work.changed and not fragments and plan.schema is old:
            nothing = MergeResult(
                snapshot.version,
                casts=job.plan.fit.casts,
                fragments_scanned=work.scanned,
                is_new_version=False,
            )
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
            work.scanned,
        ),
    )


def _plan(snapshot: Snapshot, job: _Job) -> MergePlan:
    options = job.options
    schema = merged_schema(snapshot, job.source, job.clauses, evolves=options.evolves_schema)
    write = table_options(snapshot.manifest, options.change.write)
    if schema is not snapshot.manifest.schema:
        check_stored(schema, write)
    bound = job.bound
    if schema != job.schema:
        _refuse_retyped(schema, job)
        bound = bind_clauses(job.clauses, schema, job.plan.kept)
    return MergePlan(
        snapshot,
        schema,
        job.on,
        job.keys,
        bound,
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
        fields_for_preserving_frag_bitmap=set_fields(plan.clauses, manifest.schema),
        inserted_rows=work.inserted_keys.filter(ids),
    )


Values = Mapping[str, str | Expression]


@dataclass(frozen=True, slots=True)
class MergeBuilder:
    """A merge in the making.

    Clauses are tried in the order they were added; for each row the first of its kind whose
    condition holds acts, and a row for which none does stays as it is. Conditions and values are
    SQL in which ``source.x`` and ``target.x`` name the columns of the two sides.
    """

    run: Callable[[tuple[Clause, ...], MergeOptions], Done[MergeResult]]
    options: MergeOptions
    clauses: tuple[Clause, ...] = ()
    moved: Callable[[Snapshot], None] | None = None
    """Called with the new version."""

    def _add(self, when: When, act: Act, values: Values | None, condition: Where) -> "MergeBuilder":
        parsed = None if values is None else parse_assignments(values)
        clause = Clause(when, act, parsed, parse_where(condition))
        return replace(self, clauses=(*self.clauses, clause))

    def when_matched_update_all(self, condition: Where = None) -> "MergeBuilder":
        """Set all columns that the source has."""
        return self._add(When.MATCHED, Act.UPDATE, None, condition)

    def when_matched_update(self, set: Values, condition: Where = None) -> "MergeBuilder":  # noqa: A002
        """Set some columns, or parts of structs by their paths, to SQL expressions."""
        return self._add(When.MATCHED, Act.UPDATE, set, condition)

    def when_matched_delete(self, condition: Where = None) -> "MergeBuilder":
        """Delete the row of the table."""
        return self._add(When.MATCHED, Act.DELETE, None, condition)

    def when_matched_fail(self, condition: Where = None) -> "MergeBuilder":
        """Refuse the whole merge when a row of the source matches one of the table.

        With ``when_not_matched_insert_all`` that is an insert which never repeats a key.
        """
        return self._add(When.MATCHED, Act.FAIL, None, condition)

    def when_not_matched_insert_all(self, condition: Where = None) -> "MergeBuilder":
        """Insert rows of the source that match no row of the table."""
        return self._add(When.NOT_MATCHED, Act.INSERT, None, condition)

    def when_not_matched_insert(self, values: Values, condition: Where = None) -> "MergeBuilder":
        """Insert a row made of SQL expressions; columns that are not named are null."""
        return self._add(When.NOT_MATCHED, Act.INSERT, values, condition)

    def when_not_matched_by_source_delete(self, condition: Where = None) -> "MergeBuilder":
        """Delete rows of the table that no row of the source matches."""
        return self._add(When.NOT_MATCHED_BY_SOURCE, Act.DELETE, None, condition)

    def when_not_matched_by_source_update(
        self,
        set: Values,  # noqa: A002 - the word of SQL
        condition: Where = None,
    ) -> "MergeBuilder":
        """Set columns of rows of the table that no row of the source matches."""
        return self._add(When.NOT_MATCHED_BY_SOURCE, Act.UPDATE, set, condition)

    def with_schema_evolution(self) -> "MergeBuilder":
        """Add the columns of the source that the table lacks."""
        return replace(self, options=replace(self.options, evolves_schema=True))

    def with_duplicates(self) -> "MergeBuilder":
        """Let several rows of the source be inserted with one key."""
        return replace(self, options=replace(self.options, allows_duplicates=True))

    def with_memory(
        self, memory_bytes: int | str, *, spill_folder: str | None = None
    ) -> "MergeBuilder":
        """Use about this much memory for the source; the default is 512 MiB.

        ``memory_bytes`` is a number or text such as ``256MB``. A larger source goes through
        unnamed files in ``spill_folder``, by default the folder for temporary files. The result is
        the same; each part of the source that fits into memory reads the keys of the table once.
        """
        size = byte_size(memory_bytes)
        changed = replace(self.options, memory_bytes=size, spill_folder=spill_folder)
        return replace(self, options=changed)

    def execute(self) -> MergeResult:
        """Carry the merge out."""
        done = self.run(self.clauses, self.options)
        if self.moved is not None:
            self.moved(done.snapshot)
        return done.result

    def execute_uncommitted(self) -> PreparedTransaction[MergeResult]:
        """Carry the merge out without making a version; ``Table.commit_prepared`` makes it one.

        The result can be pickled and committed by another process. Its files are written; if it is
        never committed, a cleanup removes them when they are old enough.
        """

        def change(options: ChangeOptions) -> Done[MergeResult]:
            return self.run(self.clauses, replace(self.options, change=options))

        return prepare_transaction(self.options.change, change)
