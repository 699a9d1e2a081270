"""Compiled kernels of the writing side give, byte for byte, what the NumPy kernels give."""

from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancetable.format.encoding.build import miniblock, values
from lancetable.format.encoding.build.blocks import VariableValues
from lancetable.format.encoding.kernels import bitpack, fsst_encode
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.kernels.ragged import Ragged

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="the compiled kernels are not there")

Made = TypeVar("Made")
PIECES = st.one_of(
    st.binary(max_size=40),
    st.text("ab\0", max_size=200).map(str.encode),
    st.sampled_from([b"user12", b"user77", b"https://example.com/", b"\xff\xff", b""]),
)
TEXTS = st.lists(PIECES, max_size=60)


def both(make: Callable[[], Made]) -> tuple[Made, Made]:
    """Return what the compiled and what the NumPy kernels make."""
    compiled = make()
    modules = (bitpack, fsst_encode, miniblock, values)
    patches = [patch.object(module, "LIBRARY", None) for module in modules]
    for one in patches:
        one.start()
    try:
        return compiled, make()
    finally:
        for one in patches:
            one.stop()


def strings(texts: list[bytes], lead: bytes = b"") -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([len(lead), *map(len, texts)]).astype(np.int64)
    return offsets, np.frombuffer(lead + b"".join(texts), np.uint8)


@given(TEXTS, st.binary(max_size=3))
def test_training(texts: list[bytes], lead: bytes) -> None:
    compiled, plain = both(lambda: fsst_encode.train(*strings(texts, lead)))
    assert compiled == plain


@given(
    st.lists(st.binary(min_size=1, max_size=8), max_size=255, unique=True), TEXTS, st.integers(0, 9)
)
def test_codes(symbols: list[bytes], texts: list[bytes], repeats: int) -> None:
    table = fsst_encode.symbol_table(symbols)
    texts = [*texts, *(b"".join(symbols[n::7]) for n in range(repeats))]
    compiled, plain = both(lambda: fsst_encode.encode(table, *strings(texts)))
    assert compiled[0].tolist() == plain[0].tolist()
    assert compiled[1].tobytes() == plain[1].tobytes()


def test_symbols_and_codes_of_many_texts() -> None:
    texts = [b"user%d/%x" % (n * 7919 % 99991, n % 17) for n in range(20_000)]
    compiled, plain = both(lambda: fsst_encode.train(*strings(texts)))
    assert compiled == plain
    codes, expected = both(lambda: fsst_encode.encode(compiled, *strings(texts)))
    assert codes[1].tobytes() == expected[1].tobytes()
    assert codes[0].tolist() == expected[0].tolist()


@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 7, 12, 63, 64, 65, 700, 40_000]), max_size=12),
    st.integers(1, 400),
    st.integers(0, 2**32),
)
@settings(max_examples=60)
def test_codes_of_values_of_any_length(lengths: list[int], repeats: int, seed: int) -> None:
    # Few different bytes, so that symbols also fit where a value ends and the next one starts.
    lengths = [*lengths, *[length for length in lengths if length < 100] * repeats]
    chance = np.random.default_rng(seed)
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    data = chance.integers(0, 3, int(offsets[-1]), np.uint8)
    symbols = [b"\0\1", b"\0\0\0", b"\1\2\0\0", b"\2", b"\2\1\0\2\1\1\0\0", b"\0\0\0\0\0\0\0\0"]
    table = fsst_encode.symbol_table(symbols)
    compiled, plain = both(lambda: fsst_encode.encode(table, offsets, data))
    assert compiled[0].tolist() == plain[0].tolist()
    assert compiled[1].tobytes() == plain[1].tobytes()


@given(
    st.sampled_from(["<u1", "<u2", "<u4", "<u8"]),
    st.lists(st.integers(0, 64), min_size=1, max_size=4),
    st.integers(1, 1024),
    st.integers(0, 2**32),
)
def test_packing(kind: str, widths: list[int], last: int, seed: int) -> None:
    bits = np.dtype(kind).itemsize * 8
    chance = np.random.default_rng(seed)
    blocks = [
        chance.integers(0, 2 ** min(width, bits) - 1, 1024, np.uint64, endpoint=True)
        for width in widths
    ]
    words = np.concatenate(blocks)[: len(widths) * 1024 - 1024 + last].astype(kind)
    compiled, plain = both(lambda: values.encode_bitpacked(words, values.block_widths(words)))
    assert compiled.buffers[0].data.tobytes() == plain.buffers[0].data.tobytes()


@given(TEXTS, st.sampled_from([32, 64]), st.binary(max_size=3))
def test_chunks_of_text(texts: list[bytes], bits: int, lead: bytes) -> None:
    offsets, data = strings([*texts, b"one"], lead)
    compiled, plain = both(lambda: values.encode_variable(VariableValues(offsets, data, bits)))
    assert compiled.counts.tolist() == plain.counts.tolist()
    assert compiled.buffers[0].data.tobytes() == plain.buffers[0].data.tobytes()


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=40))
def test_pieces_in_rooms(pieces: list[bytes]) -> None:
    offsets, data = strings(pieces)
    sizes = np.diff(offsets)
    rooms = (sizes + 7) // 8 * 8
    places = np.cumsum(rooms) - rooms

    def laid() -> bytes:
        out = np.full(int(rooms.sum()), 170, np.uint8)
        miniblock._scatter(out, places, Ragged(data, offsets[:-1], sizes), rooms)
        return out.tobytes()

    compiled, plain = both(laid)
    assert compiled == plain
