"""How do files that tasks have written become a version.

This runs on the driver, once for each write. Files are removed when the commit is known to have
failed, and never when its outcome is not known.
"""

from collections.abc import Sequence

from lancetable.commit.committer import commit, create
from lancetable.commit.finish import next_fragment_id
from lancetable.commit.options import CommitOptions, CommitResult
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Append, Merge, Overwrite, Update
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, ExistsError, TableNotFoundError, VersionNotFoundError
from lancetable.format.manifest import Fragment
from lancetable.format.schema.model import Schema
from lancetable.fragment.writer import remove_fragments
from lancetable.operations.changes import ChangeOptions
from lancetable.operations.delete import affected_rows, mark_all
from lancetable.operations.grow import grown
from lancetable.operations.match import find_rows, plan_find
from lancetable.operations.retry import repeat
from lancetable.operations.steps import own_files, run_steps
from lancetable.operations.uncommitted import has_columns
from lancetable.operations.unmatched import refuse_unmatched
from lancetable.operations.write import keep_or_remove, next_field_id
from lancetable.scan.request import parse_where
from lancetable.spark.once import Mark, is_done
from lancetable.spark.writing import Kind, TaskRows, WritePlan, on_new_base


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
        ConflictError: others changed what the write builds on.
        ExistsError: others made the table meanwhile, with other columns.
        InputError: new rows do not match ``replaceWhere``; nothing was written.
        UnknownOutcomeError: the version may be there or not; all files stay.
    """
    properties = {} if mark is None else mark.properties()
    options = plan.commit_options(properties)
    kept = [fragment for one in written for fragment in one.fragments]
    latest = _latest(plan)
    if mark is not None and latest is not None and is_done(latest, mark):
        remove_fragments(kept, plan.target)
        return None
    with keep_or_remove(kept, plan.target):
        refuse_unmatched(
            (one.unmatched for one in written),
            plan.options.replace_where or "",
            "set the option replaceWhereCheck=false",
        )
        if latest is None or plan.kind is Kind.CREATE:
            return _create(plan, kept, options)
        if is_stream:
            plan = on_new_base(plan, plan.kind, latest.version)
        return repeat(
            _base(plan, latest), lambda now: _attempt(plan, now, kept, options), options
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
    if plan.base_version == latest.version:
        return latest
    try:
        return load(plan.location, version=plan.base_version, branch=plan.branch)
    except VersionNotFoundError:
        return latest


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
        moved = on_new_base(plan, kind, latest.version)
        return repeat(latest, lambda now: _attempt(moved, now, fragments, options), options).version
    return made.snapshot.version


def _attempt(
    plan: WritePlan, latest: Snapshot, fragments: list[Fragment], options: CommitOptions
) -> Snapshot:
    match plan.kind:
        case Kind.OVERWRITE:
            operation = Overwrite(fragments, plan.schema)
            version = plan.write.storage_version
            return commit(latest, operation, options, storage_version=version).snapshot
        case Kind.REPLACE:
            return _replace(plan, latest, fragments, options).snapshot
        case Kind.GROW:
            return _grow(plan, latest, fragments, options).snapshot
        case _:
            _refuse_changed(latest.manifest.schema, plan.schema)
            return commit(latest, Append(fragments), options).snapshot


def _grow(
    plan: WritePlan, latest: Snapshot, fragments: list[Fragment], options: CommitOptions
) -> CommitResult:
    manifest = latest.manifest
    schema = grown(manifest.schema, plan.new_columns, next_field_id(manifest))
    _refuse_changed(schema, plan.schema)
    if schema is manifest.schema:
        return commit(latest, Append(fragments), options)
    first = next_fragment_id(manifest)
    new = (one._replace(id=first + place) for place, one in enumerate(fragments))
    operation = Merge((*manifest.fragments, *new), schema, preserves_nullability=True)
    return commit(latest, operation, options)


def _replace(
    plan: WritePlan, latest: Snapshot, fragments: list[Fragment], options: CommitOptions
) -> CommitResult:
    _refuse_changed(latest.manifest.schema, plan.schema)
    _refuse_renamed(latest.manifest.schema, plan.schema)
    change = ChangeOptions(write=plan.write, commit=options)
    tasks = plan_find(latest, parse_where(plan.options.replace_where))
    found = [one for each in run_steps(change.runner, find_rows, tasks) for one in each]
    with own_files(latest.store) as files:
        marked = mark_all(latest, found, change)
        files.extend(one.path for one in marked if one.path is not None)
        operation = Update(
            removed_fragment_ids=tuple(one.id for one in marked if one.fragment is None),
            updated_fragments=tuple(one.fragment for one in marked if one.fragment is not None),
            new_fragments=tuple(fragments),
        )
        return commit(latest, operation, options, affected=affected_rows(marked))


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
