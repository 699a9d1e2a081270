"""Rows of a source that are needed more than once and in any order, in memory or mapped.

Arrow takes rows of most types by their number, but not of views and runs; and dictionaries that
differ from batch to batch are better left. Such columns are kept as plain values.
"""

import mmap
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lancetable.errors import SchemaError
from lancetable.format.arrays import Offsets
from lancetable.format.schema.types import storage_type
from lancetable.operations.input.casts import CastPlanner, Step

_types = pa.types


def kept_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which values of a type can be kept."""
    type_ = storage_type(type_)
    if _types.is_string_view(type_):
        return pa.large_string()
    if _types.is_binary_view(type_):
        return pa.large_binary()
    if _types.is_dictionary(type_) or _types.is_run_end_encoded(type_):
        return kept_type(type_.value_type)
    if _types.is_struct(type_):
        return pa.struct([child.with_type(kept_type(child.type)) for child in type_])
    for is_kind, make in _LISTS:
        if is_kind(type_):
            return make(type_.value_field.with_type(kept_type(type_.value_type)))
    return type_


_LISTS = (
    (_types.is_list, pa.list_),
    (_types.is_large_list, pa.large_list),
    (_types.is_list_view, pa.list_),
    (_types.is_large_list_view, pa.large_list),
)


def kept_step(name: str, type_: pa.DataType) -> Step | None:
    """Return how arrays of a type become what can be kept, ``None`` when they are."""
    planner = CastPlanner()
    step = planner.plan(name, type_, kept_type(type_))
    if planner.mismatches:
        raise SchemaError(f"column {name!r} of type {type_} cannot be looked up row by row")
    return step


class RowBuffer:
    """Batches of one schema, read by the number of a row."""

    __slots__ = ("_batches", "_maps", "_starts", "schema")

    def __init__(
        self,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        maps: Sequence[mmap.mmap] = (),
    ) -> None:
        self.schema = schema
        self._maps = tuple(maps)
        self._batches = [batch for batch in batches if batch.num_rows]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])

    def __reduce__(self) -> tuple[object, ...]:
        return RowBuffer, (self.schema, self._batches)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    def release(self) -> None:
        """Give back the memory of rows that are mapped; they are read again when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self._maps:
                mapped.madvise(mmap.MADV_DONTNEED)

    def joined(self, other: "RowBuffer") -> "RowBuffer":
        """Return the rows of both, of one schema, without a copy."""
        batches = [*self._batches, *other._batches]  # noqa: SLF001 - the same class
        return RowBuffer(self.schema, batches, (*self._maps, *other._maps))  # noqa: SLF001

    def select(self, names: Sequence[str]) -> "RowBuffer":
        """Return the same rows with some of the columns, which is less to send elsewhere."""
        chosen = [batch.select(list(names)) for batch in self._batches]
        return RowBuffer(pa.schema([self.schema.field(name) for name in names]), chosen)

    def batches(self, names: Sequence[str]) -> list[pa.RecordBatch]:
        """Return some columns of all rows without a copy."""
        return [batch.select(list(names)) for batch in self._batches]

    def take(self, rows: Offsets, names: Sequence[str]) -> pa.RecordBatch:
        """Return rows in the given order."""
        if len(self._batches) == 1:
            return self._batches[0].select(list(names)).take(pa.array(rows))
        is_ascending = bool((rows[1:] >= rows[:-1]).all())
        order = None if is_ascending else np.argsort(rows, kind="stable")
        ascending = rows if order is None else rows[order]
        edges = np.searchsorted(ascending, self._starts)
        pieces = []
        for number, batch in enumerate(self._batches):
            low, high = int(edges[number]), int(edges[number + 1])
            if low < high:
                places = pa.array(ascending[low:high] - self._starts[number])
                pieces.append(batch.select(list(names)).take(places))
        schema = pa.schema([self.schema.field(name) for name in names])
        if not pieces:
            nothing = [pa.nulls(0, one.type) for one in schema]
            return pa.RecordBatch.from_arrays(nothing, schema=schema) if names else _no_columns(0)
        joined = pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]
        if order is None:
            return joined
        pieces.clear()
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return joined.take(pa.array(back))


def _no_columns(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
