"""Values that come in the order of row addresses find their rows, however both are cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import InputError
from lancetable.format.schema.types import schema_from_arrow
from lancetable.operations.columns.joined import Addressed, OrderedMaker

FIELDS = schema_from_arrow(pa.schema([("x", pa.int32())])).fields


def cut(values, sizes):
    """Divide a list into pieces; what the sizes leave over is the last one."""
    for size in sizes:
        yield values[:size]
        values = values[size:]
    yield values


def addressed(piece):
    numbers = pa.array([one * 10 for one in piece], pa.int32())
    batch = pa.RecordBatch.from_arrays([numbers], ["x"])
    return Addressed(np.array(piece, np.uint64), batch)


def given_to(maker, piece):
    batch = pa.RecordBatch.from_arrays([pa.array(piece, pa.uint64())], ["_rowaddr"])
    return maker.make(batch, FIELDS, "")[0].to_pylist()


ADDRESSES = st.sets(st.integers(0, 60)).map(sorted)
SIZES = st.lists(st.integers(0, 7), max_size=8)


@given(ADDRESSES, ADDRESSES, SIZES, SIZES)
def test_each_row_gets_its_value(rows, values, row_sizes, value_sizes):
    maker = OrderedMaker(addressed(piece) for piece in cut(values, value_sizes))
    found = [x for piece in cut(rows, row_sizes) if piece for x in given_to(maker, piece)]
    assert found == [row * 10 if row in set(values) else None for row in rows]


def test_two_values_for_one_row_are_refused():
    maker = OrderedMaker(addressed(piece) for piece in ([1, 2, 5], [5, 6]))
    assert given_to(maker, [1, 2]) == [10, 20]
    with pytest.raises(InputError, match="_rowaddr = 5; keep one"):
        given_to(maker, [4, 5, 6])


def test_two_values_for_no_row_do_no_harm():
    maker = OrderedMaker(addressed(piece) for piece in ([1, 5], [5, 6]))
    assert given_to(maker, [1, 4, 6]) == [10, None, 60]
