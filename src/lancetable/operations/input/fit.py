"""Match the columns of some data to those of a table, and plan their casts.

Columns are matched by name, in any order. A column that may be null can be left out. Types that
differ are cast when nothing can be lost. Everything that does not fit is named in one error.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from lancetable.errors import InputError, SchemaError
from lancetable.file.write.blobs import written_type
from lancetable.format.schema.model import BLOB_KEY, BLOB_V2, EXTENSION_NAME, Field, Schema
from lancetable.format.schema.types import arrow_type, without_extensions
from lancetable.operations.input.casts import CastPlanner, Mismatch, Step
from lancetable.operations.input.sources import RowSource, read_source
from lancetable.operations.results import CastNote

RESERVED = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
LEAVE_OUT = "leave out the columns that the table lacks"


class _Move(NamedTuple):
    """One column of the result: its position in the data, and its cast."""

    place: int
    step: Step | None
    field: Field
    is_checked: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """Plan that turns batches of some data into columns of a table.

    ``schema`` has the fields of the table that the data brings, in the order of the table.
    """

    schema: Schema
    casts: tuple[CastNote, ...]
    moves: tuple[_Move, ...]
    is_identity: bool

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the columns of ``schema``.

        Raises:
            InputError: a value would be lost, or is null where it must not be.
        """
        if self.is_identity:
            return batch
        arrays = []
        for place, step, field, is_checked in self.moves:
            array = batch.column(place)
            if step is not None:
                array = step(array)
            if is_checked:
                refuse_nulls(array, field, field.name)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, [field.name for field in self.schema.fields])


def fit(
    source: pa.Schema,
    schema: Schema,
    *,
    is_complete: bool = True,
    new_columns: str = LEAVE_OUT,
) -> Fit:
    """Plan how data of an Arrow schema is brought to the schema of a table.

    With ``is_complete`` a column that must not be null has to be there; without, the data may
    bring any part of the columns. ``new_columns`` advises the user about columns that the table
    does not have.

    Raises:
        SchemaError: the columns do not fit; all that do not are named.
    """
    refuse_names(source.names)
    places = dict(zip(source.names, range(len(source)), strict=True))
    planner = CastPlanner()
    moves: list[_Move] = []
    fields: list[Field] = []
    kept: list[int] = []
    for field in schema.fields:
        place = places.pop(field.name, None)
        if place is not None:
            type_ = source.field(place).type
            step, wanted = None, write_type(field)
            if type_ != wanted and not (field.is_blob and is_blob_input(field, type_)):
                step = planner.plan(field.name, type_, wanted)
            is_checked = (bool(field.children) or not field.nullable) and _has_required(field)
            moves.append(_Move(place, step, field, is_checked))
            fields.append(field)
            if step is None and not is_checked:
                kept.append(place)
        elif is_complete and not field.nullable:
            reason = "must not be null and is not in the data"
            planner.mismatches.append(Mismatch(field.name, reason))
    for name in places:
        planner.mismatches.append(Mismatch(name, "is not in the table"))
    if planner.mismatches:
        raise _refusal(planner.mismatches, new_columns)
    if not moves:
        raise SchemaError("the data has none of the table's columns")
    is_identity = kept == list(range(len(source)))
    supplied = Schema(tuple(fields), schema.metadata)
    return Fit(supplied, tuple(planner.notes), tuple(moves), is_identity)


def _refusal(mismatches: list[Mismatch], new_columns: str) -> SchemaError:
    listed = "; ".join(f"column {column!r} {reason}" for column, reason in mismatches)
    ways = []
    if any(reason.startswith("has type") for _, reason in mismatches):
        ways.append("cast the data to these types first")
    if any(reason == "is not in the table" for _, reason in mismatches):
        ways.append(new_columns)
    way_out = f" ({', and '.join(ways)})" if ways else ""
    return SchemaError(f"the data does not fit the table: {listed}{way_out}")


def refuse_names(names: Iterable[str]) -> None:
    """Check the names of top-level columns.

    Raises:
        SchemaError: a name occurs twice, or belongs to the table format.
    """
    seen: set[str] = set()
    for name in names:
        if name in RESERVED:
            raise SchemaError(
                f"column {name!r} is computed by the table and cannot be written; leave it out"
            )
        if name in seen:
            raise SchemaError(f"duplicate column {name!r} in the data; rename one")
        seen.add(name)


def refuse_new_names(names: Iterable[str]) -> None:
    """Check the names of columns that a table is to get.

    Raises:
        SchemaError: a name cannot be used, or not by all who read tables.
    """
    listed = list(names)
    refuse_names(listed)
    for name in listed:
        if not name or "." in name:
            raise SchemaError(
                f"a column cannot be called {name!r}: names are not empty and hold no dot, which "
                "separates a column from its fields"
            )


@lru_cache(maxsize=4096)
def write_type(field: Field) -> pa.DataType:
    """Return the storage type in which values of a field are written.

    It is what a scan gives, except that blobs are written as bytes, not as descriptions.
    """
    return arrow_type(_without_blobs(field))


def _without_blobs(field: Field) -> Field:
    if not any(below.is_blob for below in field.walk()):
        return field
    metadata = {
        key: value
        for key, value in field.metadata.items()
        if key != BLOB_KEY and not (key == EXTENSION_NAME and value == BLOB_V2)
    }
    name = "" if field.extension_name == BLOB_V2 else field.extension_name
    children = tuple(_without_blobs(child) for child in field.children)
    return field._replace(metadata=metadata, extension_name=name, children=children)


def is_blob_input(field: Field, type_: pa.DataType) -> bool:
    """Say whether the file writer takes this type for a blob column as it is."""
    try:
        written_type(field, type_)
    except SchemaError:
        return False
    return True


def read_rows(data: object, schema: Schema) -> RowSource:
    """Return the rows of some data; values without a type take those of a table's columns.

    Blobs of the second generation have none: they may come as bytes or as references.

    Raises:
        InputError: the data is of no kind that holds rows, or its values do not fit a type.
    """
    if isinstance(data, pa.Table | pa.RecordBatch):
        return read_source(data)
    fields = [field for field in schema.fields if not field.is_blob_v2]
    return read_source(data, pa.schema([(field.name, write_type(field)) for field in fields]))


@lru_cache(maxsize=4096)
def _has_required(field: Field) -> bool:
    """Say whether nulls have to be looked for in a field."""
    return any(
        not below.nullable
        for below in field.walk()
        if below.logical_type != "map" and not below.is_blob_v2
    )


def refuse_nulls(array: pa.Array, field: Field, path: str) -> None:
    """Check that nothing is null that must not be, at any depth.

    Raises:
        InputError: there is such a null.
    """
    if array.null_count and not field.nullable:
        raise InputError(
            f"column {path!r} must not be null, the data holds {array.null_count} nulls"
        )
    if not field.children or field.is_blob_v2 or not any(map(_has_required, field.children)):
        return
    array = without_extensions(array)
    if field.logical_type == "map":
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    if pa.types.is_struct(array.type):
        if array.null_count:
            array = array.filter(array.is_valid())
        for number, child in enumerate(field.children):
            refuse_nulls(array.field(number), child, f"{path}.{child.name}")
        return
    refuse_nulls(array.flatten(), field.children[0], f"{path}.{field.children[0].name}")
