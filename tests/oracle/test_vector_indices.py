"""pylance searches, merges and moves vector indices of this library, and the reverse."""

import lance
import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from tests.unit.scan.test_nearest import search

pytestmark = pytest.mark.oracle

ROWS, DIM = 3000, 16
FLOAT = pa.float32()
SPECS = [
    lt.IvfFlat(partitions=6),
    lt.IvfFlat("cosine", partitions=6),
    lt.IvfFlat("dot", partitions=6),
    lt.IvfPq(partitions=6, sub_vectors=4),
    lt.IvfPq("cosine", partitions=6, sub_vectors=4),
    lt.IvfPq("dot", partitions=6, sub_vectors=4),
    lt.IvfPq(partitions=6, sub_vectors=8, bits=4),
    lt.IvfSq(partitions=6),
    lt.IvfSq("cosine", partitions=6),
    lt.IvfRq(partitions=6),
    lt.IvfRq("cosine", partitions=6, bits=3),
    lt.IvfHnswFlat(partitions=2),
    lt.IvfHnswFlat("dot", partitions=2),
    lt.IvfHnswSq("cosine", partitions=2),
    lt.IvfHnswPq(partitions=2, sub_vectors=4),
]
NAMES = [f"{one.name} {one.metric} {getattr(one, 'bits', '')}" for one in SPECS]


def clustered(count, type_=FLOAT):
    """Return rows with vectors in clusters, some of them null, NaN or zeros."""
    draw = np.random.default_rng(5)
    centres = draw.normal(size=(20, DIM)) * 2
    values = (centres[draw.integers(0, 20, count)] + draw.normal(size=(count, DIM))).astype(
        type_.to_pandas_dtype()
    )
    values[7, 3] = np.nan
    values[11] = 0
    flat = pa.array(values.reshape(-1), type_)
    mask = pa.array([number % 50 == 9 for number in range(count)])
    vectors = pa.FixedSizeListArray.from_arrays(flat, DIM, mask=mask)
    return pa.table({"id": range(count), "v": vectors}), values


def asked(path, query, metric, **options):
    """Return the ids and distances that pylance finds, and whether it used an index."""
    scanner = lance.dataset(str(path)).scanner(
        columns=["id", "_distance"],
        nearest={"column": "v", "q": query, "k": 10, "metric": metric, **options},
    )
    found = scanner.to_table()
    pairs = zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)
    return list(pairs), "ANN" in scanner.explain_plan()


def check(path, queries, metric, *, is_index_used=True, ef=None):
    """Compare both libraries on an index, and both with the exact answer."""
    table = lt.open_table(path)
    for query in queries:
        wide = {"nprobes": 100, "refine_factor": 60}
        (exact,) = search(table, query, "v", metric=metric, use_indices=False)
        if ef is not None:
            wide["ef"] = ef
        (found,) = search(table, query, "v", metric=metric, **wide)
        theirs, is_used = asked(path, query, metric, **wide)
        assert is_used == is_index_used
        for other in (found, theirs):
            assert [one for one, _ in other] == [one for one, _ in exact]
            near = [distance for _, distance in exact]
            assert [far for _, far in other] == pytest.approx(near, rel=1e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("spec", SPECS, ids=NAMES)
def test_the_life_of_our_index(tmp_path, spec, is_stable):
    path, metric = tmp_path / "t", spec.metric
    ef = None if spec.graph is None else 1000
    data, values = clustered(ROWS)
    table = lt.create_table(path, data.slice(0, 2000), stable_row_ids=is_stable)
    table.indices.create("v", spec, segments=2)
    queries = values[[5, 1000, 2500]] + np.float32(0.1)
    check(path, queries, metric, ef=ef)
    for query in queries:
        # The distances of codes agree as long as all rows are covered.
        (found,) = search(table, query, "v", nprobes=2, metric=metric)
        theirs, _ = asked(path, query, metric, nprobes=2)
        assert [far for _, far in found] == pytest.approx(
            [far for _, far in theirs], rel=1e-3, abs=1e-3 if "RQ" not in spec.name else 1
        )
    table.append(data.slice(2000))
    table.delete("id % 7 = 3")
    check(path, queries, metric, ef=ef)
    table.indices.optimize(mode="append")
    check(path, queries, metric, ef=ef)
    table.indices.optimize(mode="merge")
    table.compact()
    check(path, queries, metric, ef=ef)
    table.indices.optimize(mode="rebuild")
    check(path, queries, metric)
    theirs = lance.dataset(str(path))
    theirs.insert(data.slice(0, 500))
    theirs.optimize.optimize_indices(num_indices_to_merge=9)
    theirs.optimize.compact_files(target_rows_per_fragment=100_000)
    check(path, queries, metric, ef=ef)


@pytest.mark.parametrize("mode", ["uncover", "remap", "reuse"])
@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ"])
def test_compaction_moves_rows_of_their_index(tmp_path, kind, mode):
    path = tmp_path / "t"
    data, values = clustered(ROWS)
    theirs = lance.write_dataset(data, str(path), max_rows_per_file=700)
    more = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
    theirs.create_index("v", kind, num_partitions=4, **more)
    table = lt.open_table(path)
    table.delete("id % 5 = 2")
    table.compact(indices=mode)
    if kind == "IVF_HNSW_SQ" and mode == "reuse":
        # pylance cannot search a graph of which rows are gone.
        (exact,) = search(table, values[5], "v", use_indices=False)
        assert search(table, values[5], "v", nprobes=9, refine_factor=60) == [exact]
        return
    check(path, values[[5, 1000]], "l2", is_index_used=mode != "uncover")


KINDS = [
    ("IVF_FLAT", {}),
    ("IVF_PQ", {"num_sub_vectors": 4}),
    ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 4}),
    ("IVF_SQ", {}),
    *(("IVF_RQ", {"num_bits": bits}) for bits in range(1, 10)),
    ("IVF_HNSW_FLAT", {}),
    ("IVF_HNSW_SQ", {}),
    ("IVF_HNSW_PQ", {"num_sub_vectors": 4}),
]


CASES = [
    pytest.param(kind, options, metric, id=f"{kind} {options} {metric}")
    for kind, options in KINDS
    for metric in ("l2", "cosine", "dot")
    if metric == "l2" or kind != "IVF_RQ" or options["num_bits"] == 5
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "options", "metric"), CASES)
def test_hits_in_their_index_are_theirs(tmp_path, kind, options, metric):
    path = tmp_path / "t"
    data, values = clustered(ROWS)
    theirs = lance.write_dataset(data, str(path), max_rows_per_file=1200)
    theirs.create_index("v", kind, metric=metric, num_partitions=3, **options)
    table, same = lt.open_table(path), 0
    # Signs and short codes are summed with tables of bytes there.
    is_rough = "RQ" in kind or options.get("num_bits") == 4
    queries = values[20:60] + np.float32(0.1)
    for query in queries:
        (found,) = search(table, query, "v", nprobes=2, ef=50 if "HNSW" in kind else None)
        more = {"ef": 50} if "HNSW" in kind else {}
        hits, _ = asked(path, query, metric, nprobes=2, **more)
        same += len({one for one, _ in found} & {one for one, _ in hits})
        if metric != "dot" or "SQ" not in kind:
            near = max(abs(far) for _, far in hits) * (0.2 if is_rough else 1e-3)
            assert [far for _, far in found[:5]] == pytest.approx(
                [far for _, far in hits[:5]], abs=near
            )
    # Scalar codes have another dot product there.
    least = 0.7 if metric == "dot" and "SQ" in kind else 0.9 if is_rough else 0.98
    assert same >= least * 10 * len(queries)
    check(path, queries[:3], metric)


@pytest.mark.parametrize("type_", [pa.float16(), pa.float64()], ids=str)
def test_other_floats(tmp_path, type_):
    data, values = clustered(ROWS, type_)
    for number, spec in enumerate((lt.IvfFlat(partitions=4), lt.IvfPq(sub_vectors=4))):
        path = tmp_path / str(number)
        table = lt.create_table(path, data)
        table.indices.create("v", spec)
        for query in values[[3, 30]]:
            (exact,) = search(table, query, "v", use_indices=False)
            (found,) = search(table, query, "v", nprobes=100, refine_factor=60)
            theirs, is_used = asked(path, query, "l2", nprobes=100, refine_factor=60)
            assert is_used
            near = [far for _, far in exact]
            for other in (found, theirs):
                assert [far for _, far in other] == pytest.approx(near, rel=2e-2, abs=2e-2)


def test_bits(tmp_path):
    draw = np.random.default_rng(2)
    values = draw.integers(0, 256, (1000, 8)).astype(np.uint8)
    vectors = pa.FixedSizeListArray.from_arrays(values.reshape(-1), 8)
    table = lt.create_table(tmp_path / "t", pa.table({"id": range(1000), "v": vectors}))
    table.indices.create("v", lt.IvfFlat("hamming", partitions=4))
    for query in values[:5]:
        (exact,) = search(table, query, "v", use_indices=False)
        (found,) = search(table, query, "v", nprobes=4)
        theirs, is_used = asked(tmp_path / "t", query, "hamming", nprobes=4)
        assert is_used
        assert found == exact
        assert [far for _, far in theirs] == [far for _, far in exact]
