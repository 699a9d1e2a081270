"""Keys of merges: the compiled kernels find, order and mark what the NumPy ones do."""

from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.format.encoding.kernels import probing
from lancetable.format.encoding.kernels.compiled import LIBRARY

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="the compiled kernels are not there")

Made = TypeVar("Made")
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1), st.just(2**64 - 1))


def both(make: Callable[[], Made]) -> tuple[Made, Made]:
    compiled = make()
    with patch.object(probing, "DLL", None), patch.object(probing, "DLL", None):
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
    with patch.object(probing, "_FEWEST", 0):
        compiled, plain = both(lambda: probing.ascending_order(values).tolist())
    assert compiled == plain


@pytest.mark.parametrize("count", [255, 256, 100_003])
@pytest.mark.parametrize("top", [2, 2**17, 2**64 - 1])
def test_ordering_many(count: int, top: int) -> None:
    values = np.random.default_rng(count).integers(0, top, count, np.uint64)
    compiled, plain = both(lambda: probing.ascending_order(values))
    assert (compiled == plain).all()


@given(st.lists(NUMBERS, max_size=60), st.sampled_from([1, 2, 64]))
def test_marking(hashes: list[int], blocks: int) -> None:
    def marked() -> bytes:
        filter_ = np.zeros(blocks * 8, np.uint32)
        probing.mark_keys(filter_, np.sort(words(hashes)))
        return filter_.tobytes()

    compiled, plain = both(marked)
    assert compiled == plain
