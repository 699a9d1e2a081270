"""Row ids: give the rows of a table ids that they keep when they are updated or moved.

1. Every row gets its present address as its id. Indices and callers that know rows by their
   addresses stay right, and the ids take a few bytes per fragment.
2. A Merge of all fragments, with the ids, is committed. A writer that changes rows at the same
   time has to repeat that on the new version; appends and new indices go on top of it.
New rows are numbered behind the largest address. Versions before this one keep rows without ids
and can be read and cloned, but not restored any more: their addresses could be taken for ids. Rows
that are there count as created in version 1, since their origin was not recorded.
"""

from dataclasses import dataclass

from lancetable.commit.committer import commit
from lancetable.commit.options import DEFAULT_COMMIT, CommitOptions
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Merge
from lancetable.errors import UnsupportedError
from lancetable.format.manifest import Fragment, InlineSequence
from lancetable.format.manifest.flags import Feature
from lancetable.format.manifest.indices.kinds import FRAGMENT_REUSE
from lancetable.format.manifest.rowids.sequences import id_range
from lancetable.format.rows import OFFSET_BITS
from lancetable.fragment.readers import Readers
from lancetable.operations.results import Done, VersionResult
from lancetable.operations.retry import repeat


@dataclass(frozen=True, slots=True)
class RowIdsResult(VersionResult):
    """Result of giving rows stable ids; there is no new version when they had ids already."""

    rows: int = 0
    fragments: int = 0
    attempts: int = 0


def enable_stable_row_ids(
    snapshot: Snapshot, *, commit_options: CommitOptions = DEFAULT_COMMIT
) -> Done[RowIdsResult]:
    """Give all rows of a table stable ids.

    Raises:
        UnsupportedError: the table has files of version 0.1, or moved rows that its indices do
            not include yet.
        CommitError: it did not become a version.
    """

    def attempt(latest: Snapshot) -> Done[RowIdsResult]:
        manifest = latest.manifest
        if manifest.reader_flags & Feature.STABLE_ROW_IDS:
            return Done(latest, RowIdsResult(latest.version, is_new_version=False))
        _check_possible(latest)
        readers = Readers(latest)
        fragments = [
            _numbered(fragment, readers[position].opened.rows)
            for position, fragment in enumerate(manifest.fragments)
        ]
        operation = Merge(fragments, manifest.schema, preserves_nullability=True)
        made = commit(latest, operation, commit_options, enable_row_ids=True)
        rows = sum(fragment.physical_rows for fragment in fragments)
        result = RowIdsResult(made.snapshot.version, rows, len(fragments), made.attempts)
        return Done(made.snapshot, result)

    return repeat(snapshot, attempt, commit_options)


def _numbered(fragment: Fragment, rows: int) -> Fragment:
    """Return a fragment whose rows have their addresses as ids."""
    ids = InlineSequence(id_range(fragment.id << OFFSET_BITS, rows))
    return fragment._replace(physical_rows=rows, row_ids=ids)


def _check_possible(snapshot: Snapshot) -> None:
    old = [
        file.path
        for fragment in snapshot.manifest.fragments
        for file in fragment.files
        if file.version < (2, 0)
    ]
    if old:
        raise UnsupportedError(
            f"{old[0]} is a file of version 0.1, whose rows cannot get stable ids; write the rows "
            "to a new table"
        )
    if any(segment.name == FRAGMENT_REUSE for segment in snapshot.indices()):
        raise UnsupportedError(
            "a compaction moved rows and the indices still hold their old addresses; update the "
            "indices before giving rows stable ids"
        )
