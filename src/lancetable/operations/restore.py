"""Restore: an older version becomes the latest.

1. Commit a Restore: fragments, schema, configuration and indices are those of the old version.
2. The versions in between stay, and ids of fragments and rows go on counting.
"""

from lancetable.commit.committer import commit as commit_operation
from lancetable.commit.numbered import check_number
from lancetable.commit.options import CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Restore
from lancetable.format.manifest.codec import live_rows
from lancetable.operations.input.write import DEFAULT_COMMIT
from lancetable.operations.results import Done, WriteResult
from lancetable.operations.retry import repeat


def restore(
    snapshot: Snapshot, version: int, *, commit: CommitOptions = DEFAULT_COMMIT
) -> Done[WriteResult]:
    """Make an older version the latest.

    Raises:
        InputError: it is no number of a version.
        VersionNotFoundError: there is no such version, or it was cleaned away.
        CommitError: it did not become a version.
    """
    check_number(version)

    def attempt(latest: Snapshot) -> Done[WriteResult]:
        made = commit_operation(latest, Restore(version), commit)
        rows = live_rows(made.snapshot.manifest) or 0
        return Done(made.snapshot, WriteResult(made.snapshot.version, rows, made.attempts))

    return repeat(snapshot, attempt, commit)
