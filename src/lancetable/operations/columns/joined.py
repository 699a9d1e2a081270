"""Match rows of other data to the rows of a table by key columns, row address or row id."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lancetable.commit.snapshot import Snapshot
from lancetable.errors import ConflictError, InputError, SchemaError
from lancetable.format.schema.project import resolve
from lancetable.fragment.projection import ROW_ADDRESS, ROW_ID
from lancetable.operations.columns.column_values import JoinMaker
from lancetable.operations.input.assign import exact_cast
from lancetable.operations.input.fit import write_schema, write_type
from lancetable.operations.input.sources import RowSource, read_source
from lancetable.operations.keys.join import index_keys
from lancetable.operations.keys.keys import comparable
from lancetable.operations.keys.row_buffer import RowBuffer, kept_step, kept_type
from lancetable.operations.keys.spill import keep
from lancetable.operations.rows.move_rows import has_stable_row_ids

SYSTEM_KEYS = (ROW_ADDRESS, ROW_ID)
MEMORY_LIMIT = 1024**3


def joined(
    snapshot: Snapshot, data: object, on: Sequence[str], *, is_complete: bool = False
) -> tuple[JoinMaker, list[pa.Field]]:
    """Return a maker of the columns that data has beside its key, and those columns.

    Raises:
        SchemaError: a key column is missing on one of the sides.
        InputError: no key is named.
    """
    schema = snapshot.manifest.schema
    source = read_source(data, write_schema(schema))
    fields = new_fields(source.schema, on)
    (kept,) = keep(*keepable(source), MEMORY_LIMIT)
    keys = [
        comparable(exact_cast(name, _column(kept, name), key_type(snapshot, name)), name)
        for name in on
    ]
    names = tuple(one.name for one in fields)
    return JoinMaker(tuple(on), index_keys(keys), kept, names, is_complete), fields


def new_fields(source: pa.Schema, on: Sequence[str]) -> list[pa.Field]:
    """Return the columns that data has beside its key.

    Raises:
        SchemaError: a key column is missing, or there is no other.
        InputError: no key is named.
    """
    if isinstance(on, str) or not on:
        raise InputError("give the columns to match rows on as a list, such as on=['id']")
    for name in on:
        if name not in source.names:
            raise SchemaError(f"the data has no column {name!r}, which rows are matched on")
    fields = [one for one in source if one.name not in on]
    if not fields:
        raise SchemaError("the data has no column beside its key")
    return fields


def names_addresses(snapshot: Snapshot, on: Sequence[str]) -> bool:
    """Say whether rows are known by where they are; without stable ids a row id is an address."""
    return ROW_ADDRESS in on or (ROW_ID in on and not has_stable_row_ids(snapshot.manifest))


def refuse_moved_rows(before: Snapshot, latest: Snapshot) -> None:
    """Refuse addresses of a version when rows may have moved since.

    Raises:
        ConflictError: rows went from where they were, and there are new fragments.
    """
    known = {one.id: one for one in before.manifest.fragments}
    now = {one.id: one for one in latest.manifest.fragments}
    went = any(
        id_ not in now or now[id_].deletion_file != one.deletion_file for id_, one in known.items()
    )
    if went and not now.keys() <= known.keys():
        raise ConflictError(
            f"another writer moved rows after version {before.version}, so that row addresses read "
            "before are of no use; read them again"
        )


def keepable(source: RowSource) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the rows of a source under types that can be kept."""
    steps = [kept_step(one.name, one.type) for one in source.schema]
    schema = pa.schema([pa.field(one.name, kept_type(one.type)) for one in source.schema])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches:
            pairs = zip(batch.columns, steps, strict=True)
            arrays = [array if step is None else step(array) for array, step in pairs]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return schema, batches()


def key_type(snapshot: Snapshot, name: str) -> pa.DataType:
    """Return the type in which values of a key column are compared."""
    known = {field.name for field in snapshot.manifest.schema.fields}
    if name in SYSTEM_KEYS and name not in known:
        return pa.uint64()
    return write_type(resolve(snapshot.manifest.schema, name)[-1])


def _column(kept: RowBuffer, name: str) -> pa.Array:
    chunks = [batch.column(0) for batch in kept.batches([name])]
    if not chunks:
        return pa.nulls(0, kept.schema.field(name).type)
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
