"""The columns of ``auxiliary.idx`` as records: a row and its vector or code, one after the other.

Within a partition some columns are arranged for fast search: codes of products by their bytes,
signs of rotated codes in blocks of 32 vectors. Records hold them by rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lancetable.errors import CorruptError
from lancetable.format.arrays import numbers
from lancetable.index.vector.layout import ROWS
from lancetable.index.vector.rabitq import pack_signs, unpack_signs
from lancetable.index.vector.storage import Bytes
from lancetable.index.vector.types import VectorType, vectors_of

Records = npt.NDArray[np.void]
"""Structured: a field for each column."""


class _Arranged(NamedTuple):
    """A column that is not stored by rows."""

    store: Callable[[Bytes], Bytes]
    load: Callable[[Bytes], Bytes]


def _by_bytes(codes: Bytes) -> Bytes:
    return np.ascontiguousarray(codes.T).reshape(codes.shape)


def _by_rows(codes: Bytes) -> Bytes:
    return np.ascontiguousarray(codes.reshape(codes.shape[1], -1).T)


_ARRANGED: Mapping[str, _Arranged] = {
    "__pq_code": _Arranged(_by_bytes, _by_rows),
    "_rabit_codes": _Arranged(pack_signs, unpack_signs),
}


def row_field() -> pa.Field:
    """Return the column of the rows."""
    return pa.field(ROWS, pa.uint64())


def lists(name: str, item: pa.DataType, size: int) -> pa.Field:
    """Return a column of vectors or codes."""
    return pa.field(name, pa.list_(item, size))


def dtype_of(schema: pa.Schema) -> np.dtype[np.void]:
    """Return the type of records with some columns."""
    return np.dtype([(field.name, *_item_and_shape(field.type)) for field in schema])


def _item_and_shape(type_: pa.DataType) -> tuple[Any, ...]:
    if pt.is_fixed_size_list(type_):
        return type_.value_type.to_pandas_dtype(), (type_.list_size,)
    return (type_.to_pandas_dtype(),)


def to_batch(records: Records, schema: pa.Schema) -> pa.RecordBatch:
    """Return the records of a whole partition as columns."""
    columns = []
    for field in schema:
        values = np.ascontiguousarray(records[field.name])
        arranged = _ARRANGED.get(field.name)
        if arranged is not None:
            values = arranged.store(values)
        flat = numbers(values.reshape(-1))
        if pt.is_fixed_size_list(field.type):
            flat = pa.FixedSizeListArray.from_arrays(flat, type=field.type)
        columns.append(flat)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def of_columns(
    columns: Sequence[pa.Array], schema: pa.Schema, plain: frozenset[str] = frozenset()
) -> Records:
    """Return the records of a whole partition; some columns may be stored by rows.

    Raises:
        CorruptError: a column has another type, or nulls.
    """
    found: Records = np.empty(len(columns[0]), dtype_of(schema))
    for field, column in zip(schema, columns, strict=True):
        if column.type != field.type or column.null_count:
            raise CorruptError(
                f"column {field.name!r} of a vector index is of type {column.type}, "
                f"expected {field.type} without nulls"
            )
        if not pt.is_fixed_size_list(field.type):
            found[field.name] = column.to_numpy()
            continue
        item = np.dtype(field.type.value_type.to_pandas_dtype()).name
        values, mask = vectors_of(column, VectorType(item, field.type.list_size))
        if mask is not None:
            raise CorruptError(f"column {field.name!r} of a vector index has nulls")
        arranged = _ARRANGED.get(field.name)
        if arranged is not None and field.name not in plain:
            values = arranged.load(values)
        found[field.name] = values
    return found
