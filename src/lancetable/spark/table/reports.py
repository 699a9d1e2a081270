"""Columns and rows of the reports on a table, its history, and the results of operations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from lancetable.commit.history.history import HistoryEntry
from lancetable.commit.snapshot import Snapshot
from lancetable.operations.branch.cherry_pick import Pick, PickResult
from lancetable.operations.check.repair import RepairPlan
from lancetable.operations.cleanup.options import CleanupResult
from lancetable.operations.results import MergeResult
from lancetable.spark.errors import all_coded
from lancetable.spark.table.base import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lancetable.table import Table
    from lancetable.table.inspection import Inspection

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
    "num_inserted_rows bigint, version bigint, is_new_version boolean"
)
REMOVED = (
    "isDryRun boolean, versions array<bigint>, numFiles bigint, sizeInBytes bigint, "
    "failed array<string>, numFilesByKind map<string,bigint>, "
    "kept array<struct<branch:string,version:bigint,reason:string>>"
)
TAGS = (
    "name string, version bigint, branch string, createdAt timestamp, updatedAt timestamp, "
    "metadata map<string,string>"
)
BRANCHES = (
    "name string, parentBranch string, parentVersion bigint, createdAt timestamp, "
    "metadata map<string,string>"
)
PUBLISHED = (
    "version bigint, branch string, branchVersions array<bigint>, operation string, "
    "numFiles bigint, indicesLeft array<string>, isNewVersion boolean"
)
PICKED = "branch string, branchVersion bigint, version bigint"
DIFFERENT = (
    "numRowsBefore bigint, numRowsAfter bigint, numRowsNew bigint, numRowsGone bigint, "
    "columns array<struct<id:bigint,before:string,after:string>>, fragmentsAdded array<bigint>, "
    "fragmentsRemoved array<bigint>, fragmentsChanged array<bigint>, "
    "files array<struct<kind:string,path:string,sizeInBytes:bigint,isNew:boolean>>"
)
FAULTS = (
    "kind string, path string, message string, consequence string, branch string, "
    "versions array<bigint>, fragments array<bigint>, isDamage boolean"
)
MENDED = (
    "isDryRun boolean, isNeeded boolean, version bigint, baseVersion bigint, numLostRows bigint, "
    "losses array<struct<kind:string,path:string,what:string,fragment:bigint,numRows:bigint>>"
)
Row = tuple[object, ...]


def report_row(columns: str, value: object) -> Row:
    """Return the fields of a result that columns name: ``numFiles`` is its field ``files``."""
    return tuple([_plain(getattr(value, name)) for name in _field_names(columns)])


@cache
def _field_names(columns: str) -> tuple[str, ...]:
    names = [one.partition(" ")[0] for one in columns.split(", ")]
    words = [re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name) for name in names]
    return tuple(word.removeprefix("num_") for word in words)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [tuple(one) if isinstance(one, tuple) else one for one in value]
    return value


def history_row(entry: HistoryEntry) -> Row:
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
    """Return how many rows a merge changed, and the version afterwards."""
    counts = (result.updated, result.deleted, result.inserted)
    return (sum(counts), *counts, result.version, result.is_new_version)


def removed(result: CleanupResult) -> Row:
    """Return what a cleanup removed, or would."""
    versions = [one.version for one in result.removed_versions]
    return (
        result.is_dry_run,
        versions,
        result.files,
        result.bytes,
        list(result.failed),
        {kind: amount.files for kind, amount in result.removed.items()},
        [tuple(one) for one in result.kept_versions],
    )


def picked(result: PickResult, pick: Pick) -> Row:
    """Return which version of a branch became which."""
    return (result.branch, pick.branch_version, pick.version)


def mended(plan: RepairPlan, *, is_dry_run: bool) -> Row:
    """Return what a repair does not keep; without anything broken there is no new version."""
    return (
        is_dry_run,
        plan.is_needed,
        plan.version if plan.is_needed else plan.base.version,
        plan.base.version,
        plan.lost_rows,
        [(one.kind, one.path, one.what, one.fragment, one.rows) for one in plan.losses],
    )


@all_coded
@dataclass(frozen=True, slots=True)
class LanceInspection:
    """The parts of the latest version, and the names and versions around it."""

    spark: "SparkSession"
    open: "Callable[[], Table]"

    def versions(self) -> "DataFrame":
        """Return the versions of the branch, oldest first."""
        return self._frame(lambda core: core.versions())

    def fragments(self) -> "DataFrame":
        """Return the fragments in the order their rows are read."""
        return self._frame(lambda core: core.fragments())

    def files(self) -> "DataFrame":
        """Return the data files and deletion files."""
        return self._frame(lambda core: core.files())

    def deletions(self) -> "DataFrame":
        """Return the deletion files."""
        return self._frame(lambda core: core.deletions())

    def indices(self) -> "DataFrame":
        """Return the segments of the indices."""
        return self._frame(lambda core: core.indices())

    def refs(self) -> "DataFrame":
        """Return tags and branches; the version of a branch is the one it began with."""
        return self._frame(lambda core: core.refs())

    def transactions(self) -> "DataFrame":
        """Return the transactions of the versions, newest first."""
        return self._frame(lambda core: core.transactions())

    def _frame(self, asked: "Callable[[Inspection], pa.Table]") -> "DataFrame":
        return frame_of(self.spark, asked(self.open().inspect))
