"""Restore: an older version becomes the latest.

1. Commit a Restore: fragments, schema, configuration and indices are those of the old version.
2. The versions in between stay, and ids of fragments and rows go on counting.
"""

from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.snapshot import Snapshot, check_number
from lancetable.commit.transaction import Restore
from lancetable.format.manifest.codec import live_rows
from lancetable.operations.results import Done, WriteResult
from lancetable.operations.retry import write_version


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
    return write_version(
        snapshot,
        lambda _: Restore(version),
        commit,
        rows=lambda _, restored: live_rows(restored.manifest) or 0,
    )
