"""Merge the micro-batches of a stream into a table, each of them once.

``stream.writeStream.foreachBatch(upsert(path, on=["id"]))`` updates the rows whose key is there and
inserts the others. Spark repeats the last micro-batch after a failure: its number is recorded in
the version that it made, and a batch that is found there is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lancetable.errors import InputError
from lancetable.operations.results import ChangeOptions
from lancetable.spark.errors import all_coded
from lancetable.spark.kinds import is_connect
from lancetable.spark.runner import PATIENT
from lancetable.spark.table.table import LanceTable
from lancetable.spark.write.idempotent import Mark, is_done

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACE = "_lancetable_place"
_QUERY_ID = "sql.streaming.queryId"


@all_coded
@dataclass(frozen=True, slots=True)
class Upsert:
    """A function for ``foreachBatch``; it can be sent to the server of Connect."""

    path: str
    on: tuple[str, ...]
    app_id: str | None = None
    order_by: str | None = None
    evolves_schema: bool = False
    branch: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        """Merge the rows of one micro-batch, unless that was done already."""
        spark = rows.sparkSession
        mark = Mark(self.app_id or _query_id(spark), batch_id)
        table = LanceTable.forPath(spark, self.path, self.storage, branch=self.branch)
        if is_done(table.snapshot(), mark):
            return
        commit = replace(PATIENT, properties=mark.properties())
        merge = table.merge(self._latest(rows), self.on, ChangeOptions(commit=commit))
        merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        (merge.withSchemaEvolution() if self.evolves_schema else merge).execute()

    def _latest(self, rows: "DataFrame") -> "DataFrame":
        """Return one row for each key: the one with the greatest value of a column."""
        if self.order_by is None:
            return rows
        keys = ", ".join(quoted(name) for name in self.on)
        order = f"partition by {keys} order by {quoted(self.order_by)} desc"
        placed = rows.selectExpr("*", f"row_number() over ({order}) as {_PLACE}")
        return placed.where(f"{_PLACE} = 1").drop(_PLACE)


def upsert(  # noqa: PLR0913 - each has a default
    path: str,
    on: str | Sequence[str],
    *,
    app_id: str | None = None,
    order_by: str | None = None,
    evolves_schema: bool = False,
    branch: str | None = None,
    storage: Mapping[str, str] | None = None,
) -> Upsert:
    """Return a function for ``foreachBatch`` that merges each micro-batch into a table once.

    Args:
        path: where the table is.
        on: the key columns.
        app_id: under which name the batches are recorded; the id of the query if it is left out,
            which is known to classic sessions only. Keep it as long as the checkpoint.
        order_by: of several rows with one key in a micro-batch the one with the greatest value of
            this column counts; without it several are an error.
        evolves_schema: add the columns that the table lacks.
        branch: which branch of the table.
        storage: settings of the store.
    """
    keys = (on,) if isinstance(on, str) else tuple(on)
    if not keys:
        raise InputError("give the columns to match rows on, such as on=['id']")
    return Upsert(path, keys, app_id, order_by, evolves_schema, branch, dict(storage or {}))


def quoted(name: str) -> str:
    """Return the name of a column as Spark's SQL has it."""
    return f"`{name.replace('`', '``')}`"


def _query_id(spark: "SparkSession") -> str:
    known = None if is_connect(spark) else spark.sparkContext.getLocalProperty(_QUERY_ID)
    if not known:
        raise InputError(
            "the id of the query is not known here; name the query with upsert(…, app_id='…')"
        )
    return str(known)
