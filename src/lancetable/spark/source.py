"""The data source ``lance``, the entry point of Spark.

Spark makes one source for each data frame or view and sends copies of it to the processes that plan
and run queries. It keeps some of their answers and asks again for others, so a source that looked
for the latest version each time would read now this one and now that. The version is looked up
once, when the source is made: all queries on a frame or a view see the same rows.

Planning a query starts a process that imports this module, so each way of use brings its own.
"""

# ruff: noqa: PLC0415

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lancetable.errors import TableNotFoundError
from lancetable.spark.errors import all_coded
from lancetable.spark.options import ChangeMode, Options, TableRef, VersionId, parse_options
from lancetable.spark.read.schema import open_version, shown_schema

if TYPE_CHECKING:
    from lancetable.spark.read.feed import LanceChangesReader
    from lancetable.spark.read.reader import LanceReader
    from lancetable.spark.stream.reader import LanceStreamReader
    from lancetable.spark.stream.writer import LanceStreamWriter
    from lancetable.spark.write.writer import LanceWriter

NAME = "lance"


@all_coded
class LanceSource(DataSource):
    """Tables of the Lance format, for ``spark.read.format("lance")`` and ``df.write``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.parsed: Options = parse_options(options)
        self.pinned: TableRef = _pinned(self.parsed.place)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table as Spark shows them."""
        snapshot = open_version(self.pinned)
        if self.parsed.stream.changes is ChangeMode.FEED:
            from lancetable.spark.read.feed import feed_schema

            return feed_schema(snapshot, self.parsed.read)
        return shown_schema(snapshot.manifest.schema, self.parsed.read)

    def reader(self, schema: StructType) -> "LanceReader | LanceChangesReader":
        """Return what reads the version, the columns of a schema only; or the changes up to it."""
        from lancetable.spark.read.reader import LanceReader, PartitionReader

        snapshot, reader = open_version(self.pinned), PartitionReader(schema, self.parsed.read)
        if self.parsed.stream.changes is ChangeMode.FEED:
            from lancetable.spark.read.feed import LanceChangesReader
            from lancetable.spark.stream.reader import first_version

            first = first_version(self.pinned, self.parsed.stream)
            return LanceChangesReader(snapshot, first - 1, reader)
        return LanceReader(snapshot, reader)

    def writer(self, schema: StructType, overwrite: bool) -> "LanceWriter":  # noqa: FBT001 - Spark's
        """Return what writes rows of a schema: beside the old ones, or in their place."""
        from lancetable.spark.write.plan import plan_writing
        from lancetable.spark.write.writer import LanceWriter

        return LanceWriter(plan_writing(self.parsed, schema, overwrite=overwrite))

    def streamReader(self, schema: StructType) -> "LanceStreamReader":  # noqa: N802 - Spark's name
        """Return what follows the table."""
        from lancetable.spark.read.reader import PartitionReader
        from lancetable.spark.stream.reader import LanceStreamReader

        reader = PartitionReader(schema, self.parsed.read, complete_from=self.pinned.version or 0)
        return LanceStreamReader(self.parsed, reader)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "LanceStreamWriter":  # noqa: FBT001, N802
        """Return what writes micro-batches: beside the old rows, or in their place."""
        from lancetable.spark.stream.writer import LanceStreamWriter
        from lancetable.spark.write.plan import plan_writing

        plan = plan_writing(self.parsed, schema, overwrite=overwrite)
        return LanceStreamWriter(plan, self.parsed.checkpoint)


def _pinned(place: TableRef) -> TableRef:
    """Return the place with the id of its version; a table may be missing before a write."""
    try:
        snapshot = open_version(place)
    except TableNotFoundError:
        return place
    id_ = VersionId.of(snapshot)
    return TableRef(place.location, snapshot.version, branch=snapshot.branch, id=id_)
