"""Searches for vectors through the interface of tables, alone and together with words."""

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError
from tests.unit.scan.test_nearest import search

ROWS, DIM = 4000, 8


@pytest.fixture(scope="module")
def values():
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(30, DIM)) * 3
    found = centres[draw.integers(0, 30, ROWS)] + draw.normal(size=(ROWS, DIM))
    return found.astype(np.float32)


@pytest.fixture(scope="module", params=["no index", "flat", "pq"])
def table(request, tmp_path_factory, values):
    path = tmp_path_factory.mktemp(request.param.replace(" ", "_")) / "t"
    vectors = pa.FixedSizeListArray.from_arrays(values.reshape(-1), DIM)
    words = [f"even{number % 2} tenth{number % 10}" for number in range(ROWS)]
    data = pa.table({"id": range(ROWS), "words": words, "v": vectors})
    made = lt.create_table(path, data.slice(0, 3000))
    if request.param == "flat":
        made.indices.create("v", lt.IvfFlat(partitions=10))
    elif request.param == "pq":
        made.indices.create("v", lt.IvfPq(partitions=10, sub_vectors=4))
    made.append(data.slice(3000))
    made.delete("id % 11 = 5")
    return made


WIDE = {"nprobes": 100, "refine_factor": 20}


def nearest(values, query, keep=lambda number: True):
    """Return the ids of the nearest rows."""
    far = ((values.astype(np.float64) - query) ** 2).sum(axis=1)
    found = np.argsort(far, kind="stable").tolist()
    return [number for number in found if number % 11 != 5 and keep(number)]


def test_one_vector(table, values):
    found = table.search(values[4], columns=["id"], limit=7, **WIDE).to_arrow()
    assert found.column_names == ["id", "_distance"]
    assert found["id"].to_pylist() == nearest(values, values[4])[:7]
    assert found["_distance"].type == pa.float32()
    later = table.search(values[4], columns=["id"], limit=3, offset=4, **WIDE).to_arrow()
    assert later["id"].to_pylist() == nearest(values, values[4])[4:7]
    assert pa.table(table.search(pa.array(values[4]), limit=2, **WIDE))["id"].to_pylist() == [
        4,
        *(nearest(values, values[4])[1:2]),
    ]


def test_several_vectors(table, values):
    found = table.search(values[:3], columns=["id"], limit=4, **WIDE).to_arrow()
    assert found.column_names == ["query_index", "id", "_distance"]
    assert found["query_index"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    expected = [one for number in range(3) for one in nearest(values, values[number])[:4]]
    assert found["id"].to_pylist() == expected
    assert table.search([values[0].tolist()], limit=1).to_arrow().num_rows == 1
    with pytest.raises(InputError, match="offset"):
        table.search(values[:3], offset=1)


@pytest.mark.parametrize("where", ["id % 2 = 1", "id < 40", "id in (7, 8)", "id < 0", "id > 2900"])
def test_a_predicate_comes_first(table, values, where, monkeypatch):
    keep = {
        "id % 2 = 1": lambda number: number % 2 == 1,
        "id < 40": lambda number: number < 40,
        "id in (7, 8)": lambda number: number in {7, 8},
        "id < 0": lambda number: False,
        "id > 2900": lambda number: number > 2900,
    }[where]
    for few in (4096, 0):
        monkeypatch.setattr("lancetable.scan.vectors.nearest.FEW_ROWS", few)
        found = table.search(values[4], columns=["id"], where=where, limit=5, **WIDE).to_arrow()
        assert found["id"].to_pylist() == nearest(values, values[4], keep)[:5]


def test_a_predicate_comes_after_when_that_is_wanted(table, values):
    found = table.search(
        values[4], columns=["id"], where="id % 2 = 1", prefilter=False, limit=9, **WIDE
    ).to_arrow()
    assert found["id"].to_pylist() == [one for one in nearest(values, values[4])[:9] if one % 2]
    near = table.search(
        values[4], columns=["id", "_distance"], where="_distance < 5", prefilter=False, **WIDE
    ).to_arrow()
    assert all(one < 5 for one in near["_distance"].to_pylist())


def test_rows_that_no_index_describes_can_be_left_out(table, values):
    found = table.search(values[3500], columns=["id"], limit=4, indexed_only=True, **WIDE)
    has_index = "v_idx" in table.indices
    expected = nearest(values, values[3500], lambda number: number < 3000 and has_index)[:4]
    assert found.to_arrow()["id"].to_pylist() == expected


def test_words_and_a_vector(table, values):
    for fuse in (None, lt.Rrf(10), lt.Weighted(0.5), lambda ranks: np.nan_to_num(-ranks.vector)):
        found = table.search(
            vector=values[4], text="tenth4", columns=["id"], limit=5, fuse=fuse, **WIDE
        ).to_arrow()
        assert found.column_names == ["id", "_distance", "_score", "_relevance"]
        relevance = found["_relevance"].to_pylist()
        assert relevance == sorted(relevance, reverse=True)
    both = table.search(vector=values[4], text="tenth4", columns=["id"], **WIDE).to_arrow()
    assert both["id"][0].as_py() == 4
    assert both["_distance"][0].as_py() == 0
    assert both["_score"][0].as_py() > 0
    ids = {row["id"] for row in both.to_pylist() if row["_score"] is not None}
    assert all(one % 10 == 4 for one in ids)


def test_what_does_not_go_together(table, values):
    for options, said in [
        ({"query": "tenth4", "nprobes": 4}, "options of a search for vectors"),
        ({"query": values[0], "statistics": "index"}, "options of a search in texts"),
        ({"query": values[0], "vector": values[0]}, "either query, or vector"),
        ({"vector": values[0], "fuse": lt.Rrf()}, "joins two results"),
        ({}, "nothing to search for"),
        ({"query": values[0][:3]}, "3 dimensions, the column has 8"),
        ({"vector": values[:2], "text": "tenth4"}, "several vectors"),
        ({"query": values[0], "metric": "far"}, "give one of l2"),
    ]:
        with pytest.raises(InputError, match=said):
            table.search(**options).to_arrow()


def test_a_search_explains_itself(table, values):
    said = table.search(values[0], where="id < 10", metric="l2").explain()
    assert "vectors near 1 in v by l2" in said
    if "v_idx" in table.indices:
        assert "index v_idx: IVF_" in said
        assert "all compared" in said
        other = table.search(values[0], metric="cosine")
        assert "is by l2, not by cosine" in other.explain()
        assert other.to_arrow().num_rows == 10


def test_recall_is_measured(table):
    if "v_idx" not in table.indices:
        return
    recall = table.indices.recall("v_idx", 20, nprobes=1)
    assert 0.05 < recall <= 1
    assert table.indices.recall("v_idx", 20, nprobes=10, refine_factor=20) == 1
    with pytest.raises(InputError, match="sample is 0"):
        table.indices.recall("v_idx", 0)


def test_recall_does_not_fall_with_a_predicate(tmp_path):
    draw = np.random.default_rng(4)
    rows, dim = 30_000, 16
    centres = draw.normal(size=(100, dim))
    values = (centres[draw.integers(0, 100, rows)] + draw.normal(size=(rows, dim)) * 0.4).astype(
        "f4"
    )
    vectors = pa.FixedSizeListArray.from_arrays(values.reshape(-1), dim)
    share = pa.array(draw.random(rows))
    table = lt.create_table(tmp_path / "t", pa.table({"id": range(rows), "s": share, "v": vectors}))
    table.indices.create("v", lt.IvfFlat(partitions=60))
    recalls = {}
    for least in (1.0, 0.5, 0.3, 0.15):
        same = 0
        for query in values[:40] + np.float32(0.05):
            (exact,) = search(table, query, "v", where=f"s < {least}", use_indices=False)
            (found,) = search(table, query, "v", where=f"s < {least}", nprobes=4)
            same += len({one for one, _ in exact} & {one for one, _ in found})
        recalls[least] = same / 400
    assert min(recalls.values()) >= recalls[1.0] - 0.02, recalls
