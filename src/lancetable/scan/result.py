"""Make the columns of the result out of the columns that were read."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.expression import Expression, evaluate, evaluate_mask
from lancetable.format.limits import NO_LIMIT, read_limits
from lancetable.format.schema.types import relabel
from lancetable.fragment.select import Columns, Mask
from lancetable.scan.nulls import check_required
from lancetable.scan.plan import ScanPlan, Source
from lancetable.scan.row_size import bytes_of


class Piece(NamedTuple):
    """Some rows of the result: for each column of the schema its chunks."""

    rows: int
    columns: Columns


def finish(plan: ScanPlan, rows: int, columns: Columns) -> Piece:
    """Turn the slots of a plan into the columns of its result.

    Raises:
        LimitError: they exceed the limit on a batch.
    """
    if not rows:
        return Piece(0, [[] for _ in plan.types])
    if not plan.is_plain:
        columns = _compute(plan, rows, columns)
    if plan.extended:
        columns = list(columns)
        for number in plan.extended:
            type_ = plan.types[number]
            columns[number] = [relabel(chunk, type_) for chunk in columns[number]]
    for number in plan.required:
        check_required(plan.schema.field(number), columns[number])
    limits = read_limits()
    if limits.max_batch_bytes != NO_LIMIT:
        limits.check_batch(bytes_of(columns), rows)
    return Piece(rows, columns)


def _compute(plan: ScanPlan, rows: int, columns: Columns) -> Columns:
    batches: list[pa.RecordBatch] | None = None
    made: Columns = []
    for source in plan.sources:
        if source.expression is None:
            made.append(_below(columns[source.slot], source))
            continue
        if batches is None:
            batches = aligned({name: columns[slot] for name, slot in plan.expression_slots}, rows)
        made.append([evaluate(source.expression, batch) for batch in batches])
    return made


def _below(column: list[pa.Array], source: Source) -> list[pa.Array]:
    """Go down into structs with one child; a child of a missing struct is missing."""
    for _ in range(source.depth):
        column = [_child(chunk) for chunk in column]
    return column


def _child(array: pa.Array) -> pa.Array:
    return pc.struct_field(array, [0]) if array.null_count else array.field(0)


def aligned(columns: dict[str, list[pa.Array]], rows: int) -> list[pa.RecordBatch]:
    """Return the columns as batches; chunks of different columns are cut to fit each other."""
    if not columns:
        return [pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))]
    if all(len(column) == 1 for column in columns.values()):
        return [
            pa.RecordBatch.from_arrays([column[0] for column in columns.values()], list(columns))
        ]
    chunked = [pa.chunked_array(column) for column in columns.values()]
    batches: list[pa.RecordBatch] = pa.Table.from_arrays(chunked, list(columns)).to_batches()
    return batches


def mask_of(where: Expression, names: Sequence[str], columns: Columns, rows: int) -> Mask:
    """Return which rows pass a predicate."""
    batches = aligned(dict(zip(names, columns, strict=True)), rows)
    masks = [evaluate_mask(where, batch) for batch in batches]
    return masks[0] if len(masks) == 1 else np.concatenate(masks or [np.empty(0, np.bool_)])


def to_table(plan: ScanPlan, pieces: Iterable[Piece]) -> pa.Table:
    """Put pieces together as chunks, without a copy."""
    rows = 0
    columns: Columns = [[] for _ in plan.types]
    for piece in pieces:
        rows += piece.rows
        for column, chunks in zip(columns, piece.columns, strict=True):
            column.extend(chunks)
    return table_of(plan, Piece(rows, columns))


def table_of(plan: ScanPlan, piece: Piece) -> pa.Table:
    """Return one piece as a table."""
    rows, columns = piece
    if not columns:
        return _without_columns(plan.schema, rows)
    arrays = [
        column[0] if len(column) == 1 else pa.chunked_array(column, type_)
        for column, type_ in zip(columns, plan.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=plan.schema)


def _without_columns(schema: pa.Schema, rows: int) -> pa.Table:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.Table.from_batches([batch.replace_schema_metadata(schema.metadata)])


def cut(piece: Piece, start: int, stop: int) -> Piece:
    """Return the rows from ``start`` to ``stop`` of a piece."""
    if start <= 0 and stop >= piece.rows:
        return piece
    start, stop = max(start, 0), min(stop, piece.rows)
    columns = []
    for column in piece.columns:
        parts, position = [], 0
        for chunk in column:
            first, last = max(start - position, 0), min(stop - position, len(chunk))
            if first < last:
                parts.append(chunk.slice(first, last - first))
            position += len(chunk)
        columns.append(parts)
    return Piece(max(stop - start, 0), columns)
