"""Truncate: all rows are gone, schema, configuration and history stay.

1. Commit a Delete that names every fragment; rows that others append meanwhile stay.
2. When another writer changed one of the fragments, do it again with those there are then.
"""

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete
from lancetable.format.manifest.codec import live_rows
from lancetable.operations.retry import repeat
from lancetable.operations.write import DEFAULT_COMMIT, WriteResult, Written


def truncate(snapshot: Snapshot, *, commit: CommitOptions = DEFAULT_COMMIT) -> Written:
    """Remove all rows of a table.

    Raises:
        CommitError: it did not become a version.
    """

    def attempt(latest: Snapshot) -> Written:
        manifest = latest.manifest
        ids = tuple(fragment.id for fragment in manifest.fragments)
        made = commit_operation(latest, Delete((), ids, "true"), commit)
        result = WriteResult(made.snapshot.version, live_rows(manifest) or 0, made.attempts)
        return Written(made.snapshot, result)

    return repeat(snapshot, attempt, commit)
