"""Send the keys of a table through Spark, in comparable form and with row addresses."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import BinaryType, LongType, StructField

from lancetable.fragment.projection import ROW_ADDRESS
from lancetable.fragment.readers import Readers
from lancetable.operations.keys.keys import comparable
from lancetable.scan import execute
from lancetable.scan.plan import plan
from lancetable.scan.request import ScanOptions, ScanRequest

if TYPE_CHECKING:
    from lancetable.commit.snapshot import Snapshot

ADDRESS, KEY = "_lancetable_address", "_lancetable_key"


def key_fields(snapshot: "Snapshot", on: Sequence[str]) -> list[StructField]:
    """Return the columns in which row addresses and keys of a table travel."""
    shown = plan(snapshot.manifest.schema, ScanRequest(tuple(on))).schema
    forms = [comparable(pa.nulls(0, field.type), field.name) for field in shown]
    kinds = [BinaryType() if pa.types.is_large_binary(one.type) else LongType() for one in forms]
    keys = [StructField(f"{KEY}{at}", kind) for at, kind in enumerate(kinds)]
    return [StructField(ADDRESS, LongType()), *keys]


def scan_keys(part: "Snapshot", on: Sequence[str]) -> Iterator[tuple[pa.Array, list[pa.Array]]]:
    """Yield row addresses as Spark has them, and keys in comparable form."""
    planned = plan(part.manifest.schema, ScanRequest((*on, ROW_ADDRESS)))
    for piece in execute.run(planned, Readers(part), ScanOptions(threads=1)):
        if not piece.rows:
            continue
        *columns, addresses = [
            chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) for chunks in piece.columns
        ]
        keys = [comparable(one, name) for one, name in zip(columns, on, strict=True)]
        yield addresses.view(pa.int64()), keys


def carried(key: pa.Array) -> pa.Array:
    """Return a comparable key in a type that Spark has."""
    if pa.types.is_large_binary(key.type):
        return key.cast(pa.binary())
    return key.view(pa.int64())


def uncarried(column: pa.ChunkedArray, like: pa.DataType) -> pa.Array:
    """Return comparable keys that travelled."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.nulls(0, column.type)
    return array.cast(like) if pa.types.is_large_binary(like) else array.view(like)
