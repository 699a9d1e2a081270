"""Open a version and return its columns as Spark sees them, before any row is read.

Processes that need no more do not load the modules that read files.
"""

import pyarrow as pa
from pyspark.sql.types import StructType

from lancetable.commit.snapshot import Snapshot
from lancetable.commit.versions import load
from lancetable.expression import Expression
from lancetable.format.schema.model import Schema
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanRequest
from lancetable.spark.options import ReadOptions, TableRef
from lancetable.spark.types import to_spark


def shown_schema(schema: Schema, options: ReadOptions) -> StructType:
    """Return the Spark schema of a read that asks for no other.

    Raises:
        SchemaError: a column is unknown, or Spark has no type for it.
    """
    columns = options.columns
    request = request_for(columns, options)
    arrow = plan(schema, request).schema
    for name, is_wanted in (
        ("_rowid", options.with_row_id),
        ("_rowaddr", options.with_row_address),
    ):
        if is_wanted and name not in arrow.names:
            arrow = arrow.append(pa.field(name, pa.uint64(), nullable=False))
    return to_spark(arrow, options.vectors)


def open_version(place: TableRef) -> Snapshot:
    """Open the version that options name.

    Raises:
        NotFoundError: there is no such table, version, tag or branch.
        ConflictError: the table was removed and created again since the version was opened.
    """
    snapshot = load(
        place.location,
        version=place.version,
        tag=place.tag,
        branch=place.branch,
        as_of=place.as_of,
    )
    if place.id is not None:
        place.id.check(snapshot, "this data frame was made; read it again")
    return snapshot


def request_for(
    columns: tuple[str, ...] | None, options: ReadOptions, where: Expression | None = None
) -> ScanRequest:
    """Return the request for some columns, with blobs as options want them."""
    return ScanRequest(
        columns=columns,
        where=where,
        blobs="bytes" if options.blobs.value == "bytes" else "descriptions",
    )
