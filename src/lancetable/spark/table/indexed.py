"""Indices of a table: create, optimize, drop and list them; workers build the segments."""

# ruff: noqa: N802, N803 - the names are those PySpark users know

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from lancetable.index.specs import parse_spec
from lancetable.operations.index.create import IndexOptions, IndexResult, create_index, drop_index
from lancetable.operations.index.describe import IndexInfo, describe_indices
from lancetable.operations.index.optimize import (
    OptimizeOptions,
    OptimizeResult,
    foresee_optimize,
    optimize_indices,
)
from lancetable.operations.results import RunOptions
from lancetable.options import parse_options
from lancetable.spark.errors import all_coded
from lancetable.spark.runner import PATIENT
from lancetable.spark.table.base import BaseTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lancetable.index.specs import SpecArgument
    from lancetable.table.settings import IndexSettings, OptimizeSettings

_INDICES = (
    "name string, kind string, columns array<string>, numSegments bigint, numFragments bigint, "
    "numFragmentsCovered bigint, numRowsCovered bigint, numRowsUncovered bigint, "
    "sizeInBytes bigint, createdAt timestamp, unusable string"
)
_CREATED = "name string, version bigint, numSegments bigint, numRows bigint, sizeInBytes bigint"
_OPTIMIZED = (
    "version bigint, numSegmentsAdded bigint, numSegmentsRemoved bigint, numRows bigint, "
    "numRowsMerged bigint, sizeInBytes bigint, isDryRun boolean, isNewVersion boolean, "
    "steps array<struct<name:string,reason:string>>"
)


@all_coded
class IndexedTable(BaseTable):
    """A table that can have indices."""

    __slots__ = ()

    def indices(self) -> "DataFrame":
        """Return the indices of the latest version with their coverage."""
        found = describe_indices(self.snapshot()).values()
        return self.spark.createDataFrame([_row(one) for one in found], _INDICES)

    def createIndex(
        self,
        column: str,
        kind: "SpecArgument",
        parameters: Mapping[str, object] | None = None,
        **settings: "Unpack[IndexSettings]",
    ) -> "DataFrame":
        """Create an index on a column.

        Args:
            column: a column, or the path of a nested one such as ``at.city``.
            kind: such as ``BTree()``, or a name such as ``"btree"``.
            parameters: those of a kind that is given by its name.
            **settings: as of ``table.indices.create`` in Python, such as ``name`` and ``replace``;
                with ``segments`` so many workers build one segment each.
        """
        texts = None if parameters is None else {k: str(v) for k, v in parameters.items()}
        options = parse_options(IndexOptions, settings)
        run = RunOptions(self._runner(), PATIENT)
        spec = parse_spec(kind, texts)
        done = create_index(self.snapshot(), column, spec, options, run).result
        return self._one_row(_created(done), _CREATED)

    def optimizeIndices(
        self,
        names: Sequence[str] | None = None,
        *,
        dryRun: bool = False,
        **settings: "Unpack[OptimizeSettings]",
    ) -> "DataFrame":
        """Cover new fragments, and merge small segments.

        Args:
            names: the indices; by default all.
            dryRun: change nothing, and return what would be done.
            **settings: as of ``table.indices.optimize`` in Python, such as ``mode``.
        """
        options = parse_options(OptimizeOptions, settings)
        if dryRun:
            done = foresee_optimize(self.snapshot(), names, options)
        else:
            run = RunOptions(self._runner(), PATIENT)
            done = optimize_indices(self.snapshot(), names, options, run).result
        return self._one_row(_optimized(done), _OPTIMIZED)

    def dropIndex(self, name: str) -> int:
        """Drop an index; return the number of the new version."""
        return drop_index(self.snapshot(), name, PATIENT).result.version


def _row(info: IndexInfo) -> tuple[object, ...]:
    return (
        info.name,
        info.kind,
        list(info.columns),
        len(info.segments),
        info.fragments,
        info.fragments_covered,
        info.rows_covered,
        info.rows_uncovered,
        info.bytes,
        info.created_at,
        info.unusable,
    )


def _created(done: IndexResult) -> tuple[object, ...]:
    return (done.name, done.version, done.segments, done.rows, done.bytes)


def _optimized(done: OptimizeResult) -> tuple[object, ...]:
    return (
        done.version,
        done.segments_added,
        done.segments_removed,
        done.rows,
        done.rows_merged,
        done.bytes,
        done.is_dry_run,
        done.is_new_version,
        [(step.name, step.reason) for step in done.steps],
    )
