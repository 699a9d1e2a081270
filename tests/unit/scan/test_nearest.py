"""The nearest rows of tables without an index are those of plain NumPy."""

import math

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import InputError, SchemaError
from lancetable.fragment.readers import Readers
from lancetable.scan.request import parse_where
from lancetable.scan.vector_request import VectorOptions, VectorRequest
from lancetable.scan.vectors.nearest import VectorSearch

DIM = 6


def search(table, vector, column=None, limit=10, where=None, **options):
    """Return the ids and distances of each result."""
    use_indices = options.pop("use_indices", True)
    chosen = VectorOptions(**options)
    request = VectorRequest(
        column, vector, limit, parse_where(where), chosen, use_indices=use_indices
    )
    found = VectorSearch(Readers(table._snapshot), request).find()
    return [list(zip(_ids(table, one.rows), one.distances.tolist(), strict=True)) for one in found]


def _ids(table, rows):
    return table.take(row_ids=rows, columns=["id"])["id"].to_pylist()


def vectors(draw, count, type_):
    """Return some vectors, some of them null, with a null or NaN in them, or of zeros."""
    found: list[list[float] | None] = []
    for number in range(count):
        values = np.round(draw.normal(size=DIM), 1).astype(type_.to_pandas_dtype()).tolist()
        match number % 29:
            case 3:
                values = None
            case 5:
                values[2] = None
            case 7:
                values[1] = math.nan
            case 11:
                values = [0.0] * DIM
            case 13:
                values = found[0]
        found.append(values)
    return found


def exact(one, query, metric):
    """Return the distance of two lists; None when there is none."""
    if one is None or None in one:
        return None
    a, b = np.array(one, np.float64), np.array(query, np.float64)
    with np.errstate(all="ignore"):
        far = {
            "l2": (a - b) @ (a - b),
            "dot": 1 - a @ b,
            "cosine": 1 - a @ b / np.sqrt((a @ a) * (b @ b)),
        }[metric]
    return None if math.isnan(far) else float(far)


@pytest.mark.parametrize("is_stable", [False, True])
@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_rows_are_those_of_numpy(tmp_path, type_, is_stable):
    draw = np.random.default_rng(7)
    values = vectors(draw, 300, type_)
    data = pa.table({"id": range(300), "v": pa.array(values, pa.list_(type_, DIM))})
    table = lt.create_table(tmp_path / "t", data.slice(0, 120), stable_row_ids=is_stable)
    table.append(data.slice(120))
    table.delete("id % 10 = 4")
    queries = [values[0], values[1], np.round(draw.normal(size=DIM), 1).tolist()]
    for metric in ("l2", "cosine", "dot"):
        for where in (None, "id >= 50 and id % 3 = 0"):
            found = search(table, queries, where=where, metric=metric)
            for query, hits in zip(queries, found, strict=True):
                far = [
                    (exact(one, query, metric), number)
                    for number, one in enumerate(values)
                    if number % 10 != 4 and (not where or (number >= 50 and number % 3 == 0))
                ]
                expected = sorted(one for one in far if one[0] is not None)[:10]
                near = [distance for distance, _ in expected]
                tolerance = 2e-3 if type_ == pa.float16() else 1e-5
                assert [d for _, d in hits] == pytest.approx(near, rel=tolerance, abs=tolerance)
                for id_, distance in hits:
                    known = exact(values[id_], query, metric)
                    assert distance == pytest.approx(known, rel=tolerance, abs=tolerance)


def test_more_rows_than_there_are(tmp_path):
    data = pa.table({"id": [1, 2], "v": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2))})
    table = lt.create_table(tmp_path / "t", data)
    assert search(table, [1.0, 2.0], limit=100) == [[(1, 0.0)]]
    assert search(table, [1.0, 2.0], where="id > 5") == [[]]
    table.delete("true")
    assert search(table, [[1.0, 2.0], [0.0, 0.0]]) == [[], []]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_lists_of_vectors_are_compared_as_a_whole(tmp_path, metric):
    draw = np.random.default_rng(3)
    lists = []
    for number in range(200):
        size = number % 4
        one = [np.round(draw.normal(size=DIM), 2).tolist() for _ in range(size)]
        lists.append(None if number % 17 == 1 else one)
    type_ = pa.list_(pa.list_(pa.float32(), DIM))
    data = pa.table({"id": range(200), "v": pa.array(lists, type_)})
    table = lt.create_table(tmp_path / "t", data.slice(0, 90))
    table.append(data.slice(90))
    query = [np.round(draw.normal(size=DIM), 2).tolist() for _ in range(3)]
    (found,) = search(table, query, metric=metric)
    far = [
        (sum(min(exact(x, q, metric) for x in one) for q in query), number)
        for number, one in enumerate(lists)
        if one
    ]
    expected = sorted(far)[:10]
    assert [id_ for id_, _ in found] == [number for _, number in expected]
    assert [d for _, d in found] == pytest.approx([d for d, _ in expected], rel=1e-4, abs=1e-4)


def test_nested_columns_and_bytes(tmp_path):
    bits = pa.array([[0, 255], [1, 255], [7, 0]], pa.list_(pa.uint8(), 2))
    nested = pa.StructArray.from_arrays([bits], ["b"])
    table = lt.create_table(tmp_path / "t", pa.table({"id": [0, 1, 2], "s": nested}))
    assert search(table, [0, 255], "s.b") == [[(0, 0.0), (1, 1.0), (2, 11.0)]]
    with pytest.raises(InputError, match="does not compare"):
        search(table, [0, 255], "s.b", metric="l2")


def test_columns_that_cannot_be_searched(tmp_path):
    pair = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    table = lt.create_table(tmp_path / "t", pa.table({"id": [1], "a": pair, "b": pair}))
    with pytest.raises(SchemaError, match="2 columns of vectors"):
        search(table, [1.0, 2.0])
    with pytest.raises(SchemaError, match="does not hold vectors"):
        search(table, [1.0, 2.0], "id")
    with pytest.raises(InputError, match="limit"):
        search(table, [1.0, 2.0], "a", limit=0)
    with pytest.raises(InputError, match="distance_range"):
        search(table, [1.0, 2.0], "a", distance_range=5)
    with pytest.raises(InputError, match="nprobes"):
        search(table, [1.0, 2.0], "a", nprobes=0)
