"""Compute the order of rows sorted by columns or along a Z-order curve.

The curve is the Z-order: each column gives the rank of its value, and the bits of all ranks are
interleaved, highest first. Rows that are near in all columns end up near each other.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.errors import InputError
from lancetable.expression.compare import total_order
from lancetable.operations.compact.options import CompactOptions

Order = npt.NDArray[np.int64]
_CURVE_BITS = 64


def order_of(table: pa.Table, options: CompactOptions) -> Order:
    """Return the rows of a table, by number, in the requested order; nulls come last.

    Floats are in the order of predicates: -NaN first, NaN last.

    Raises:
        InputError: a column has a type that cannot be sorted.
    """
    if options.sort_by:
        return _sorted(_keys(table, options.sort_by), options.sort_by)
    return _curve(_keys(table, options.z_order_by), options.z_order_by)


def _keys(table: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
    keys = []
    for number, name in enumerate(names):
        column = table.column(number)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
            raise InputError(f"rows cannot be sorted by column {name!r} of type {column.type}")
        if pa.types.is_floating(column.type):
            column = pa.chunked_array([total_order(chunk) for chunk in column.chunks] or [[]])
        keys.append(column)
    return keys


def _sorted(keys: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Order:
    # Ties keep the order they had, which Arrow promises only for the last of several keys.
    table = pa.table(
        [*keys, pa.array(np.arange(len(keys[0])))], [*map(str, range(len(keys))), "row"]
    )
    by = [(name, "ascending") for name in table.column_names]
    try:
        found = pc.sort_indices(table, sort_keys=by)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as cause:
        raise InputError(f"rows cannot be sorted by {', '.join(names)}: {cause}") from cause
    order: Order = found.to_numpy().astype(np.int64)
    return order


def _curve(keys: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Order:
    bits = _CURVE_BITS // len(keys)
    if not bits:
        raise InputError(f"z_order_by takes at most {_CURVE_BITS} columns, not {len(keys)}")
    rows = len(keys[0])
    value = np.zeros(rows, np.uint64)
    ranks = [_ranks(key, name, min(bits, 32)) for key, name in zip(keys, names, strict=True)]
    for bit in reversed(range(min(bits, 32))):
        for rank in ranks:
            value = value << np.uint64(1) | (rank >> np.uint64(bit)) & np.uint64(1)
    return np.argsort(value, kind="stable")


def _ranks(key: pa.ChunkedArray, name: str, bits: int) -> npt.NDArray[np.uint64]:
    """Return the rank of each value among all values, spread over so many bits."""
    try:
        dense = pc.rank(key, sort_keys="ascending", tiebreaker="dense")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as cause:
        raise InputError(f"rows cannot be sorted by {name}: {cause}") from cause
    ranks: npt.NDArray[np.uint64] = dense.to_numpy().astype(np.uint64) - np.uint64(1)
    most = int(ranks.max()) if ranks.size else 0
    shift = bits - most.bit_length()
    return ranks << np.uint64(shift) if shift > 0 else ranks >> np.uint64(-shift)
