"""Turn anything that holds rows into a schema and batches.

Values without a type of their own (lists of dicts, dicts of lists) take the types of the table
they are written to, where it has a column of that name.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.scan.scanner import Scan

ROWS_AT_A_TIME = 64 * 1024
"""How many dicts of an iterator make a batch."""
ACCEPTED = (
    "give an Arrow table, batch, reader, dataset or scan, a pandas or polars frame, a list of "
    "dicts, a dict of lists, an iterator of batches or dicts, or an object with "
    "__arrow_c_stream__ or __arrow_c_array__"
)


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows to write: their schema, and batches of them."""

    schema: pa.Schema
    open: Callable[[], Iterator[pa.RecordBatch]]
    rows: int | None = None
    is_replayable: bool = False
    is_typed: bool = True
    """False when the values are those of Python, whose types were guessed."""
    table: pa.Table | None = None
    """All rows, when they are in memory."""

    @property
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches from the first; again only when the source is replayable."""
        return self.open()


def read_source(data: object, wanted: pa.Schema | None = None) -> RowSource:
    """Return the rows of some data.

    ``wanted`` holds storage types for columns whose values come without a type.

    Raises:
        InputError: the data is of no kind that holds rows, or its values do not fit a type.
    """
    if isinstance(data, RowSource):
        return data
    if isinstance(data, pa.Table):
        return _from_table(data)
    if isinstance(data, pa.RecordBatch):
        return _from_table(pa.Table.from_batches([data]))
    if data is None or isinstance(data, (str, bytes, int, float)):
        raise InputError(f"{_kind(data)} holds no rows; {ACCEPTED}")
    for read in (_from_python, _from_frame, _from_reader, _from_capsule):
        found = read(data, wanted)
        if found is not None:
            return found
    if isinstance(data, Iterable):
        return _from_iterator(iter(data), wanted)
    raise InputError(f"{_kind(data)} holds no rows; {ACCEPTED}")


def _kind(data: object) -> str:
    if data is None:
        return "nothing"
    name = type(data).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _from_table(table: pa.Table, *, is_typed: bool = True) -> RowSource:
    return RowSource(
        table.schema,
        lambda: iter(table.to_batches()),
        rows=table.num_rows,
        is_replayable=True,
        is_typed=is_typed,
        table=table,
    )


def _once(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], *, is_typed: bool = True
) -> RowSource:
    remaining = [batches]

    def open_() -> Iterator[pa.RecordBatch]:
        if not remaining:
            raise InputError("the rows were read already and cannot be read again; pass new ones")
        return remaining.pop()

    return RowSource(schema, open_, is_typed=is_typed)


def _from_python(data: object, wanted: pa.Schema | None) -> RowSource | None:
    if isinstance(data, Mapping):
        arrays = {str(name): _column(str(name), values, wanted) for name, values in data.items()}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
            raise InputError(f"the columns have different lengths: {shown}")
        return _from_table(pa.table(arrays), is_typed=False)
    if isinstance(data, Sequence):
        if all(isinstance(row, Mapping) for row in data):
            if not data and wanted is None:
                raise InputError("an empty list has no columns; give a schema as well")
            table = pa.Table.from_batches([_from_dicts(data, wanted)])
            return _from_table(table, is_typed=False)
        return _from_iterator(iter(data), wanted)
    return None


def _from_dicts(rows: Sequence[Mapping[str, Any]], wanted: pa.Schema | None) -> pa.RecordBatch:
    if not rows and wanted is not None:
        return pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in wanted], schema=wanted)
    names = dict.fromkeys(str(name) for row in rows for name in row)
    columns = [_column(name, [row.get(name) for row in rows], wanted) for name in names]
    if not names:
        raise InputError("the rows have no columns")
    return pa.RecordBatch.from_arrays(columns, list(names))


def _column(name: str, values: Any, wanted: pa.Schema | None) -> pa.Array:  # noqa: ANN401
    type_ = None
    if wanted is not None and not hasattr(values, "dtype") and name in wanted.names:
        type_ = wanted.field(name).type
    try:
        if isinstance(values, pa.ChunkedArray):
            return values.combine_chunks()
        if isinstance(values, pa.Array):
            return values
        return pa.array(values) if type_ is None else typed_array(list(values), type_)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as cause:
        place = "" if type_ is None else f" of type {type_}"
        raise InputError(f"column {name!r}{place} cannot hold the values given: {cause}") from cause


def _from_frame(data: object, _: pa.Schema | None) -> RowSource | None:
    """Read a pandas or polars frame, without importing either."""
    home = type(data).__module__.partition(".")[0]
    if home == "pandas" and hasattr(data, "columns"):
        try:
            table = pa.Table.from_pandas(data)
        except (pa.ArrowException, ValueError, TypeError) as cause:
            raise InputError(f"the data frame cannot be turned into columns: {cause}") from cause
        return _from_table(table.replace_schema_metadata(_without_pandas(table.schema.metadata)))
    if home == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if home == "polars" and hasattr(data, "to_arrow") and hasattr(data, "columns"):
        return _from_table(data.to_arrow())
    return None


def _without_pandas(metadata: Mapping[bytes, bytes] | None) -> Mapping[bytes, bytes] | None:
    """Leave out what pandas notes about one frame; it does not apply to a table."""
    return {key: value for key, value in (metadata or {}).items() if key != b"pandas"} or None


def _from_reader(data: object, _: pa.Schema | None) -> RowSource | None:
    if isinstance(data, Scan):
        return RowSource(data.schema, data.to_batches, is_replayable=True)
    if isinstance(data, pa.RecordBatchReader):
        return _once(data.schema, iter(data))
    datasets = sys.modules.get("pyarrow.dataset")
    if datasets is not None and isinstance(data, datasets.Dataset):
        return RowSource(data.schema, data.to_batches, is_replayable=True)
    if datasets is not None and isinstance(data, datasets.Scanner):
        return _once(data.projected_schema, data.to_batches())
    return None


def _from_capsule(data: object, _: pa.Schema | None) -> RowSource | None:
    try:
        if hasattr(data, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(data)
            return _once(reader.schema, iter(reader))
        if hasattr(data, "__arrow_c_array__"):
            return _from_table(pa.Table.from_batches([pa.record_batch(data)]))
    except (pa.ArrowException, ValueError, TypeError) as cause:
        raise InputError(f"{_kind(data)} holds no rows of named columns: {cause}") from cause
    return None


def _from_iterator(items: Iterator[Any], wanted: pa.Schema | None) -> RowSource:
    first = next(items, None)
    if first is None:
        if wanted is None:
            raise InputError("the iterator is empty and names no columns; give a schema as well")
        return RowSource(wanted, lambda: iter(()), rows=0, is_replayable=True, is_typed=False)
    rest = chain([first], items)
    is_typed = not isinstance(first, Mapping)
    batches = _batches_of(rest) if is_typed else _batches_of_dicts(rest, wanted)
    opening = next(batches, None)
    if opening is None:
        raise InputError("the iterator gave no batch; give one without rows to name the columns")
    return _once(opening.schema, _same(opening, batches), is_typed=is_typed)


def _batches_of_dicts(
    rows: Iterator[Mapping[str, Any]], wanted: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """Yield batches; the first decides the types of columns that the table does not know."""
    schema: pa.Schema | None = None
    while part := list(islice(rows, ROWS_AT_A_TIME)):
        for row in part:
            if not isinstance(row, Mapping):
                raise InputError(f"after dicts the iterator gave {_kind(row)}; give dicts only")
        if schema is None:
            batch = _from_dicts(part, wanted)
            schema = batch.schema
            yield batch
            continue
        extra = {str(name) for row in part for name in row} - set(schema.names)
        if extra:
            raise InputError(f"later rows have columns that the first lack: {sorted(extra)}")
        yield _further(part, schema)


def _further(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        column = _column(field.name, [row.get(field.name) for row in rows], schema)
        if column.type != field.type:
            raise InputError(
                f"column {field.name!r} held {field.type} in the first rows and {column.type} in "
                "later ones; give a schema or batches"
            )
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _batches_of(items: Iterable[object]) -> Iterator[pa.RecordBatch]:
    for item in items:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif hasattr(item, "__arrow_c_array__") or hasattr(item, "__arrow_c_stream__"):
            read = read_source(item)
            yield from read.batches
        else:
            raise InputError(f"the iterator gave {_kind(item)}, not a batch; {ACCEPTED}")


def _same(opening: pa.RecordBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield all batches, which must have the schema of the first."""
    yield opening
    for number, batch in enumerate(batches, 2):
        if not batch.schema.equals(opening.schema):
            raise InputError(
                f"batch {number} has other columns than the first: {_listed(batch.schema)} after "
                f"{_listed(opening.schema)}"
            )
        yield batch


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


_types = pa.types


def typed_array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    """Return values in a type as near to the wanted one as they can be without loss.

    Raises:
        InputError: a number is too large for the type.
        pyarrow.ArrowException: the values do not suit each other or the type.
    """
    found = pa.infer_type(values)
    made = pa.array(values, _suited(found, wanted))
    if _types.is_floating(made.type) and made.type.bit_width < 64 and _types.is_float64(found):
        were_infinite = pc.sum(pc.is_inf(pa.array(values, found))).as_py() or 0
        if (pc.sum(pc.is_inf(made)).as_py() or 0) > were_infinite:
            raise InputError(f"a number is too large for {made.type}")
    return made


def _suited(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return the wanted type, or parts of the found one where the wanted could lose something."""
    if found == wanted or _types.is_null(found) or _types.is_map(wanted):
        return wanted
    if _types.is_struct(wanted) and _types.is_struct(found):
        return _suited_struct(found, wanted)
    if _types.is_list(found) and _is_list(wanted):
        item = wanted.value_field.with_type(_suited(found.value_type, wanted.value_type))
        if _types.is_fixed_size_list(wanted):
            return pa.list_(item, wanted.list_size)
        return pa.large_list(item) if _types.is_large_list(wanted) else pa.list_(item)
    return found if _could_lose(found, wanted) else wanted


def _suited_struct(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    fields = {field.name: field for field in wanted}
    for field in found:
        known = fields.get(field.name)
        fields[field.name] = (
            field if known is None else known.with_type(_suited(field.type, known.type))
        )
    return pa.struct(list(fields.values()))


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        _types.is_list(type_) or _types.is_large_list(type_) or _types.is_fixed_size_list(type_)
    )


def _could_lose(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether Arrow would turn values into others without a word."""
    if _types.is_temporal(wanted) or _types.is_temporal(found):
        return True
    if _types.is_integer(wanted):
        return not _types.is_integer(found)
    return bool(_types.is_floating(wanted) and _types.is_boolean(found))
