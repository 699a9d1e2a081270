"""Neighbouring rows come from one compiled walk as page by page, in sound and in damaged files."""

import math
import operator
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.errors import LanceTableError
from lancetable.expression import Comparison
from lancetable.expression.operators.compare import number_test
from lancetable.file import FileReader
from lancetable.format.encoding.compiled_range import Test as OneTest
from lancetable.format.encoding.compiled_range import packed_tests
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.store import MemoryFile
from tests.properties.test_gathering import ROWS, rich_table, written
from tests.same import assert_same_table
from tests.strategies import ABILITIES, tables
from tests.unmapped import CountingFile

needs_kernels = pytest.mark.skipif(LIBRARY is None, reason="there are no compiled kernels")

RANGES = [range(ROWS), range(1), range(3, 1500), range(1023, 1025), range(777, ROWS - 1)]
COMPARISONS: dict[str, Callable[..., pa.Array]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
SIGNS = {
    Comparison.LT: "<",
    Comparison.LE: "<=",
    Comparison.EQ: "==",
    Comparison.NE: "!=",
    Comparison.GT: ">",
    Comparison.GE: ">=",
}


def asked(
    sign: str, kind: "np.dtype[Any]", constant: float
) -> tuple[Comparison, pa.DataType, pa.Scalar]:
    """Return a comparison of a column of a type with a constant, as predicates have it."""
    op = next(op for op, text in SIGNS.items() if text == sign)
    type_ = pa.from_numpy_dtype(kind)
    return op, type_, pa.scalar(kind.type(constant), type_)


def ordered(values: "np.typing.NDArray[Any]") -> "np.typing.NDArray[Any]":
    """Return numbers that compare as the values do, floats in the total order with one zero."""
    if values.dtype.kind != "f":
        return values
    return np.array(
        [
            math.copysign(math.inf, one) if math.isnan(one) else max(min(one, 1e307), -1e307)
            for one in values.tolist()
        ]
    )


def read(data: bytes, rows: range, *, is_near: bool = True) -> pa.Table:
    """Read rows of all columns of a file; what is not near is read page by page."""
    opened = FileReader.open(MemoryFile(data) if is_near else CountingFile(data), "x")
    fields = opened.schema.fields
    columns = [pa.chunked_array(chunks) for chunks in opened.read(fields, rows)]
    return pa.table(columns, names=[field.name for field in fields])


@pytest.mark.parametrize(
    "page_bytes", [pytest.param(1 << 9, marks=pytest.mark.slow), 1 << 15, 1 << 23]
)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_every_way_to_hold_values(version: str, page_bytes: int, tmp_path: Path) -> None:
    table = rich_table()
    data = written(table, version, tmp_path, page_bytes)
    for rows in RANGES:
        found = read(data, rows)
        found.validate(full=True)
        assert_same_table(found, table.slice(rows.start, len(rows)))


@needs_kernels
@pytest.mark.slow
def test_columns_of_plain_values_come_in_one_piece(tmp_path: Path) -> None:
    data = written(rich_table(), "2.1", tmp_path, 1 << 9)
    found = read(data, range(5, ROWS))
    names = ["packed", "packed_nulls", "flat", "flat_nulls", "bits", "bits_nulls"]
    assert [found.column(name).num_chunks for name in names] == [1] * len(names)


@settings(max_examples=40)
@given(version=st.sampled_from(["2.1", "2.2"]), data=st.data())
def test_random_files(
    version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = data.draw(tables(ABILITIES[version], most_rows=800))
    if not table.num_rows:
        return
    folder = tmp_path_factory.mktemp("stretch")
    content = written(table, version, folder, data.draw(st.sampled_from([2000, 1 << 20])))
    start = data.draw(st.integers(0, table.num_rows - 1))
    rows = range(start, data.draw(st.integers(start + 1, table.num_rows)))
    assert_same_table(read(content, rows), read(content, rows, is_near=False))


def few_table() -> pa.Table:
    """Return columns of few values, which pages hold as numbers of the items of a dictionary."""
    rng = np.random.default_rng(8)
    some = pa.array(rng.integers(-(1 << 62), 1 << 62, 50))
    real = pa.array(rng.standard_normal(50))
    chosen = [rng.integers(0, 50, ROWS) for _ in range(4)]
    gaps = pa.array(rng.random(ROWS) < 0.2)
    return pa.table(
        {
            "whole": some.take(pa.array(chosen[0])),
            "real": real.take(pa.array(chosen[1])),
            "real_nulls": pc.if_else(gaps, None, real.take(pa.array(chosen[2]))),
            "wide": some.cast(pa.decimal128(38, 0)).take(pa.array(chosen[3])),
            "wide_nulls": pc.if_else(gaps, None, some.cast(pa.decimal128(38, 0)).take(chosen[3])),
        }
    )


@pytest.mark.parametrize("page_bytes", [1 << 13, 1 << 23])
def test_items_of_dictionaries(page_bytes: int, tmp_path: Path) -> None:
    table = few_table()
    data = written(table, "2.2", tmp_path, page_bytes)
    opened = FileReader.open(MemoryFile(data), "x")
    assert {"dict=" in page.encoding for page in opened.pages()} == {True}
    for rows in RANGES:
        found = read(data, rows)
        found.validate(full=True)
        assert_same_table(found, table.slice(rows.start, len(rows)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_dictionaries", [False, True], ids=["plain", "dictionaries"])
def test_damaged_files_give_what_the_reference_gives(
    seed: int, has_dictionaries: bool, tmp_path: Path
) -> None:
    names = ["packed", "packed_nulls", "flat", "flat_nulls", "bits", "bits_nulls", "lists"]
    table = few_table() if has_dictionaries else rich_table().select(names)
    sound = written(table, "2.2" if has_dictionaries else "2.1", tmp_path)
    chance = random.Random(seed)
    for _ in range(40):
        data = bytearray(sound)
        for _ in range(chance.choice([1, 4, 40])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        outcomes = []
        for is_near in (True, False):
            try:
                outcomes.append(read(bytes(data), range(10, ROWS - 3), is_near=is_near))
            except LanceTableError:
                outcomes.append(None)
        walked, reference = outcomes
        assert (walked is None) == (reference is None)
        if walked is not None:
            assert_same_table(walked, reference)


def lists_of(values: pa.Array, lengths: list[int], type_: Any = pa.ListArray) -> pa.Array:
    """Lists of these lengths, from the first value on; a negative length is a missing list."""
    edges = np.append(0, np.cumsum(np.maximum(lengths, 0)))
    large = type_ is pa.LargeListArray
    offsets = pa.array(edges.astype(np.int64 if large else np.int32))
    mask = pa.array(np.array(lengths) < 0)
    return type_.from_arrays(offsets, values.slice(0, int(edges[-1])), mask=mask)


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data())
def test_lists_of_any_length(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    length = st.one_of(
        st.integers(-1, 3), st.sampled_from([0, 1, 5, 1023, 1024, 1025, 2500]), st.just(-1)
    )
    parts = data.draw(st.lists(st.lists(length, min_size=1, max_size=40), min_size=1, max_size=4))
    rng = np.random.default_rng(3)
    plain = pa.array(rng.integers(0, 1 << data.draw(st.sampled_from([1, 9, 40])), 200_000))
    kind = data.draw(st.sampled_from([pa.int64(), pa.float64(), pa.bool_(), pa.int16()]))
    values = plain.cast(kind, safe=False)
    gaps = pc.if_else(pa.array(rng.random(200_000) < 0.1), None, values)
    type_ = data.draw(st.sampled_from([pa.ListArray, pa.LargeListArray]))
    # Some pages know nulls and others do not, so that their levels have other names.
    chosen = [data.draw(st.sampled_from([values, gaps])) for _ in parts]
    tidy = data.draw(st.lists(st.booleans(), min_size=len(parts), max_size=len(parts)))
    lengths = [
        [max(one, 1) for one in part] if is_tidy else part
        for part, is_tidy in zip(parts, tidy, strict=True)
    ]
    arrays = [lists_of(one, part, type_) for one, part in zip(chosen, lengths, strict=True)]
    table = pa.table({"lists": pa.chunked_array(arrays)})
    folder = tmp_path_factory.mktemp("lists")
    content = written(table, data.draw(st.sampled_from(["2.1", "2.2"])), folder, 1 << 10)
    start = data.draw(st.integers(0, table.num_rows - 1))
    for rows in (
        range(table.num_rows),
        range(start, data.draw(st.integers(start + 1, table.num_rows))),
    ):
        found = read(content, rows)
        found.validate(full=True)
        assert_same_table(found, table.slice(rows.start, len(rows)))
        assert_same_table(found, read(content, rows, is_near=False))


@needs_kernels
def test_lists_come_in_one_piece(tmp_path: Path) -> None:
    data = written(rich_table().select(["lists"]), "2.1", tmp_path, 1 << 10)
    assert read(data, range(5, ROWS)).column("lists").num_chunks == 1


def numbers(dtype: str) -> pa.Array:
    """Values of a type with its ends, with nulls, and NaN where there is one."""
    rng = np.random.default_rng(7)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values = rng.standard_normal(ROWS).astype(kind)
        values[::97], values[5::97], values[7::97] = np.nan, np.inf, -0.0
        values[9::97], values[11::97] = -values[:1][0], 0.0
    else:
        ends = np.iinfo(kind)
        values = rng.integers(ends.min, ends.max, ROWS, kind, endpoint=True)
        values[::2] = rng.integers(0, 100, len(values[::2])).astype(kind)
    return pa.array(values, mask=rng.random(ROWS) < 0.1)


@needs_kernels
@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"], ids=str
)
def test_comparisons(dtype: str, tmp_path: Path) -> None:
    nullable = numbers(dtype)
    table = pa.table({"some": nullable, "all": pc.fill_null(nullable, 50)})
    content = written(table, "2.1", tmp_path, 1 << 13)
    # An odd place makes the values unaligned in memory.
    moved = cast("bytes", memoryview(b"x" + content)[1:])
    kind = np.dtype(dtype)
    constants = [50, 0, 99, *([-0.25, 1e9] if kind.kind == "f" else [])]
    for data in (content, moved):
        opened = FileReader.open(MemoryFile(data), "x")
        for field in opened.schema.fields:
            for rows in RANGES:
                column = table.column(field.name).slice(rows.start, len(rows)).combine_chunks()
                values = pc.fill_null(column, 0).to_numpy()
                is_there = column.is_valid().to_numpy(zero_copy_only=False)
                for constant in constants:
                    for sign, compared in COMPARISONS.items():
                        op, number = number_test(*asked(sign, kind, constant)) or (None, None)
                        assert op is not None
                        assert number is not None
                        tests = packed_tests([OneTest(SIGNS[op], number)])
                        mask, found = opened.match(field, rows, tests) or (None, 0)
                        keys = ordered(np.append(values, kind.type(constant)))
                        expected = compared(keys[:-1], keys[-1]) & is_there
                        assert mask is not None
                        assert np.array_equal(mask, expected), (field.name, rows, sign, constant)
                        assert found == np.count_nonzero(expected)


@needs_kernels
def test_several_comparisons_must_all_be_true(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array(np.arange(ROWS))})
    opened = FileReader.open(MemoryFile(written(table, "2.1", tmp_path)), "x")
    between = packed_tests([OneTest(">=", np.int64(1000)), OneTest("<", np.int64(1010))])
    mask, found = opened.match(opened.schema.fields[0], range(ROWS), between) or (None, 0)
    assert mask is not None
    assert found == 10
    assert np.flatnonzero(mask).tolist() == list(range(1000, 1010))


@needs_kernels
def test_what_has_a_shape_of_its_own_is_not_compared(tmp_path: Path) -> None:
    opened = FileReader.open(MemoryFile(written(rich_table(), "2.1", tmp_path)), "x")
    tests = packed_tests([OneTest("<", np.int64(5))])
    fields = {field.name: field for field in opened.schema.fields}
    assert opened.match(fields["packed"], range(ROWS), tests) is not None
    for name in ("few", "constant", "sorted", "text", "lists", "struct", "bits", "vector"):
        assert opened.match(fields[name], range(ROWS), tests) is None, name
