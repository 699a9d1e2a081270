"""Keys of merges: the compiled kernels find, order and mark what the NumPy ones do."""

import itertools
from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.format.encoding.kernels import ordering, probing, sets, trigrams, xxhash
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.manifest.roaring import decode_treemap
from lancetable.index.row_map import decode_row_map

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="the compiled kernels are not there")

Made = TypeVar("Made")
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1), st.just(2**64 - 1))


def both(make: Callable[[], Made]) -> tuple[Made, Made]:
    compiled = make()
    with (
        patch.object(probing, "DLL", None),
        patch.object(ordering, "DLL", None),
        patch.object(sets, "DLL", None),
        patch.object(xxhash, "DLL", None),
        patch.object(trigrams, "DLL", None),
    ):
        return compiled, make()


def words(values: list[int]) -> npt.NDArray[np.uint64]:
    return np.array(values, np.uint64)


@given(st.lists(NUMBERS, max_size=50), st.lists(NUMBERS, max_size=20), st.integers(3, 9))
def test_probing(many: list[int], few: list[int], digits: int) -> None:
    marks, expected = both(lambda: probing.marks_of(words(few), digits))
    assert marks.bits.tobytes() == expected.bits.tobytes()
    compiled, plain = both(lambda: probing.probe(words(many), marks).tolist())
    assert compiled == plain
    assert all(place in compiled for place, one in enumerate(many) if one in few)


@pytest.mark.parametrize("step", [1, 2])
def test_probing_what_is_no_single_piece_of_memory(step: int) -> None:
    codes = np.arange(100, dtype=np.uint64)[::step]
    marks = probing.marks_of(np.arange(7, 64, 3, dtype=np.uint64)[::step], 6)
    compiled, plain = both(lambda: probing.probe(codes, marks).tolist())
    assert compiled == plain


@given(st.lists(NUMBERS, max_size=40), st.integers(1, 30))
def test_ordering(some: list[int], times: int) -> None:
    values = words(some * times)
    with patch.object(ordering, "_FEWEST", 0):
        compiled, plain = both(lambda: ordering.ascending_order(values).tolist())
    assert compiled == plain


@pytest.mark.parametrize("count", [255, 256, 100_003])
@pytest.mark.parametrize("top", [2, 2**17, 2**64 - 1])
def test_ordering_many(count: int, top: int) -> None:
    values = np.random.default_rng(count).integers(0, top, count, np.uint64)
    compiled, plain = both(lambda: ordering.ascending_order(values))
    assert (compiled == plain).all()


@pytest.mark.parametrize("spread", [1e-9, 1.0, 1e300])
def test_ordering_numbers_that_crowd(spread: float) -> None:
    values = (np.random.default_rng(1).standard_normal(20_000) * spread).view(np.uint64)
    compiled, plain = both(lambda: ordering.ascending_order(np.repeat(values, 3)))
    assert (compiled == plain).all()


TEXTS = st.one_of(
    st.binary(max_size=20),
    st.text("ab\0", max_size=30).map(str.encode),
    st.builds(lambda text, end: text * 9 + end, st.sampled_from([b"http://", b"\0"]), st.binary()),
)


@given(st.lists(TEXTS, max_size=60), st.integers(1, 4), st.integers(0, 3))
def test_ordering_texts(some: list[bytes], times: int, before: int) -> None:
    values = pa.array([b"before"] * before + some * times, pa.large_binary()).slice(before)
    with patch.object(ordering, "_FEWEST", 0):
        compiled, plain = both(lambda: ordering.text_order(values).tolist())
    assert compiled == plain


def test_ordering_texts_that_each_go_on_a_little_longer() -> None:
    texts = [b"a" * (7 * length) + end for length in range(300) for end in (b"b", b"", b"a\0")]
    values = pa.array(texts[::-1], pa.large_binary())
    compiled, plain = both(lambda: ordering.text_order(values).tolist())
    assert compiled == plain


ROWS = st.lists(
    st.one_of(
        st.integers(0, 2**64 - 1),
        st.builds(lambda upper, low: upper << 16 | low, st.integers(0, 9), st.integers(0, 40)),
    ),
    unique=True,
    max_size=40,
).map(sorted)


def decoded(data: bytes, *, has_sizes: bool) -> list[int]:
    found = decode_row_map(data) if has_sizes else decode_treemap(data, most=1 << 32)
    assert found is not None
    rows: list[int] = found.tolist()
    return rows


def assert_sets(groups: list[list[int]], *, has_sizes: bool) -> None:
    edges = np.cumsum([0, *map(len, groups)])
    rows = words([row for group in groups for row in group])
    for data, ends in both(lambda: sets.encode_sets(rows, edges, has_sizes=has_sizes)):
        places = [0, *ends.tolist()]
        parts = [data[a:b].tobytes() for a, b in itertools.pairwise(places)]
        assert [decoded(one, has_sizes=has_sizes) for one in parts] == groups


@given(st.lists(ROWS, max_size=8), st.booleans())
def test_sets(groups: list[list[int]], has_sizes: bool) -> None:
    assert_sets(groups, has_sizes=has_sizes)


@pytest.mark.parametrize("has_sizes", [False, True])
@pytest.mark.parametrize("step", [1, 2, 15, 17, 70_000])
def test_large_sets(step: int, has_sizes: bool) -> None:
    groups = [list(range(first, first + 9_000 * step, step)) for first in (0, 65_530, 2**33)]
    assert_sets([*groups, [], [5]], has_sizes=has_sizes)


@given(st.lists(st.text("aAz09 ?", max_size=40), max_size=20))
def test_trigrams(some: list[str]) -> None:
    def pairs() -> list[tuple[int, int]]:
        found = trigrams.trigrams(pa.array(["before", *some]).cast(pa.large_binary()).slice(1))
        return sorted(zip(found.texts.tolist(), found.tokens.tolist(), strict=True))

    def token(part: str) -> int:
        digits = ["0123456789abcdefghijklmnopqrstuvwxyz".index(one) + 1 for one in part.lower()]
        return (digits[0] * 37 + digits[1]) * 37 + digits[2]

    expected = {
        (number, token(text[at : at + 3]))
        for number, text in enumerate(some)
        for at in range(len(text) - 2)
        if text[at : at + 3].isalnum()
    }
    compiled, plain = both(pairs)
    assert compiled == plain == sorted(expected)


@given(st.lists(st.binary(max_size=100), max_size=20), st.sampled_from([0, 1, 2**64 - 1]))
def test_hashing(texts: list[bytes], seed: int) -> None:
    values = pa.array([b"before", *texts], pa.large_binary()).slice(1)
    compiled, plain = both(lambda: xxhash.hash_binary(values, seed).tolist())
    assert compiled == plain


@pytest.mark.parametrize("width", [1, 2, 4, 7, 8, 16, 31, 32, 33, 77])
def test_hashing_strings_of_one_width(width: int) -> None:
    matrix = np.random.default_rng(width).integers(0, 256, (40, width), np.uint8)
    compiled, plain = both(lambda: xxhash.hash_matrix(matrix, 5).tolist())
    assert compiled == plain
    if width == 8:
        assert both(lambda: xxhash.hash_words(matrix.view(np.uint64)[:, 0], 5).tolist())[0] == plain


@given(st.lists(NUMBERS, max_size=60), st.sampled_from([1, 2, 64]))
def test_marking(hashes: list[int], blocks: int) -> None:
    def marked() -> bytes:
        filter_ = np.zeros(blocks * 8, np.uint32)
        probing.mark_keys(filter_, words(hashes))
        return filter_.tobytes()

    compiled, plain = both(marked)
    assert compiled == plain
