"""Overwrite: new rows instead of the old ones, all of them or those that match a predicate.

1. All: take the schema of the data, write its rows as fragments, commit an Overwrite. Versions,
   tags and the configuration stay; ids of fragments go on counting.
2. Some: write the new rows of the table's own schema and check that all of them match, find the
   rows that match and mark them as deleted, commit both as one Update.
Of two writers who overwrite everything the later one wins; both versions are kept.
"""

from typing import TYPE_CHECKING

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Overwrite, Update
from lancetable.expression import Expression, to_sql
from lancetable.fragment.writer import WriteOptions
from lancetable.operations.changes import ChangeOptions
from lancetable.operations.delete import affected_rows, mark_all
from lancetable.operations.draft import draft_of
from lancetable.operations.match import find_all, plan_find
from lancetable.operations.prepare import prepare_replacement
from lancetable.operations.retry import repeat
from lancetable.operations.runner import THREADS, Runner
from lancetable.operations.steps import own_files
from lancetable.operations.unmatched import (
    find_unmatched,
    refuse_system_columns,
    refuse_unmatched,
)
from lancetable.operations.write import (
    DEFAULT_COMMIT,
    DEFAULT_WRITE,
    WriteResult,
    Written,
    keep_or_remove,
    next_field_id,
    replaced_version,
    write_source,
    write_target,
)

if TYPE_CHECKING:
    from lancetable.format.manifest import Fragment


def overwrite(
    snapshot: Snapshot,
    data: object,
    *,
    write: WriteOptions = DEFAULT_WRITE,
    commit: CommitOptions = DEFAULT_COMMIT,
    runner: Runner = THREADS,
) -> Written:
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

    def attempt(latest: Snapshot) -> Written:
        made = commit_operation(
            latest,
            Overwrite(fragments, prepared.schema),
            commit,
            storage_version=prepared.options.storage_version,
        )
        rows = sum(fragment.physical_rows for fragment in fragments)
        result = WriteResult(made.snapshot.version, rows, made.attempts, prepared.fit.casts)
        return Written(made.snapshot, result)

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
) -> Written:
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
    draft = draft_of(snapshot, data, options.write, options.runner)

    def attempt(latest: Snapshot) -> Written:
        tasks = plan_find(latest, where)
        casts = draft.write(latest.manifest.schema).casts
        if check:
            missed = find_unmatched(latest, draft.fragments, where, options.runner)
            refuse_unmatched([missed], to_sql(where), "write them with check=False")
        found = find_all(options.runner, tasks)
        with own_files(latest.store) as files:
            marked = mark_all(latest, found, options)
            files.extend(one.path for one in marked if one.path is not None)
            operation = Update(
                removed_fragment_ids=tuple(one.id for one in marked if one.fragment is None),
                updated_fragments=tuple(one.fragment for one in marked if one.fragment is not None),
                new_fragments=draft.fragments,
            )
            affected = affected_rows(marked)
            made = commit_operation(latest, operation, options.commit, affected=affected)
        result = WriteResult(made.snapshot.version, draft.rows, made.attempts, casts)
        return Written(made.snapshot, result)

    with keep_or_remove(draft.fragments, draft.target):
        return repeat(snapshot, attempt, options.commit)
