"""Commit new fragments: append them, add their new columns, or replace rows with them."""

from collections.abc import Sequence

from lancetable.commit.apply.derived_fields import next_fragment_id
from lancetable.commit.committer import commit
from lancetable.commit.options import CommitOptions, CommitResult
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Append, Merge
from lancetable.format.manifest import Fragment, Manifest
from lancetable.format.schema.model import Schema
from lancetable.operations.results import ChangeOptions
from lancetable.operations.rows.find_rows import FindTask, find_all
from lancetable.operations.rows.mark_deleted import Marks, marked_rows, rows_by_fragment


def commit_appended(
    snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema, options: CommitOptions
) -> CommitResult:
    """Append fragments; another schema than that of the table adds its columns too."""
    if schema is snapshot.manifest.schema:
        return commit(snapshot, Append(fragments), options)
    return commit(snapshot, merge_of_all(snapshot.manifest, schema, fragments), options)


def commit_replacing(
    snapshot: Snapshot,
    tasks: Sequence[FindTask],
    fragments: Sequence[Fragment],
    options: ChangeOptions,
) -> CommitResult:
    """Replace the rows that the tasks find with those of new fragments."""
    rows = rows_by_fragment(find_all(options.runner, tasks))
    with marked_rows(snapshot, rows, options.runner) as marks:
        operation = marks.update(fragments)
        return commit(snapshot, operation, options.commit, affected=marks.affected)


def merge_of_all(
    manifest: Manifest, schema: Schema, fragments: Sequence[Fragment], marks: Marks | None = None
) -> Merge:
    """Return the operation that adds columns and rows, and deletes marked rows, in one step.

    A Merge lists all fragments with their final ids. Ids that another writer reserved meanwhile do
    no harm: a rewrite that uses them conflicts with every Merge.
    """
    changed = {one.id: one.fragment for one in marks or ()}
    kept = (changed.get(one.id, one) for one in manifest.fragments)
    old = tuple(one for one in kept if one is not None)
    first = next_fragment_id(manifest)
    new = (one._replace(id=first + place) for place, one in enumerate(fragments))
    return Merge((*old, *new), schema, preserves_nullability=True)
