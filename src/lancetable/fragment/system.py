"""System columns, which no file stores: row addresses, row ids, and versions of each row."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.arrays import booleans
from lancetable.fragment.open_fragment import OpenFragment
from lancetable.fragment.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ADDRESS, ROW_ID

Rows: TypeAlias = range | npt.NDArray[np.int64]
Unsigned: TypeAlias = npt.NDArray[np.uint64]

FIRST_VERSION = np.uint64(1)
"""The version of rows for which none is recorded."""

UINT64 = pa.uint64()


def system_column(opened: OpenFragment, name: str, rows: Rows) -> pa.Array:
    """Return one system column, other than the row offset, for the given rows.

    Deleted rows, where they are read, have neither a row id nor a row address.
    """
    column = unsigned_array(_values(opened, name, rows))
    deleted = opened.deleted if opened.shows_deleted and name in {ROW_ID, ROW_ADDRESS} else None
    if deleted is None:
        return column
    are_deleted = deleted.are(_numbers(rows).astype(np.int64))
    return pc.if_else(booleans(are_deleted), pa.scalar(None, UINT64), column)


def _values(opened: OpenFragment, name: str, rows: Rows) -> Unsigned:
    if name == ROW_ADDRESS:
        return addresses(opened.fragment.id, rows)
    stored = opened.sequence(name)
    if stored is not None:
        return _pick(stored, rows)
    if name == ROW_ID:
        return addresses(opened.fragment.id, rows)
    if name in {CREATED_AT, LAST_UPDATED_AT}:
        return np.full(len(rows), FIRST_VERSION)
    raise AssertionError(f"{name} is not a system column")


def row_offsets(opened: OpenFragment, first_live_row: int, rows: Rows) -> pa.Array:
    """Return the running number of each row among the live rows of the table.

    Deleted rows, where they are read, have that of the next live row.
    """
    numbers = _numbers(rows)
    deleted = opened.deleted
    if deleted is not None:
        numbers = deleted.rank(numbers.astype(np.int64)).astype(np.uint64)
    return unsigned_array(numbers + np.uint64(first_live_row))


def addresses(fragment_id: int, rows: Rows) -> Unsigned:
    """Return the addresses of rows: the fragment in the upper half, the offset in the lower."""
    first = fragment_id << 32
    if isinstance(rows, range):
        return np.arange(first + rows.start, first + rows.stop, dtype=np.uint64)
    return _numbers(rows) + np.uint64(first)


def unsigned_array(values: Unsigned) -> pa.Array:
    """Return the same values as an Arrow array, without a copy."""
    return pa.Array.from_buffers(UINT64, len(values), [None, pa.py_buffer(values)])


def _numbers(rows: Rows) -> Unsigned:
    if isinstance(rows, range):
        return np.arange(rows.start, rows.stop, dtype=np.uint64)
    return rows.astype(np.uint64)


def _pick(values: Unsigned, rows: Rows) -> Unsigned:
    picked = values[rows.start : rows.stop] if isinstance(rows, range) else values[rows]
    return np.ascontiguousarray(picked)
