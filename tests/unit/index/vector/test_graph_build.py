"""Graphs connect all vectors, keep their limits, and lead to the nearest vectors."""

import itertools

import numpy as np
import pytest

from lancetable.format.encoding.kernels.compiled import DLL
from lancetable.index.vector.codec import Hnsw
from lancetable.index.vector.graph_build import build_graph
from lancetable.index.vector.rabitq import pack_more, pack_signs, unpack_more, unpack_signs

PARAMETERS = Hnsw(m=6, ef_construction=40, max_level=4)


@pytest.fixture(params=["c", "numpy"])
def kernels(request, monkeypatch):
    """Build with the compiled function, or without it."""
    if request.param == "numpy":
        for module in ("distance", "graph_build"):
            monkeypatch.setattr(f"lancetable.index.vector.{module}.DLL", None)
    elif DLL is None:
        pytest.skip("the kernels are not compiled")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("count", [0, 1, 2, 5, 400])
@pytest.mark.parametrize("metric", ["l2", "dot", "hamming"])
def test_a_graph_keeps_its_rules(count, metric):
    draw = np.random.default_rng(count)
    if metric == "hamming":
        vectors = draw.integers(0, 256, (count, 8)).astype(np.uint8)
    else:
        vectors = draw.normal(size=(count, 8)).astype(np.float32)
    graph = build_graph(vectors, metric, PARAMETERS)
    offsets = graph.level_offsets
    assert len(offsets) == PARAMETERS.max_level + 1
    assert offsets[1] == count
    assert len(graph.edges) == len(graph.ids) + 1
    assert len(graph.neighbours) == len(graph.distances) == graph.edges[-1]
    for level, (first, stop) in enumerate(itertools.pairwise(offsets)):
        members = graph.ids[first:stop].tolist()
        assert members == sorted(set(members))
        for place in range(first, stop):
            linked = graph.neighbours[graph.edges[place] : graph.edges[place + 1]].tolist()
            assert len(set(linked)) == len(linked) <= PARAMETERS.m * (1 if level else 2)
            assert set(linked) <= set(members) - {int(graph.ids[place])}
    if count > 1:
        reached, waiting = {graph.entry}, [graph.entry]
        while waiting:
            one = waiting.pop()
            for other in graph.neighbours[graph.edges[one] : graph.edges[one + 1]].tolist():
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        assert len(reached) > 0.98 * count


def test_both_ways_build_graphs_of_the_same_quality(monkeypatch):
    if DLL is None:
        pytest.skip("the kernels are not compiled")
    vectors = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    compiled = build_graph(vectors, "l2", PARAMETERS)
    for module in ("distance", "graph_build"):
        monkeypatch.setattr(f"lancetable.index.vector.{module}.DLL", None)
    plain = build_graph(vectors, "l2", PARAMETERS)
    assert plain.level_offsets == compiled.level_offsets
    assert plain.entry == compiled.entry
    assert plain.distances.mean() == pytest.approx(compiled.distances.mean(), rel=0.01)
    assert len(plain.neighbours) == pytest.approx(len(compiled.neighbours), rel=0.02)


@pytest.mark.parametrize("bits", range(1, 9))
def test_bits_are_packed_as_they_are_unpacked(bits):
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (7, 100)).astype(np.uint8)
    packed = pack_more(codes, bits)
    assert packed.shape == (7, 16 * bits)
    np.testing.assert_array_equal(unpack_more(packed, bits)[:, :100], codes)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 100])
def test_signs_are_packed_as_they_are_unpacked(count):
    signs = np.random.default_rng(count).integers(0, 256, (count, 5)).astype(np.uint8)
    np.testing.assert_array_equal(unpack_signs(pack_signs(signs)), signs)
