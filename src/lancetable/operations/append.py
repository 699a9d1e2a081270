"""Append: new rows beside the old ones.

1. Fit the columns of the data to the table; with ``merge_schema`` add the columns it lacks.
2. Write the rows as new fragments.
3. Commit them: as an Append, or with new columns as a Merge of all fragments, old and new, so that
   a reader sees the columns and the rows together or neither.
Other writers do not disturb an Append unless they replace the table or retype a column. A Merge
has to be tried again after every other change of the data; files that still fit are kept for it.
"""

from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.fragment.write.writer import DEFAULT_WRITE, WriteOptions
from lancetable.operations.cover import repeat_and_cover
from lancetable.operations.input.prepare import grown
from lancetable.operations.input.write import (
    check_stored,
    keep_or_remove,
    next_field_id,
    pending_rows,
)
from lancetable.operations.results import Done, WriteResult
from lancetable.operations.rows.new_fragments import commit_appended
from lancetable.operations.run.runner import THREADS, Runner


def append(
    snapshot: Snapshot,
    data: object,
    *,
    merge_schema: bool = False,
    write: WriteOptions = DEFAULT_WRITE,
    commit: CommitOptions = DEFAULT_COMMIT,
    runner: Runner = THREADS,
) -> Done[WriteResult]:
    """Append rows to a table, with ``merge_schema`` also columns.

    Raises:
        SchemaError: the columns do not fit the table.
        InputError: a value does not fit, or the data is of no kind that holds rows.
        CommitError: the rows did not become a version.
    """
    pending = pending_rows(snapshot, data, write, runner)

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        schema = latest.manifest.schema
        if merge_schema:
            schema = grown(schema, pending.new_columns, next_field_id(latest.manifest))
            check_stored(schema, pending.options)
        casts = pending.write(schema, new_columns="pass merge_schema=True to add columns").casts
        made = commit_appended(latest, pending.fragments, schema, commit)
        result = WriteResult(made.snapshot.version, pending.rows, made.attempts, casts)
        return Done(made.snapshot, result)

    with keep_or_remove(pending.fragments, pending.target):
        return repeat_and_cover(snapshot, attempt, commit, runner)
