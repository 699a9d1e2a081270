"""The data source ``lance``: what Spark asks of it, answered by the modules beside this one.

Spark makes one source for each data frame and sends copies of it to the processes that plan and
run the query. The version is looked up once, when it is made, so that all of them read the same.
"""

from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import replace

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from lancetable.commit.versions import load
from lancetable.errors import TableNotFoundError
from lancetable.spark.codes import coded
from lancetable.spark.options import Options, Place, parse_options
from lancetable.spark.reader import LanceReader, Reading, shown_schema
from lancetable.spark.writer import LanceWriter
from lancetable.spark.writing import plan_writing

NAME = "lance"


class LanceSource(DataSource):
    """Tables of the Lance format, for ``spark.read.format("lance")`` and ``df.write``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        with coded():
            self.parsed: Options = parse_options(options)
            self.pinned: Place = _pinned(self.parsed.place)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the table as Spark shows them."""
        with coded():
            return shown_schema(
                self._reader(StructType([])).snapshot().manifest.schema, self.parsed.read
            )

    def reader(self, schema: StructType) -> LanceReader:
        """Return what reads the version, the columns of a schema only."""
        return self._reader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:  # noqa: FBT001 - Spark's
        """Return what writes rows of a schema: beside the old ones, or in their place."""
        with coded():
            return LanceWriter(plan_writing(self.parsed, schema, overwrite=overwrite))

    def _reader(self, schema: StructType) -> LanceReader:
        return LanceReader(self.pinned, Reading(schema, self.parsed.read))


def _pinned(place: Place) -> Place:
    """Return the place with the number of its version; a table may be missing before a write."""
    with suppress(TableNotFoundError):
        snapshot = load(
            place.location,
            version=place.version,
            tag=place.tag,
            branch=place.branch,
            as_of=place.as_of,
        )
        return replace(
            place, version=snapshot.version, branch=snapshot.branch, tag=None, as_of=None
        )
    return place
