"""In which columns is told what a table is, what became of it, and what an operation did."""

from lancetable.commit.history_entry import HistoryEntry
from lancetable.commit.snapshot import Snapshot
from lancetable.operations.changes import MergeResult
from lancetable.operations.cleanup.options import CleanupResult

TOLD = (
    "version bigint, timestamp timestamp, operation string, "
    "operationParameters map<string,string>, operationMetrics map<string,bigint>, "
    "userMetadata string, tags array<string>, engineInfo string"
)
DESCRIBED = (
    "format string, location string, branch string, version bigint, lastModified timestamp, "
    "numRows bigint, numFragments bigint, numFiles bigint, sizeInBytes bigint, "
    "storageVersion string, properties map<string,string>"
)
MERGED = (
    "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, "
    "num_inserted_rows bigint"
)
REMOVED = (
    "isDryRun boolean, versions array<bigint>, numFiles bigint, sizeInBytes bigint, "
    "failed array<string>"
)
Row = tuple[object, ...]


def told(entry: HistoryEntry) -> Row:
    """Return a row of the history."""
    effect = entry.effect
    metrics = {
        "numRowsAdded": effect.rows_added,
        "numRowsRemoved": effect.rows_removed,
        "numRowsUpdated": effect.rows_updated,
        "numFragmentsAdded": effect.fragments_added,
        "numFragmentsRemoved": effect.fragments_removed,
        "numFragmentsChanged": effect.fragments_changed,
    }
    what = {"predicate": effect.predicate, "detail": effect.detail}
    return (
        entry.version,
        entry.timestamp,
        entry.operation,
        {**entry.properties, **{name: text for name, text in what.items() if text}},
        {name: count for name, count in metrics.items() if count is not None},
        entry.message,
        list(entry.tags),
        None if entry.writer is None else entry.writer.text,
    )


def described(snapshot: Snapshot, rows: int) -> Row:
    """Return the row that describes a version."""
    manifest = snapshot.manifest
    files = [file for fragment in manifest.fragments for file in fragment.files]
    return (
        "lance",
        snapshot.location.uri,
        snapshot.branch,
        manifest.version,
        manifest.timestamp,
        rows,
        len(manifest.fragments),
        len(files),
        sum(file.size or 0 for file in files),
        manifest.data_format,
        dict(manifest.config or {}),
    )


def merged(result: MergeResult) -> Row:
    """Return how many rows a merge changed."""
    counts = (result.updated, result.deleted, result.inserted)
    return (sum(counts), *counts)


def removed(result: CleanupResult) -> Row:
    """Return what a cleanup removed, or would."""
    versions = [one.version for one in result.removed_versions]
    return (result.is_dry_run, versions, result.files, result.bytes, list(result.failed))
