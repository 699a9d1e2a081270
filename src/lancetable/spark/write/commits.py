"""Commit the files that tasks have written.

This runs on the driver, once for each write. Files are removed when the commit is known to have
failed, and never when its outcome is not known.
"""

from collections.abc import Sequence
from dataclasses import replace

from lancetable.commit.committer import commit, create
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Overwrite
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, ExistsError, TableNotFoundError
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.write.writer import remove_fragments
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.prepare import grown
from lancetable.operations.input.write import keep_or_remove, next_field_id
from lancetable.operations.prepared_transaction import has_columns
from lancetable.operations.results import ChangeOptions
from lancetable.operations.rows.find_rows import plan_find, refuse_unmatched
from lancetable.operations.rows.new_fragments import commit_appended, commit_replacing
from lancetable.scan.request import parse_where
from lancetable.spark.write.idempotent import Mark, is_done
from lancetable.spark.write.plan import Kind, TaskRows, WritePlan


def commit_rows(
    plan: WritePlan,
    written: Sequence[TaskRows],
    mark: Mark | None = None,
    *,
    is_stream: bool = False,
) -> int | None:
    """Make a version of what tasks wrote; return its number, or ``None`` if the mark was seen.

    A stream goes on for a long time: it needs the columns it began with, whatever else others do.

    Raises:
        ConflictError: others changed what the write builds on, or removed the table and created it
            again.
        ExistsError: others made the table meanwhile, with other columns.
        InputError: new rows do not match ``replaceWhere``; nothing was written.
        UnknownOutcomeError: the version may be there or not; all files stay.
    """
    properties = {} if mark is None else mark.properties()
    options = plan.commit_options(properties)
    kept = [fragment for one in written for fragment in one.fragments]
    with keep_or_remove(kept, plan.target):
        latest = _latest(plan)
        if mark is not None and latest is not None and is_done(latest, mark):
            remove_fragments(kept, plan.target)
            return None
        refuse_unmatched(
            (one.unmatched for one in written),
            plan.options.replace_where or "",
            "set the option replaceWhereCheck=false",
        )
        if latest is None or plan.kind is Kind.CREATE:
            return _create(plan, kept, options)
        base = _base(plan, latest)
        return repeat_and_cover(
            latest if is_stream else base, lambda now: _attempt(plan, now, kept, options), options
        ).version


def _latest(plan: WritePlan) -> Snapshot | None:
    try:
        return load(plan.location, branch=plan.branch)
    except TableNotFoundError:
        if plan.kind is not Kind.CREATE:
            raise
        return None


def _base(plan: WritePlan, latest: Snapshot) -> Snapshot:
    """Return the version that the write was planned on; the latest when it was cleaned away."""
    if plan.base is None:
        return latest
    since = "this write was planned; nothing was changed, write the rows again"
    return plan.base.find(latest, plan.branch, since) or latest


def _create(plan: WritePlan, fragments: list[Fragment], options: CommitOptions) -> int:
    try:
        made = create(
            plan.location,
            Overwrite(fragments, plan.schema),
            options=options,
            stable_row_ids=plan.options.stable_row_ids,
            storage_version=plan.write.storage_version,
        )
    except ExistsError:
        latest = load(plan.location, branch=plan.branch)
        if not has_columns(latest.manifest.schema, plan.schema):
            raise
        # Another write made the same table, or an earlier batch of this stream did.
        kind = Kind.OVERWRITE if plan.overwrites else Kind.APPEND
        moved = replace(plan, kind=kind)
        return repeat_and_cover(
            latest, lambda now: _attempt(moved, now, fragments, options), options
        ).version
    return made.snapshot.version


def _attempt(
    plan: WritePlan, latest: Snapshot, fragments: list[Fragment], options: CommitOptions
) -> Snapshot:
    now = latest.manifest.schema
    match plan.kind:
        case Kind.OVERWRITE:
            version = plan.write.storage_version
            operation = Overwrite(fragments, plan.schema)
            made = commit(latest, operation, options, storage_version=version)
        case Kind.REPLACE:
            _refuse_changed(now, plan.schema)
            _refuse_renamed(now, plan.schema)
            tasks = plan_find(latest, parse_where(plan.options.replace_where))
            change = ChangeOptions(write=plan.write, commit=options)
            made = commit_replacing(latest, tasks, fragments, change)
        case Kind.GROW:
            schema = grown(now, plan.new_columns, next_field_id(latest.manifest))
            _refuse_changed(schema, plan.schema)
            made = commit_appended(latest, fragments, schema, options)
        case _:
            _refuse_changed(now, plan.schema)
            made = commit_appended(latest, fragments, now, options)
    return made.snapshot


def _refuse_changed(now: Schema, planned: Schema) -> None:
    if not has_columns(now, planned):
        raise ConflictError(
            "another writer changed columns of the table while the rows were written; nothing was "
            "changed, write them again"
        )


def _refuse_renamed(now: Schema, planned: Schema) -> None:
    """Refuse to search by names that meant other columns when the new rows were checked."""
    names = {field.id: field.name for field in planned.walk()}
    if any(names.get(field.id, field.name) != field.name for field in now.walk()):
        raise ConflictError(
            "another writer renamed columns of the table while the rows were written; nothing was "
            "changed, write them again"
        )
