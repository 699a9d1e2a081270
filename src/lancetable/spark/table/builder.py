"""Create a table without rows, from its columns and settings."""

# ruff: noqa: N802 - the names are those PySpark users know

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, StructField, StructType

from lancetable.errors import InputError
from lancetable.spark.errors import all_coded
from lancetable.spark.type_names import TYPE_KEY
from lancetable.spark.types import to_table
from lancetable.table import create_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@all_coded
@dataclass(frozen=True, slots=True)
class LanceTableBuilder:
    """A table in the making; each call returns a new description."""

    spark: "SparkSession"
    mode: str
    path: str | None = None
    fields: tuple[StructField, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    storage_version: str | None = None
    stable_row_ids: bool = False

    def location(self, path: str) -> "LanceTableBuilder":
        """Set the path of the table."""
        return replace(self, path=path)

    def addColumn(
        self,
        colName: str,  # noqa: N803 - the names of PySpark users
        dataType: str | DataType,  # noqa: N803
        *,
        nullable: bool = True,
        type: str | None = None,  # noqa: A002
    ) -> "LanceTableBuilder":
        """Add a column; ``type`` names one that Spark does not have, such as ``float32[768]``."""
        parsed = DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        metadata = {} if type is None else {TYPE_KEY: type}
        field = StructField(colName, parsed, nullable, metadata)
        return replace(self, fields=(*self.fields, field))

    def addColumns(self, cols: StructType) -> "LanceTableBuilder":
        """Add all columns of a Spark schema."""
        return replace(self, fields=(*self.fields, *cols.fields))

    def property(self, key: str, value: str) -> "LanceTableBuilder":
        """Set an entry of the table's configuration."""
        return replace(self, properties=(*self.properties, (key, value)))

    def storageVersion(self, version: str) -> "LanceTableBuilder":
        """Choose the version of data files."""
        return replace(self, storage_version=version)

    def stableRowIds(self) -> "LanceTableBuilder":
        """Give every row an id that it keeps when it is updated or moved."""
        return replace(self, stable_row_ids=True)

    def execute(self) -> None:
        """Make the table.

        Raises:
            ExistsError: there is one, and there must be none.
            SchemaError: a column cannot be stored.
        """
        if self.path is None:
            raise InputError("the path of the table is missing; set it with location(path)")
        schema: pa.Schema = to_table(StructType(list(self.fields)), {})
        table = create_table(
            self.path,
            schema=schema,
            mode=self.mode,
            storage_version=self.storage_version,
            stable_row_ids=self.stable_row_ids,
        )
        missing = {k: v for k, v in self.properties if table.config.get(k) != v}
        if missing:
            table.update_config(missing)
