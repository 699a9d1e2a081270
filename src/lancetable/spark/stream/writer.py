"""Write a stream: each micro-batch becomes a version, exactly once.

Spark repeats the last micro-batch after a failure, with the same number. The number is recorded in
the version together with the id of the query, and a batch that is found there is not written again.
"""

import json
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import fs
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from lancetable.errors import InputError
from lancetable.spark.errors import all_coded
from lancetable.spark.write.commits import commit_rows
from lancetable.spark.write.idempotent import Mark
from lancetable.spark.write.plan import WritePlan, write_batches
from lancetable.spark.write.writer import LanceMessage, Messages, discard, written_of


@all_coded
class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of one query."""

    def __init__(self, plan: WritePlan, checkpoint: str | None) -> None:
        self.plan = plan
        self.checkpoint = checkpoint

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LanceMessage:
        """Write the rows of one task."""
        return LanceMessage(write_batches(self.plan, iterator))

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Make a version of a micro-batch, unless there is one already."""
        app_id = self.plan.options.txn_app_id or query_id(self.checkpoint)
        mark = Mark(app_id, batchId)
        commit_rows(self.plan, written_of(messages), mark, is_stream=True)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Remove what the tasks of a micro-batch wrote."""
        discard(self.plan, messages)


def query_id(checkpoint: str | None) -> str:
    """Return the id of the query that owns a checkpoint folder.

    The name of the folder is not enough: a query that starts in an emptied folder is a new one, and
    counts its batches from zero again.

    Raises:
        InputError: it cannot be found out.
    """
    reason = "the query has no checkpoint folder of its own"
    if checkpoint is not None:
        try:
            store, path = fs.FileSystem.from_uri(_address(checkpoint))
            with store.open_input_stream(f"{path.rstrip('/')}/metadata") as file:
                return str(json.loads(file.read())["id"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as cause:
            reason = f"{checkpoint}/metadata cannot be read: {cause}"
    raise InputError(
        f"the id of the query is not known, as {reason}; name the query with the option txnAppId"
    )


def _address(checkpoint: str) -> str:
    """Spark writes ``file:/a``, which is no complete address."""
    if checkpoint.startswith("file:/") and not checkpoint.startswith("file://"):
        return checkpoint.removeprefix("file:")
    return checkpoint
