"""Values of a page are cut into chunks, and rows into pages, without losing any."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lancetable.format.encoding.blocks import Chunks, FixedWidth, VariableWidth
from lancetable.format.encoding.build import choose
from lancetable.format.encoding.build.blocks import VariableValues, bool_bits
from lancetable.format.encoding.build.choose import MOST_LEVELS, is_crowded, split_rows
from lancetable.format.encoding.build.compress import TextCoder
from lancetable.format.encoding.build.field_options import FieldOptions
from lancetable.format.encoding.build.shred import Shredded, shred
from lancetable.format.encoding.build.values import (
    ChunkedValues,
    block_widths,
    encode_bitpacked,
    encode_runs,
    encode_variable,
    run_starts,
)
from lancetable.format.encoding.codec import decode_layout
from lancetable.format.schema.types import schema_from_arrow


def decoded(encoded: ChunkedValues) -> Any:
    compression: Any = encoded.compression
    return compression.decode_chunks(Chunks(encoded.buffers, encoded.counts))


def values_of(encoded: ChunkedValues) -> np.ndarray:
    block = decoded(encoded)
    assert isinstance(block, FixedWidth)
    return block.data.reshape(-1).view(f"<u{block.width}")


def shredded(array: pa.Array) -> Shredded:
    field = schema_from_arrow(pa.schema([("x", array.type)])).fields[0]
    return next(shred(field, array))


def described(array: pa.Array, grammar: choose.Grammar, **options: Any) -> list[str]:
    """Return how the pages of an array are encoded."""
    choice = choose.Choice(FieldOptions(**options), grammar, TextCoder())
    pages = choose.build_pages(shredded(array), len(array), choice)
    return [str(decode_layout(page.description)) for page in pages]


@pytest.mark.parametrize("kind", ["<u1", "<u2", "<u4", "<u8"])
@pytest.mark.parametrize("count", [1, 1024, 1025, 90 * 1024 + 3])
@pytest.mark.parametrize("style", ["even", "rising", "mixed"])
def test_bit_packed_values_come_back(kind: str, count: int, style: str) -> None:
    top = np.iinfo(kind).max
    chance = np.random.default_rng(count)
    words = chance.integers(0, min(top, 1 << 62), count, dtype=np.uint64)
    blocks = np.arange(count) // 1024
    if style == "even":
        words >>= np.uint64(np.dtype(kind).itemsize * 4)
    elif style == "rising":
        words %= (blocks // 20 * 7 + 1).astype(np.uint64)
    else:
        words %= (1 + blocks % 3 * 11).astype(np.uint64)
    narrow = words.astype(kind)
    assert np.array_equal(values_of(encode_bitpacked(narrow, block_widths(narrow))), narrow)


@pytest.mark.parametrize("longest", [1, 255, 256, 5000])
def test_runs_come_back(longest: int) -> None:
    chance = np.random.default_rng(longest)
    words = np.repeat(chance.integers(0, 9, 200, np.uint32), chance.integers(1, longest + 1, 200))
    assert np.array_equal(values_of(encode_runs(words, run_starts(words))), words)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("longest", [0, 5, 90, 250])
@pytest.mark.parametrize("count", [1, 256, 257, 5000])
def test_texts_come_back(bits: int, longest: int, count: int) -> None:
    chance = np.random.default_rng(count)
    lengths = chance.integers(0, longest + 1, count)
    offsets = np.concatenate([[7], 7 + np.cumsum(lengths)])
    data = np.frombuffer(chance.bytes(int(offsets[-1])), np.uint8)
    encoded = encode_variable(VariableValues(offsets, data, bits))
    block = decoded(encoded)
    assert isinstance(block, VariableWidth)
    assert np.array_equal(np.diff(block.offsets), lengths)
    first = int(block.offsets[0])
    assert np.array_equal(block.data[first : int(block.offsets[-1])], data[7:])


def test_crowded_rows_are_split_between_rows() -> None:
    lengths = np.zeros(200_000, np.int64)
    lengths[[5, 70_000, 199_999]] = (3, 200, 1)
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.array(np.arange(204)))
    leaf = shredded(lists)
    assert is_crowded(leaf)
    parts = list(split_rows(leaf))
    assert sum(rows for _, rows in parts) == len(lists)
    levels = [np.array(part.def_) for part, _ in parts]
    assert max(map(len, levels)) <= MOST_LEVELS
    assert np.array_equal(np.concatenate(levels), np.array(leaf.def_))
    assert pa.concat_arrays([part.values for part, _ in parts]).equals(leaf.values)


def test_full_rows_are_not_crowded() -> None:
    lists = pa.array([[1, 2]] * 100_000)
    assert not is_crowded(shredded(lists))
    assert not is_crowded(shredded(pa.array(range(100_000))))


CASES = [
    (pa.nulls(9, pa.int8()), "constant", "constant"),
    (pa.array([7] * 999), "rle64", "constant"),
    (pa.array(range(999)), "bitpack64", "bitpack64"),
    (pa.array(np.random.default_rng(0).random(999)), "flat64", "flat64"),
    (pa.array(["a", "b"] * 500), "dict=variable32x2", "dict=variable32x2"),
    (pa.array([str(n) for n in range(999)]), "variable32", "variable32"),
    (pa.array(["x" * 300, "y"]), "fullzip", "fullzip"),
    (pa.array([[1.0] * 64] * 9, pa.list_(pa.float32(), 64)), "fullzip", "fullzip"),
    (pa.array([[1.0] * 63] * 9, pa.list_(pa.float32(), 63)), "miniblock", "miniblock"),
    (pa.array([True, False, None]), "flat1", "flat1"),
]


@pytest.mark.parametrize(("array", "in_2_1", "in_2_2"), CASES)
def test_values_choose_their_encoding(array: pa.Array, in_2_1: str, in_2_2: str) -> None:
    assert in_2_1 in described(array, choose.V2_1)[0]
    assert in_2_2 in described(array, choose.V2_2)[0]


def test_wishes_come_first() -> None:
    numbers, texts = pa.array(range(9999)), pa.array([f"user-{n}" for n in range(9999)])
    assert "flat64" in described(numbers, choose.V2_1, compression="none")[0]
    assert "fullzip" in described(numbers, choose.V2_1, structure="fullzip")[0]
    bits = pa.array([[True] * 8] * 9 + [None], pa.list_(pa.bool_(), 8))
    assert "miniblock" in described(bits, choose.V2_1, structure="fullzip")[0]
    assert "zstd" in described(numbers, choose.V2_1, compression="zstd")[0]
    assert "fsst(variable32)" in described(texts, choose.V2_2, compression="fsst")[0]
    zipped = described(texts, choose.V2_2, compression="fsst", structure="fullzip")
    assert "fullzip values=fsst(variable32)" in zipped[0]


@pytest.mark.parametrize("first", [0, 3, 8, 16])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 100, 5000])
@pytest.mark.parametrize("nulls", [False, True])
def test_booleans_stay_bits(first: int, count: int, nulls: bool) -> None:
    chance = np.random.default_rng(count)
    flags = chance.random(5100) < 0.5
    mask = chance.random(5100) < 0.1 if nulls else None
    array = pa.array(flags, mask=mask).slice(first, count)
    expected = np.array([bool(value) for value in array.to_pylist()], np.bool_)
    assert bool_bits(array).tolist() == np.packbits(expected, bitorder="little").tolist()


@pytest.mark.parametrize("values", [[True] * 9, [False] * 9, [True, None] * 5, [True, False]])
def test_equal_booleans_are_a_constant(values: list[bool | None]) -> None:
    expected = len({value for value in values if value is not None}) == 1
    (found,) = described(pa.array(values), choose.V2_2)
    assert found.startswith("constant") is expected
