"""Sets of the rows of each distinct value, from values in order."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.arrays import byte_strings, numbers
from lancetable.format.encoding.kernels.ordering import order_rows
from lancetable.format.encoding.kernels.sets import RowBitmaps, encode_sets
from lancetable.index.base import Numbers
from lancetable.index.codes import codes_of, has_codes
from lancetable.index.sorting import Pairs, Stream

_Places = npt.NDArray[np.int64]
_ROWS_AT_A_TIME = 256 * 1024
_MOST_BYTES = 1 << 20


class Groups(NamedTuple):
    """Distinct values, and the set of the rows of each as bytes."""

    values: pa.Array
    sets: pa.Array


class _Open(NamedTuple):
    """A value, as an array of one, with rows that may not be all."""

    value: pa.Array
    rows: RowBitmaps


def set_batches(stream: Stream, schema: pa.Schema, *, has_sizes: bool) -> Iterator[pa.RecordBatch]:
    """Yield the distinct values of a sorted stream with the sets of their rows, in either form."""
    values: list[pa.Array] = []
    sets: list[pa.Array] = []
    weight = 0
    for groups in _groups(stream, has_sizes=has_sizes):
        values.append(groups.values)
        sets.append(groups.sets)
        weight += groups.values.nbytes + groups.sets.nbytes
        if weight >= _MOST_BYTES:
            yield pa.RecordBatch.from_arrays(
                [*map(pa.concat_arrays, (values, sets))], schema=schema
            )
            values, sets, weight = [], [], 0
    if values:
        yield _batch(values, sets, schema)


def _batch(values: list[pa.Array], sets: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.concat_arrays(values), pa.concat_arrays(sets)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _groups(stream: Stream, *, has_sizes: bool) -> Iterator[Groups]:
    last: _Open | None = None
    for pairs in stream:
        for first in range(0, len(pairs.rows), _ROWS_AT_A_TIME):
            values, rows = pairs.slice(first, min(first + _ROWS_AT_A_TIME, len(pairs.rows)))
            starts = _starts(values)
            ends = np.append(starts[1:], len(rows))
            if last is not None and _is_same(last.value, values.slice(0, 1)):
                last.rows.add(rows[: ends[0]])
                starts, ends = starts[1:], ends[1:]
            if not len(starts):
                continue
            if last is not None:
                yield _closed(last, has_sizes=has_sizes)
            yield from _whole(Pairs(values, rows), starts, has_sizes=has_sizes)
            last = _Open(values.slice(int(starts[-1]), 1), RowBitmaps())
            last.rows.add(rows[starts[-1] :])
    if last is not None:
        yield _closed(last, has_sizes=has_sizes)


def _closed(group: _Open, *, has_sizes: bool) -> Groups:
    data = byte_strings([group.rows.encoded(has_sizes=has_sizes)])
    return Groups(group.value, data.cast(pa.binary()))


def _is_same(value: pa.Array, other: pa.Array) -> bool:
    if has_codes(value.type) and value[0].is_valid and other[0].is_valid:
        return bool(codes_of(value)[0] == codes_of(other)[0])
    return bool(value.equals(other))


def _whole(pairs: Pairs, starts: _Places, *, has_sizes: bool) -> Iterator[Groups]:
    """Yield all groups but the last, which may go on."""
    if len(starts) < 2:
        return
    edges = starts - starts[0]
    rows = pairs.rows[starts[0] : starts[-1]]
    rows, edges = _ascending(rows, edges)
    data, ends = encode_sets(rows, edges, has_sizes=has_sizes)
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    sets = pa.Array.from_buffers(pa.binary(), len(ends), buffers)
    yield Groups(pairs.values.take(numbers(starts[:-1])), sets)


def _ascending(rows: Numbers, edges: _Places) -> tuple[Numbers, _Places]:
    """Return the rows of each group in ascending order without repetitions, and the new edges."""
    rises = rows[1:] > rows[:-1]
    rises[edges[1:-1] - 1] = True
    if rises.all():
        return rows, edges
    groups = np.repeat(np.arange(len(edges) - 1, dtype=np.uint64), np.diff(edges))
    block = np.concatenate([rows, groups])
    order_rows(block)
    block = np.roll(block, len(rows))
    order_rows(block)  # equal groups keep the order of their rows
    groups, rows = block.reshape(2, -1)
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = (rows[1:] != rows[:-1]) | (groups[1:] != groups[:-1])
    counts = np.bincount(groups[is_new].view(np.int64), minlength=len(edges) - 1)
    return rows[is_new], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _starts(values: pa.Array) -> _Places:
    """Return where each value of a sorted array begins."""
    nulls = values.null_count
    valid = values.slice(nulls)
    if has_codes(values.type):
        codes = codes_of(valid)
        differs = codes[1:] != codes[:-1]
    elif len(valid) < 2:
        differs = np.zeros(0, np.bool_)
    else:
        differs = np.asarray(pc.not_equal(valid.slice(1), valid.slice(0, len(valid) - 1)))
    firsts = [0] if nulls else []
    if len(valid):
        firsts.append(nulls)
    return np.concatenate([np.array(firsts, np.int64), np.flatnonzero(differs) + 1 + nulls])
