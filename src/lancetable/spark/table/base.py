"""Base of the table class: a session, a location and a branch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.operations.merge.clauses import TARGET
from lancetable.operations.results import ChangeOptions
from lancetable.spark.options import STORAGE_PREFIX
from lancetable.spark.runner import PATIENT, SparkRunner
from lancetable.spark.types import to_spark
from lancetable.store import TableLocation
from lancetable.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class BaseTable:
    """One table, at the latest version of a branch."""

    spark: "SparkSession"
    location: TableLocation
    branch: str | None = None
    name: str = TARGET

    def snapshot(self) -> Snapshot:
        """Open the latest version."""
        return load(self.location, branch=self.branch)

    def _core(self, version: int | None = None) -> Table:
        """Open a version, the latest unless one is named, as the core does."""
        return Table(self.location, load(self.location, version=version, branch=self.branch))

    def _runner(self) -> SparkRunner:
        return SparkRunner(self.spark)

    def _change(self) -> ChangeOptions:
        return ChangeOptions(commit=PATIENT, runner=self._runner())

    def _read(self, version: int, options: Mapping[str, str]) -> "DataFrame":
        reader = self.spark.read.format("lance").option("version", version).options(**options)
        if self.branch is not None:
            reader = reader.option("branch", self.branch)
        for key, value in self.location.options.items():
            reader = reader.option(f"{STORAGE_PREFIX}{key}", value)
        return reader.load(self.location.uri)

    def _one_row(self, row: tuple[object, ...], schema: str) -> "DataFrame":
        """Return one row as a data frame."""
        return self.spark.createDataFrame([row], schema)


def frame_of(spark: "SparkSession", rows: pa.Table) -> "DataFrame":
    """Return a result of the core as a data frame; Spark has no unsigned numbers."""
    schema = pa.schema(
        [
            one.with_type(pa.int64()) if pa.types.is_unsigned_integer(one.type) else one
            for one in rows.schema
        ]
    )
    # Over Connect nothing is learned from a table without rows.
    if not rows.num_rows:
        return spark.createDataFrame([], to_spark(schema))
    return spark.createDataFrame(rows.cast(schema))
