"""Bitwise operators: values, nulls, types and precedence."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import ExpressionError
from lancetable.expression import bind, evaluate, parse, to_sql

TYPES = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u32": pa.uint32(),
    "u64": pa.uint64(),
}


def run(text, batch):
    return evaluate(bind(parse(text), batch.schema), batch)


def wrapped(value, type_):
    bits = type_.bit_width
    value &= 2**bits - 1
    return value - 2**bits if pa.types.is_signed_integer(type_) and value >> (bits - 1) else value


def expected(op, left, right, type_):
    if left is None or right is None:
        return None
    if op == "&":
        return left & right
    if op == "|":
        return left | right
    count = right % type_.bit_width
    return wrapped(left << count, type_) if op == "<<" else left >> count


@given(
    data=st.data(), name=st.sampled_from(list(TYPES)), op=st.sampled_from(["&", "|", "<<", ">>"])
)
def test_columns_of_one_type(data, name, op):
    type_ = TYPES[name]
    signed = pa.types.is_signed_integer(type_)
    low = -(2 ** (type_.bit_width - 1)) if signed else 0
    numbers = st.none() | st.integers(low, low + 2**type_.bit_width - 1) | st.integers(0, 70)
    pairs = data.draw(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
    fits = [
        (a, b) for a, b in pairs if all(n is None or n < low + 2**type_.bit_width for n in (a, b))
    ]
    left, right = ([pair[place] for pair in fits] for place in (0, 1))
    batch = pa.record_batch({"a": pa.array(left, type_), "b": pa.array(right, type_)})
    found = run(f"a {op} b", batch)
    assert found.type == type_
    assert found.to_pylist() == [expected(op, a, b, type_) for a, b in fits]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 | 2 & 4", "1 | (2 & 4)"),
        ("5 & 3 << 1", "(5 & 3) << 1"),
        ("1 << 3 & 1", "1 << (3 & 1)"),
        ("1 | 1 << 3", "1 | (1 << 3)"),
        ("1 << 3 | 1", "(1 << 3) | 1"),
        ("8 >> 1 << 1", "(8 >> 1) << 1"),
        ("1 + 1 << 2", "(1 + 1) << 2"),
        ("1 << 1 + 1", "1 << (1 + 1)"),
        ("i & 1 = 1", "(i & 1) = 1"),
        ("NOT i & 1 = 1", "NOT ((i & 1) = 1)"),
        ("i & NULL IS NULL", "(i & NULL) IS NULL"),
        ("s || 'a' || 'b'", "(s || 'a') || 'b'"),
    ],
)
def test_precedence_is_that_of_datafusion(text, same):
    assert parse(text) == parse(same)
    assert parse(to_sql(parse(text))) == parse(text)


def test_a_constant_shift_counts_in_64_bits():
    batch = pa.record_batch({"i": pa.array([1, -2, None], pa.int32())})
    assert run("i << 33", batch).to_pylist() == [2**33, -(2**34), None]
    assert run("i << -1", batch).to_pylist() == [-(2**63), 0, None]
    assert run("i & 3", batch).type == pa.int32()
    assert run("i | NULL", batch).to_pylist() == [None] * 3


def test_64_unsigned_bits_stay_unsigned():
    batch = pa.record_batch({"u": pa.array([2**63 + 5, 1], pa.uint64()), "i": pa.array([1, -1])})
    assert run("u & 7", batch).to_pylist() == [5, 1]
    with pytest.raises(ExpressionError, match="cannot cast int64 to uint64"):
        run("u & i", batch)


@pytest.mark.parametrize("text", ["1.5 & 1", "s | 1", "b << 1"])
def test_only_integers_have_bits(text):
    batch = pa.record_batch({"s": ["a"], "b": [True]})
    with pytest.raises(ExpressionError, match="is not defined for"):
        run(text, batch)
