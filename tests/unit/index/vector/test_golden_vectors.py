"""Searches in tables with vector indices of pylance give the recorded rows and distances."""

import json

import numpy as np
import pytest

import lancetable as lt
from lancetable.fragment.readers import Readers
from lancetable.scan.request import parse_where
from lancetable.scan.vector_request import VectorOptions, VectorRequest
from lancetable.scan.vectors.nearest import VectorSearch
from tests.conftest import GOLDEN

FOLDER = GOLDEN / "index"
QUERIES = json.loads((FOLDER / "vectors.json").read_text())
ROUGH = {"ivf_rq5_l2": 0.03}
"""pylance sums the signs of a code with tables of bytes, so that its distances are a bit off."""


def found_by(table, query, **options):
    """Return the ids and distances that a search finds."""
    names = ("nprobes", "refine_factor", "ef", "metric")
    use_indices = options.pop("use_indices", True)
    chosen = VectorOptions(**{name: query[name] for name in names if name in query} | options)
    where = parse_where(query.get("filter"))
    request = VectorRequest("v", query["q"], query["k"], where, chosen, use_indices=use_indices)
    (nearest,) = VectorSearch(Readers(table._snapshot), request).find()
    ids = table.take(row_ids=nearest.rows, columns=["id"])["id"].to_pylist()
    return list(zip(ids, nearest.distances.tolist(), strict=True))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_those_recorded(name):
    table = lt.open_table(FOLDER / name)
    for query in QUERIES[name]:
        found, hits = found_by(table, query), query["hits"]
        if "filter" in query:
            # The few rows that match are all compared, where pylance looks into some partitions.
            assert found == found_by(table, query, use_indices=False)
            continue
        near = ROUGH.get(name, 1e-4)
        for (_, distance), (_, recorded) in zip(found, hits, strict=False):
            assert distance == pytest.approx(recorded, rel=near, abs=1e-4)
        last = hits[-1][1]
        certain = {id_ for id_, distance in hits if distance < last * (1 - near)}
        assert certain <= {id_ for id_, _ in found}
        # Of a table with stable row ids pylance returns fewer rows than were asked for.
        assert len(found) == query["k"]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", QUERIES)
def test_all_partitions_together_hold_the_exact_answer(name):
    table = lt.open_table(FOLDER / name)
    for query in QUERIES[name][:4]:
        exact = found_by(table, query, use_indices=False)
        found = found_by(table, query, nprobes=100, refine_factor=20, ef=600)
        assert [id_ for id_, _ in found] == [id_ for id_, _ in exact]
        np.testing.assert_allclose([d for _, d in found], [d for _, d in exact], rtol=1e-5)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_is_no_vector_finds_nothing(name):
    table = lt.open_table(FOLDER / name)
    query = QUERIES[name][0]
    if "hamming" in name:
        return
    for odd in ([float("nan")] * 16, *([[0.0] * 16] if query["metric"] == "cosine" else [])):
        assert found_by(table, {**query, "q": odd}) == []
        assert found_by(table, {**query, "q": odd}, use_indices=False) == []


def test_further_partitions_are_searched_while_rows_are_missing():
    table = lt.open_table(FOLDER / "ivf_flat_l2")
    query = {**QUERIES["ivf_flat_l2"][0], "k": 500}
    assert len(found_by(table, query, nprobes=1)) < 300
    assert len(found_by(table, query, nprobes=None)) == 500


def test_the_range_is_that_of_the_returned_distances():
    table = lt.open_table(FOLDER / "ivf_pq_cosine")
    query = QUERIES["ivf_pq_cosine"][0]
    exact = [d for _, d in found_by(table, {**query, "k": 100}, use_indices=False)]
    low, high = exact[9], exact[29]
    ranged = found_by(table, query, distance_range=(low, high), refine_factor=50, nprobes=100)
    assert [d for _, d in ranged] == pytest.approx(exact[9:19], rel=1e-5)
    assert found_by(table, query, distance_range=(high, low)) == []
