"""Overwrite: new rows instead of the old ones, all of them or those that match a predicate.

1. All: take the schema of the data, write its rows as fragments, commit an Overwrite. Versions,
   tags and the configuration stay; ids of fragments go on counting.
2. Some: write the new rows of the table's own schema and check that all of them match, find the
   rows that match and mark them as deleted, commit both as one Update.
Of two writers who overwrite everything the later one wins; both versions are kept.
"""

from typing import TYPE_CHECKING

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete, Overwrite
from lancetable.expression import Expression, to_sql
from lancetable.format.manifest.codec import live_rows
from lancetable.fragment.write.writer import DEFAULT_WRITE, WriteOptions
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.prepare import prepare_replacement
from lancetable.operations.input.write import (
    keep_or_remove,
    next_field_id,
    pending_rows,
    replaced_version,
    write_source,
    write_target,
)
from lancetable.operations.results import ChangeOptions, Done, WriteResult
from lancetable.operations.retry import repeat, write_version
from lancetable.operations.rows.find_rows import (
    find_unmatched,
    plan_find,
    refuse_system_columns,
    refuse_unmatched,
)
from lancetable.operations.rows.new_fragments import commit_replacing
from lancetable.operations.run.runner import THREADS, Runner

if TYPE_CHECKING:
    from lancetable.format.manifest import Fragment


def overwrite(
    snapshot: Snapshot,
    data: object,
    *,
    write: WriteOptions = DEFAULT_WRITE,
    commit: CommitOptions = DEFAULT_COMMIT,
    runner: Runner = THREADS,
) -> Done[WriteResult]:
    """Replace all rows and the schema of a table.

    Raises:
        SchemaError: a column cannot be stored.
        InputError: the data is of no kind that holds rows.
        CommitError: the rows did not become a version.
    """
    manifest = snapshot.manifest
    lasting = manifest.max_allocated_field_id is not None
    prepared = prepare_replacement(
        data,
        manifest.schema,
        write,
        old_version=replaced_version(manifest),
        first_id=next_field_id(manifest) if lasting else 0,
    )
    target = write_target(snapshot.location, snapshot.store, manifest.base_paths, write)
    fragments: list[Fragment] = []

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        made = commit_operation(
            latest,
            Overwrite(fragments, prepared.schema),
            commit,
            storage_version=prepared.options.storage_version,
        )
        rows = sum(fragment.physical_rows for fragment in fragments)
        result = WriteResult(made.snapshot.version, rows, made.attempts, prepared.fit.casts)
        return Done(made.snapshot, result)

    with keep_or_remove(fragments, target):
        fragments += write_source(prepared.source, prepared.fit, target, prepared.options, runner)
        return repeat(snapshot, attempt, commit)


def overwrite_where(
    snapshot: Snapshot,
    data: object,
    where: Expression,
    options: ChangeOptions,
    *,
    check: bool = True,
) -> Done[WriteResult]:
    """Replace the rows for which a predicate holds; the columns stay those of the table.

    With ``check`` the new rows must match the predicate, so that a repeated call replaces them.

    Raises:
        ExpressionError: the predicate cannot be bound to the columns.
        InputError: a new row does not match the predicate; nothing was written.
        SchemaError: the columns of the data do not fit.
        CommitError: the rows were not replaced.
    """
    if check:
        refuse_system_columns(where, snapshot.manifest.schema)
    pending = pending_rows(snapshot, data, options.write, options.runner)

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        tasks = plan_find(latest, where)
        casts = pending.write(latest.manifest.schema).casts
        if check:
            missed = find_unmatched(latest, pending.fragments, where, options.runner)
            refuse_unmatched([missed], to_sql(where), "write them with check=False")
        made = commit_replacing(latest, tasks, pending.fragments, options)
        result = WriteResult(made.snapshot.version, pending.rows, made.attempts, casts)
        return Done(made.snapshot, result)

    with keep_or_remove(pending.fragments, pending.target):
        return repeat_and_cover(snapshot, attempt, options.commit, options.runner)


def truncate(snapshot: Snapshot, *, commit: CommitOptions = DEFAULT_COMMIT) -> Done[WriteResult]:
    """Remove all rows of a table.

    Raises:
        CommitError: it did not become a version.
    """
    return write_version(
        snapshot,
        lambda now: Delete((), tuple(one.id for one in now.manifest.fragments), "true"),
        commit,
        rows=lambda emptied, _: live_rows(emptied.manifest) or 0,
    )
