"""Merge the rows of a data frame at the driver, or in a shuffle of Spark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import InputError
from lancetable.format.schema.types import schema_from_arrow
from lancetable.operations.keys.join import SourceKeys
from lancetable.operations.merge.clauses import Clause
from lancetable.operations.merge.run import MergeOptions, Spread, merge, merge_spread
from lancetable.operations.merge.source import SourcePlan
from lancetable.operations.results import Done, MergeResult
from lancetable.spark.casts import plan_write
from lancetable.spark.kinds import is_connect
from lancetable.spark.merge.join import Incoming, SparkSpread
from lancetable.spark.options import Rounding
from lancetable.spark.types import to_arrow, to_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Join: TypeAlias = Literal["auto", "driver", "cluster"]
_MOST_HERE = 32 * 1024 * 1024
"""Sources of fewer bytes, as Spark estimates them, come to the driver."""


def merge_frame(
    snapshot: Snapshot,
    frame: "DataFrame",
    keys: Sequence[str],
    clauses: Sequence[Clause],
    options: MergeOptions,
    join: Join,
) -> Done[MergeResult]:
    """Merge the rows of a data frame into a table.

    Raises:
        InputError: there is no such way to join, or the rows do not fit.
        CommitError: nothing was changed.
    """
    if is_here(frame, join):
        return merge(snapshot, _fitted(frame.toArrow(), snapshot), keys, clauses, options)
    carried = to_arrow(frame.schema)
    casts = plan_write(carried, snapshot.manifest.schema, Rounding.ERROR)

    def spread(_: SourcePlan, of_source: SourceKeys) -> Spread:
        return SparkSpread(frame, Incoming(carried, casts), of_source)

    return merge_spread(snapshot, casts.schema, keys, clauses, options, spread)


def is_here(frame: "DataFrame", join: Join) -> bool:
    """Return whether the rows of a frame come to the driver.

    Raises:
        InputError: there is no such way to join.
    """
    if join not in get_args(Join):
        raise InputError(f"join is {join!r}; use one of {', '.join(get_args(Join))}")
    return join == "driver" or (join == "auto" and _is_small(frame))


def _is_small(frame: "DataFrame") -> bool:
    """Return whether Spark knows that a frame is small; over Connect it is unknown."""
    if is_connect(frame.sparkSession):
        return False
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - no public way
    return int(str(plan.stats().sizeInBytes())) <= _MOST_HERE


def stored_rows(frame: "DataFrame") -> pa.Table:
    """Return the rows of a frame in the types that a new table would have for them."""
    rows = frame.toArrow()
    wanted = schema_from_arrow(to_table(frame.schema, {}))
    casts = plan_write(rows.schema, wanted, Rounding.ERROR)
    return pa.Table.from_batches([casts.apply(one) for one in rows.to_batches()], casts.schema)


def _fitted(rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Return rows of Spark with the types of the table's columns."""
    casts = plan_write(rows.schema, snapshot.manifest.schema, Rounding.ERROR)
    batches = [casts.apply(batch) for batch in rows.to_batches()]
    return pa.Table.from_batches(batches, casts.schema)
