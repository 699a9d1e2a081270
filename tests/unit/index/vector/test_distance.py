"""Distances are those of plain Python, and the nearest rows those of a sorted list."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancetable.errors import InputError
from lancetable.index.vector.distance import distances
from lancetable.index.vector.live import Live
from lancetable.index.vector.top import Top
from lancetable.index.vector.types import VectorType, parse_metric, queries_of

ITEMS = ("float16", "float32", "float64", "uint8", "bfloat16")


def plain(one, other, metric):
    """Return a distance in the precision of Python."""
    if metric == "hamming":
        return sum((a ^ b).bit_count() for a, b in zip(one, other, strict=True))
    if metric == "l2":
        return math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True))
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    if metric == "dot":
        return 1 - product
    return 1 - product / math.sqrt(math.fsum(a * a for a in one) * math.fsum(b * b for b in other))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("dim", [1, 7, 16, 33, 128])
def test_distances_are_those_of_python(item, dim):
    draw = np.random.default_rng(dim)
    type_ = VectorType(item, dim)
    if item == "uint8":
        vectors = draw.integers(0, 256, (20, dim), np.uint8)
        values = vectors.tolist()
    else:
        vectors = draw.normal(size=(20, dim)).astype("float32" if item == "bfloat16" else item)
        if item == "bfloat16":
            vectors = (vectors.view(np.uint32) >> 16).astype(np.uint16)
            values = (vectors.astype(np.uint32) << 16).view(np.float32).tolist()
        else:
            values = vectors.tolist()
    queries = queries_of(values[:3], type_)
    for metric in type_.metrics:
        found = distances(vectors, queries, type_, metric)
        for number in range(3):
            expected = [plain(one, values[number], metric) for one in values]
            np.testing.assert_allclose(found[number], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("item", ["float16", "float32", "float64"])
def test_odd_vectors_have_odd_distances(item):
    type_ = VectorType(item, 2)
    vectors = np.array([[0, 0], [math.nan, 0], [math.inf, 1], [3, 4]], item)
    query = queries_of([3.0, 4.0], type_)
    l2, cosine, dot = (distances(vectors, query, type_, one)[0] for one in type_.metrics)
    assert l2[[0, 2, 3]].tolist() == [25, math.inf, 0]
    assert dot[[0, 2, 3]].tolist() == [1, -math.inf, -24]
    assert cosine[3] == pytest.approx(0, abs=1e-3)
    assert np.isnan([l2[1], dot[1], cosine[0], cosine[1], cosine[2]]).all()


@pytest.mark.usefixtures("kernels")
def test_every_float_of_16_bits_is_read():
    vectors = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 1)
    found = distances(vectors, np.ones((1, 1), np.float32), VectorType("float16", 1), "dot")[0]
    with np.errstate(invalid="ignore"):
        expected = 1 - vectors[:, 0].astype(np.float32)
    np.testing.assert_array_equal(found, expected)


OFFERED = st.lists(
    st.tuples(
        st.floats(width=32) | st.sampled_from([0.0, 1.0, 1.5]), st.integers(0, 20), st.booleans()
    ),
    max_size=60,
)


@given(
    offered=OFFERED,
    most=st.integers(1, 8),
    low=st.none() | st.floats(-3, 3, width=32),
    high=st.none() | st.floats(-3, 3, width=32),
    cut=st.integers(0, 60),
)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_the_nearest_rows_are_kept(is_compiled, offered, most, low, high, cut):
    top = Top(2, most, (low, high))
    with pytest.MonkeyPatch.context() as patch:
        if not is_compiled:
            patch.setattr("lancetable.index.vector.top.DLL", None)
        for part in (offered[:cut], offered[cut:]):
            far = np.array([[one for one, _, _ in part]], np.float32)
            rows = np.array([row for _, row, _ in part], np.uint64)
            mask = np.array([is_live for _, _, is_live in part], np.bool_)
            top.offer(far, rows, mask, 1)
    expected = sorted(
        (far, row)
        for far, row, is_live in offered
        if is_live
        and not math.isnan(far)
        and (low is None or far >= low)
        and (high is None or far < high)
    )[:most]
    found = top.found(1)
    assert list(zip(found.distances.tolist(), found.rows.tolist(), strict=True)) == expected
    assert not len(top.found(0).rows)


ROWS = st.lists(
    st.builds(lambda upper, lower: upper << 32 | lower, st.integers(0, 3), st.integers(0, 60))
)


@given(ROWS, ROWS)
def test_live_rows_are_those_that_were_named(named, asked):
    rows = np.array(named, np.uint64)
    wanted = np.array(asked, np.uint64)
    assert Live.only(rows).mask(wanted).tolist() == [one in set(named) for one in asked]
    firsts = np.unique(rows)
    spanning = Live.spanning(firsts, np.ones(len(firsts), np.uint64))
    assert spanning.mask(wanted).tolist() == [one in set(named) for one in asked]


def test_wrong_queries_are_refused():
    type_ = VectorType("float32", 3)
    with pytest.raises(InputError, match="2 dimensions, the column has 3"):
        queries_of([1.0, 2.0], type_)
    for odd in ("abc", [["a"]], [[[1.0, 2.0, 3.0]]], [[1.0], [1.0, 2.0]], 5):
        with pytest.raises(InputError, match="vector"):
            queries_of(odd, type_)
    with pytest.raises(InputError, match="outside 0 to 255"):
        queries_of([1, 2, 256], VectorType("uint8", 3))
    assert parse_metric("Euclidean", type_) == "l2"
    with pytest.raises(InputError, match="give one of l2"):
        parse_metric("manhattan", type_)
    with pytest.raises(InputError, match="does not compare"):
        parse_metric("hamming", type_)
