"""Values of every type in order, with sets of their rows, also when little memory is allowed."""

import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lancetable as lt
from lancetable.format.manifest.roaring import decode_treemap
from lancetable.index import grouping, sorting
from lancetable.index.codes import codes_of, has_codes, values_of
from lancetable.index.row_map import decode_row_map
from lancetable.index.sorting import Pairs

FLOATS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, -2.5, 6e4]
INTEGERS = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=20) | st.builds(lambda end: b"in common" + end, st.binary(max_size=9))
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): INTEGERS,
    pa.uint8(): st.integers(0, 255),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.sampled_from(FLOATS).map(np.float16),
    pa.float32(): st.sampled_from(FLOATS),
    pa.float64(): st.sampled_from(FLOATS) | st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=12),
    pa.large_string(): st.text("ab", max_size=30),
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(20, 3): st.integers(-999, 999).map(lambda number: Decimal(number) / 8),
    pa.date32(): st.integers(-1000, 1000),
    pa.time64("us"): st.integers(0, 1000),
    pa.timestamp("ns", "UTC"): INTEGERS,
    pa.duration("s"): INTEGERS,
}


def array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(type_):
        width = pa.int32() if type_.bit_width == 32 else pa.int64()
        return pa.array(values, width).view(type_)
    return pa.array(values, type_)


def order(value: Any) -> Any:
    """Return what stands for a value in plain Python."""
    if isinstance(value, float | np.floating):
        bits = int(np.float64(value).view(np.int64))
        return bits if bits >= 0 else -(bits & (2**63 - 1)) - 1
    return value.encode() if isinstance(value, str) else value


class Sink:
    """Where runs wait."""

    def __init__(self) -> None:
        self.files = 0
        self._open = ExitStack()

    def spill(self) -> IO[bytes]:
        self.files += 1
        return self._open.enter_context(tempfile.TemporaryFile())

    def write(self, *_: object, **__: object) -> None:
        raise NotImplementedError


CASES = st.sampled_from(list(VALUES)).flatmap(
    lambda type_: st.tuples(st.just(type_), st.lists(st.none() | VALUES[type_], max_size=200))
)


def stream(values: pa.Array, step: int) -> Iterator[Pairs]:
    rows = np.arange(len(values), dtype=np.uint64)
    for first in range(0, len(values), step):
        yield Pairs(values.slice(first, step), rows[first : first + step])


@given(CASES, st.integers(1, 40), st.sampled_from([1, 10**9]))
def test_pairs_are_sorted(case, step, memory):
    type_, values = case
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sorting, "FAN_IN", 3)
        patched.setattr(sorting, "_LEAST_BLOCK", 2)
        sink = Sink()
        found = list(sorting.sort(stream(array(values, type_), step), sink, memory))
    rows = [row for part in found for row in part.rows.tolist()]
    sorted_ = pa.chunked_array([part.values for part in found], type_)
    assert sorted(rows) == list(range(len(values)))
    taken = array(values, type_).take(pa.array(rows, pa.int64()))
    assert (
        taken.view(pa.binary(type_.bit_width // 8)).equals(
            sorted_.combine_chunks().view(pa.binary(type_.bit_width // 8))
        )
        if has_codes(type_) and not pa.types.is_boolean(type_)
        else taken.equals(sorted_.combine_chunks())
    )
    keys = [values[row] for row in rows]
    nulls = keys.count(None)
    assert keys[:nulls] == [None] * nulls
    assert [order(key) for key in keys[nulls:]] == sorted(order(key) for key in keys[nulls:])
    assert bool(sink.files) == (memory < 10**9 and bool(values))


def listed(values: pa.Array) -> list[Any]:
    """Return values; of times their numbers, as Python has no nanoseconds."""
    type_ = values.type
    is_time = pa.types.is_timestamp(type_) or pa.types.is_time64(type_)
    is_number = is_time or pa.types.is_duration(type_)
    found: list[Any] = (values.view(pa.int64()) if is_number else values).to_pylist()
    return found


@given(CASES, st.integers(0, 3))
def test_codes_are_values(case, nulls):
    type_, values = case
    if not has_codes(type_):
        return
    plain = array([None, *(one for one in values if one is not None)], type_).slice(1)
    back = values_of(codes_of(plain), type_, nulls)
    assert back.null_count == nulls
    assert codes_of(back)[nulls:].tolist() == codes_of(plain).tolist()
    assert str(listed(back)[nulls:]) == str(listed(plain))


@given(CASES, st.integers(1, 60), st.booleans(), st.integers(1, 50))
def test_rows_of_each_value(case, step, has_sizes, at_a_time):
    type_, values = case
    draw = np.random.default_rng(len(values))
    rows = draw.integers(0, 1 << 34, len(values), np.uint64)
    rows[::7] = rows[:1] if len(rows) else 0
    whole = sorting.in_order([Pairs(array(values, type_), rows)])
    parts = (whole.slice(first, first + step) for first in range(0, len(rows), step))
    schema = pa.schema([("key", type_), ("set", pa.binary())])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grouping, "_ROWS_AT_A_TIME", at_a_time)
        patched.setattr(grouping, "_MOST_BYTES", 100)
        batches = list(grouping.set_batches(parts, schema, has_sizes=has_sizes))
    found = [
        (order(key), read(data, has_sizes=has_sizes))
        for batch in batches
        for key, data in zip(*(listed(column) for column in batch.columns), strict=True)
    ]
    expected: dict[Any, set[int]] = {}
    for value, row in zip(listed(array(values, type_)), rows.tolist(), strict=True):
        expected.setdefault(order(value), set()).add(row)
    assert dict(found) == {key: sorted(some) for key, some in expected.items()}
    assert len(found) == len(expected)


def read(data: bytes, *, has_sizes: bool) -> list[int]:
    found = decode_row_map(data) if has_sizes else decode_treemap(data, most=1 << 32)
    assert found is not None
    rows: list[int] = found.tolist()
    return rows


@given(CASES, st.integers(1, 40))
def test_streams_of_files_are_checked(case, step):
    type_, values = case
    pairs = sorting.in_order([Pairs(array(values, type_), np.zeros(len(values), np.uint64))])
    plain = pairs.values.to_pylist()
    parts = [pairs.slice(at, at + step) for at in range(0, len(plain), step)]
    assert len(
        pa.chunked_array([one.values for one in sorting.checked(iter(parts))], type_)
    ) == len(plain)
    if len({order(one) for one in plain}) > 1:
        last = pairs.slice(len(plain) - 1, len(plain))
        with pytest.raises(lt.CorruptError, match="not in order"):
            list(sorting.checked(iter([last, *parts])))


def test_a_full_disk_is_an_error_of_the_store():
    class Full(Sink):
        def spill(self) -> IO[bytes]:
            raise OSError(28, "No space left on device")

    with pytest.raises(lt.StoreError, match="No space left"):
        list(sorting.sort(stream(pa.array(range(100)), 10), Full(), 100))
