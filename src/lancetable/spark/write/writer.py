"""Write a table from Spark: tasks write files, the driver makes them a version."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lancetable.fragment.write.writer import remove_fragments
from lancetable.spark.errors import all_coded
from lancetable.spark.write.commits import commit_rows
from lancetable.spark.write.idempotent import Mark
from lancetable.spark.write.plan import TaskRows, WritePlan, write_batches


@dataclass(frozen=True)
class LanceMessage(WriterCommitMessage):
    """The message of one task about what it wrote."""

    written: TaskRows


Messages = list[WriterCommitMessage | None]


def written_of(messages: Messages) -> list[TaskRows]:
    """Return what all tasks reported, in the order of the tasks."""
    return [message.written for message in messages if isinstance(message, LanceMessage)]


def discard(plan: WritePlan, messages: Messages) -> None:
    """Remove the files that tasks reported, if no commit was tried.

    Spark tries to commit exactly when every task has reported. Then the commit itself removed what
    may be removed; after an outcome that is not known that is nothing.
    """
    if any(message is None for message in messages):
        for written in written_of(messages):
            remove_fragments(written.fragments, plan.target)


@all_coded
class LanceWriter(DataSourceArrowWriter):
    """Writes the rows of one data frame."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LanceMessage:
        """Write the rows of one task."""
        return LanceMessage(write_batches(self.plan, iterator))

    def commit(self, messages: Messages) -> None:
        """Make a version of what the tasks wrote."""
        options = self.plan.options
        mark = None
        if options.txn_app_id is not None and options.txn_version is not None:
            mark = Mark(options.txn_app_id, options.txn_version)
        commit_rows(self.plan, written_of(messages), mark)

    def abort(self, messages: Messages) -> None:
        """Remove what the tasks wrote."""
        discard(self.plan, messages)
