"""What does a version consist of, as data frames: for questions asked with a query."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lancetable.spark.errors import coded
from lancetable.spark.table.base import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lancetable.table import Table
    from lancetable.table.inspection import Inspection


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
        with coded():
            return frame_of(self.spark, asked(self.open().inspect))
