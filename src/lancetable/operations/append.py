"""Append: new rows beside the old ones.

1. Fit the columns of the data to the table; with ``merge_schema`` add the columns it lacks.
2. Write the rows as new fragments.
3. Commit them: as an Append, or with new columns as a Merge of all fragments, old and new, so that
   a reader sees the columns and the rows together or neither.
Other writers do not disturb an Append unless they replace the table or retype a column. A Merge
has to be tried again after every other change of the data; files that still fit are kept for it.
"""

from collections.abc import Sequence

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.finish import next_fragment_id
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Append, Merge
from lancetable.format.manifest import Fragment, Manifest
from lancetable.format.schema.model import Schema
from lancetable.fragment.writer import WriteOptions
from lancetable.operations.draft import draft_of
from lancetable.operations.grow import grown
from lancetable.operations.retry import repeat
from lancetable.operations.runner import THREADS, Runner
from lancetable.operations.write import (
    DEFAULT_COMMIT,
    DEFAULT_WRITE,
    WriteResult,
    Written,
    check_stored,
    keep_or_remove,
    next_field_id,
)


def append(
    snapshot: Snapshot,
    data: object,
    *,
    merge_schema: bool = False,
    write: WriteOptions = DEFAULT_WRITE,
    commit: CommitOptions = DEFAULT_COMMIT,
    runner: Runner = THREADS,
) -> Written:
    """Append rows to a table, with ``merge_schema`` also columns.

    Raises:
        SchemaError: the columns do not fit the table.
        InputError: a value does not fit, or the data is of no kind that holds rows.
        CommitError: the rows did not become a version.
    """
    draft = draft_of(snapshot, data, write, runner)

    def attempt(latest: Snapshot) -> Written:
        schema = latest.manifest.schema
        if merge_schema:
            schema = grown(schema, draft.new_columns, next_field_id(latest.manifest))
            check_stored(schema, draft.options)
        casts = draft.write(schema, new_columns="pass merge_schema=True to add columns").casts
        operation: Append | Merge = Append(draft.fragments)
        if schema is not latest.manifest.schema:
            operation = _merge(latest.manifest, schema, draft.fragments)
        made = commit_operation(latest, operation, commit)
        result = WriteResult(made.snapshot.version, draft.rows, made.attempts, casts)
        return Written(made.snapshot, result)

    with keep_or_remove(draft.fragments, draft.target):
        return repeat(snapshot, attempt, commit)


def _merge(manifest: Manifest, schema: Schema, fragments: Sequence[Fragment]) -> Merge:
    """Return an operation that adds columns and rows in one step.

    A Merge lists all fragments with their final ids. Ids that another writer reserved meanwhile do
    no harm: a rewrite that wants to use them conflicts with every Merge.
    """
    first = next_fragment_id(manifest)
    new = (one._replace(id=first + place) for place, one in enumerate(fragments))
    return Merge((*manifest.fragments, *new), schema, preserves_nullability=True)
