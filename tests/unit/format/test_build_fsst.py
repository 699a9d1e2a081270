"""Texts become FSST codes and come back; the symbols suit them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.format.encoding.build.compress import TextCoder
from lancetable.format.encoding.kernels import fsst
from lancetable.format.encoding.kernels.fsst_encode import encode, sample, symbol_table, train

Strings = tuple[np.ndarray, np.ndarray]


def strings(values: list[bytes], lead: bytes = b"") -> Strings:
    """Return values as offsets and bytes, with other bytes in front of them."""
    offsets = np.cumsum([len(lead), *map(len, values)])
    return offsets.astype(np.int64), np.frombuffer(lead + b"".join(values), np.uint8)


def decoded(table: bytes, offsets: np.ndarray, codes: np.ndarray) -> list[bytes]:
    edges, text = fsst.decode(fsst.parse_symbol_table(table), offsets, codes)
    return [text[a:b].tobytes() for a, b in itertools.pairwise(edges)]


URLS = [b"https://example.com/%d/item?id=%d" % (number % 90, number) for number in range(5000)]


@given(
    st.lists(st.one_of(st.binary(max_size=40), st.text("ab\0", max_size=200).map(str.encode))),
    st.binary(max_size=3),
)
def test_values_come_back(values: list[bytes], lead: bytes) -> None:
    offsets, data = strings(values, lead)
    table = train(offsets, data)
    assert decoded(table, *encode(table, offsets, data)) == values


@given(
    st.lists(st.binary(min_size=1, max_size=8), max_size=255, unique=True),
    st.lists(st.integers(0, 300), max_size=30),
)
def test_any_symbols_will_do(symbols: list[bytes], picks: list[int]) -> None:
    texts = [*symbols, b"\xff", b"\0", b"else"]
    values = [b"".join(texts[(pick + n) % len(texts)] for n in range(pick % 5)) for pick in picks]
    table = symbol_table(symbols)
    assert decoded(table, *encode(table, *strings(values))) == values


def test_known_codes() -> None:
    table = symbol_table([b"ab", b"abcdef", b"c"])
    offsets, codes = encode(table, *strings([b"ababcdefc", b"", b"xab\xff"]))
    assert codes.tolist() == [0, 1, 2, 255, ord("x"), 0, 255, 255]
    assert offsets.tolist() == [0, 3, 3, 8]


def test_symbols_never_reach_into_the_next_value() -> None:
    table = symbol_table([b"a\0\0", b"b\0"])
    values = [b"a", b"\0\0a\0", b"b", b"\0", b"a\0\0"]
    assert decoded(table, *encode(table, *strings(values))) == values


def test_texts_get_short_and_training_is_repeatable() -> None:
    offsets, data = strings(URLS)
    table = train(offsets, data)
    assert table == train(offsets, data)
    _, codes = encode(table, offsets, data)
    assert len(codes) < 0.32 * len(data)
    assert len(fsst.parse_symbol_table(table).symbols) > 50


def test_long_values_are_cut_and_come_back() -> None:
    values = [b"the quick brown fox " * 5000, b"", b"jumps over the lazy dog" * 3]
    offsets, data = strings(values)
    table = train(offsets, data)
    edges, codes = encode(table, offsets, data)
    assert len(codes) < len(data) / 4
    assert decoded(table, edges, codes) == values


def test_a_sample_is_small_and_comes_from_everywhere() -> None:
    offsets, data = strings([b"%08d" % number for number in range(100_000)])
    edges, text = sample(offsets, data)
    assert 10_000 < len(text) < 100_000
    found = [int(text[a:b].tobytes()) for a, b in itertools.pairwise(edges)]
    assert found == sorted(found)
    assert found[0] < 5000
    assert found[-1] > 95_000


def test_a_coder_keeps_its_table_while_it_pays() -> None:
    coder = TextCoder()
    first = coder.encode(*strings(URLS))
    again = coder.encode(*strings(URLS[::-1]))
    other = coder.encode(*strings([b"%07d:%03x|" % (n * 31, n % 999) for n in range(5000)]))
    assert first is not None
    assert again is not None
    assert other is not None
    assert again.symbol_table is first.symbol_table
    assert other.symbol_table != first.symbol_table


@pytest.mark.parametrize("values", [[b"short"], [], [b""] * 9])
def test_few_bytes_are_not_coded(values: list[bytes]) -> None:
    assert TextCoder().encode(*strings(values)) is None


def test_noise_is_not_coded() -> None:
    noise = np.random.default_rng(0).bytes(50_000)
    assert TextCoder().encode(*strings([noise[n : n + 10] for n in range(0, 50_000, 10)])) is None
