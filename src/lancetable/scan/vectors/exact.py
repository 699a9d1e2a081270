"""Exact distances of the rows of a column to queries, batch by batch."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lancetable.errors import SchemaError
from lancetable.expression import Expression
from lancetable.format.schema.model import Schema
from lancetable.format.schema.project import resolve
from lancetable.format.schema.types import arrow_type, storage_type, without_extensions
from lancetable.fragment.projection import ROW_ID
from lancetable.fragment.readers import Readers
from lancetable.index.vector.distance import Floats, distances
from lancetable.index.vector.top import Rows, Top
from lancetable.index.vector.types import Matrix, VectorType, vector_type, vectors_of
from lancetable.scan.plans import Plans
from lancetable.scan.request import ScanOptions, ScanRequest
from lancetable.scan.scanner import Scan
from lancetable.scan.take import Taker

CHUNK = 1 << 22
"""How many distances are held at a time."""
TAKEN = 1 << 16
"""How many rows are taken at a time."""


class VectorColumn(NamedTuple):
    """A column of vectors, or of lists of vectors."""

    path: str
    field_id: int
    type: VectorType


def vector_column(schema: Schema, path: str | None) -> VectorColumn:
    """Return a column of vectors; the only one when no path is given.

    Raises:
        SchemaError: there is no such column, it does not hold vectors, or there are several.
    """
    if path is None:
        names = [one.name for one in schema.fields if _type_of(schema, one.name) is not None]
        if len(names) != 1:
            raise SchemaError(
                f"the table has {len(names)} columns of vectors"
                + (f" ({', '.join(names)}); name one with column" if names else "")
            )
        path = names[0]
    found = _type_of(schema, path)
    field = resolve(schema, path)[-1]
    if found is None:
        raise SchemaError(
            f"column {path!r} of type {arrow_type(field)} does not hold vectors; expected lists of "
            "a fixed size of float16, float32, float64, bfloat16 or uint8, or lists of these"
        )
    return VectorColumn(path, field.id, found)


def _type_of(schema: Schema, path: str) -> VectorType | None:
    return vector_type(storage_type(arrow_type(resolve(schema, path)[-1])))


class Comparison(NamedTuple):
    """Queries that rows are compared with; the results of ``top`` are theirs from ``first`` on."""

    column: VectorColumn
    queries: Matrix
    metric: str
    top: Top
    first: int = 0

    def scan(self, readers: Readers, where: Expression | None = None) -> None:
        """Offer all rows of some fragments that match a predicate."""
        request = ScanRequest(columns=(self.column.path, ROW_ID), where=where)
        for batch in Scan(readers, request, ScanOptions(lease_seconds=0)).to_batches():
            self.offer(without_extensions(batch.column(0)), batch.column(1).to_numpy())

    def take(self, readers: Readers, rows: Rows, plans: Plans) -> None:
        """Offer some live rows by their ids."""
        request = ScanRequest(columns=(self.column.path,))
        taker = Taker(plans.of(request), readers)
        for start in range(0, len(rows), TAKEN):
            part = rows[start : start + TAKEN]
            done = 0
            for values in taker.by_row_id(part).column(0).chunks:
                self.offer(without_extensions(values), part[done : done + len(values)])
                done += len(values)

    def offer(self, values: pa.Array, rows: Rows) -> None:
        """Offer rows with their vectors."""
        type_, top = self.column.type, self.top
        if type_.is_multi:
            top.offer(multi_distances(values, type_, self.queries, self.metric)[None, :], rows)
            return
        vectors, mask = vectors_of(values, type_)
        step = max(CHUNK // max(len(vectors), 1), 1)
        for start in range(0, len(self.queries), step):
            found = distances(vectors, self.queries[start : start + step], type_, self.metric)
            top.offer(found, rows, mask, self.first + start)


def multi_distances(values: pa.Array, type_: VectorType, queries: Matrix, metric: str) -> Floats:
    """Return the distance of each list: for each query vector the least, and of these the sum.

    Lists that are null or empty have the distance NaN.
    """
    edges = np.asarray(values.offsets).astype(np.int64)
    inner = values.values.slice(int(edges[0]), int(edges[-1] - edges[0]))
    vectors, mask = vectors_of(inner, type_)
    starts, stops = edges[:-1] - edges[0], edges[1:] - edges[0]
    has_any = stops > starts
    if values.null_count:
        has_any &= np.asarray(values.is_valid())
    found = np.full(len(values), np.nan, np.float64)
    if not has_any.any():
        return found.astype(np.float32)
    sums = np.zeros(int(np.count_nonzero(has_any)))
    for query in queries:
        far = distances(vectors, query[None, :], type_, metric)[0].astype(np.float64)
        if mask is not None:
            far[~mask] = np.nan
        sums += _least(far, starts[has_any], stops[has_any])
    found[has_any] = sums
    return found.astype(np.float32)


def _least(
    far: "np.ndarray[tuple[int], np.dtype[np.float64]]", starts: Matrix, stops: Matrix
) -> Matrix:
    """Return the least of each stretch; NaN where all are."""
    # Stretches may leave out some values between them, of lists that are null.
    edges = np.stack([starts, stops], axis=1).reshape(-1)
    padded = np.append(far, np.nan)
    least: Matrix = np.fmin.reduceat(padded, edges)[::2]
    return least
