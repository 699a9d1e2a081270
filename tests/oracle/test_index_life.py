"""Indices shared with pylance: each tool uses, merges and moves what the other wrote."""

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import lancetable as lt
from tests.unit.index.test_geometry import point

pytestmark = pytest.mark.oracle

CASES = [
    ("btree", "x", ["x = 5", "x is null", "x > 90", "x between 3 and 7", "x in (1, 2, 99)"]),
    ("btree", "f", ["f = 0.0", "f > 40", "f < 0", "f is null"]),
    ("btree", "s", ["s = 'v5'", "s like 'v1%'", "s is null"]),
    ("bitmap", "s", ["s = 'v5'", "s is null", "s > 'v7'"]),
    ("zonemap", "x", ["x = 5", "x is null", "x > 99"]),
    ("bloomfilter", "x", ["x = 5", "x in (1, 2, 99)", "x is null"]),
    ("bloomfilter", "s", ["s = 'v5'", "s in ('v1', 'none')"]),
    ("ngram", "w", ["contains(w, 'grün')", "contains(w, 'stra')", "contains(w, '15 ')"]),
    (lt.RTree(page_size=64), "g", ["st_intersects(g, st_geomfromtext('POINT (3 4)'))"]),
    (lt.JsonPath("a", lt.BTree()), "j", ["json_get_int(j, 'a') = 7", "json_get_int(j, 'a') > 95"]),
    (lt.JsonPath("b", lt.Bitmap()), "j", ["json_get_string(j, 'b') = 'v3'"]),
    ("label_list", "l", ["array_has(l, 'a3')", "array_has_any(l, ['a1', 'a2'])"]),
]

WORDS = ("Straße", "street", "STRASSE", "Ünïcode", "日本語abc", "", "12")


def rows(first: int, stop: int) -> pa.Table:
    numbers = range(first, stop)
    floats = [
        None if i % 13 == 0 else float("nan") if i % 11 == 0 else i * 7 % 50 - 2.0 for i in numbers
    ]
    lists = [
        None if i % 9 == 0 else [f"a{j}" if j % 5 else None for j in range(i % 7)] for i in numbers
    ]
    return pa.table(
        {
            "x": pa.array([None if i % 17 == 0 else i * 37 % 101 for i in numbers], pa.int64()),
            "f": pa.array(floats, pa.float64()),
            "s": pa.array([None if i % 19 == 0 else f"v{i % 23}" for i in numbers]),
            "l": pa.array(lists, pa.list_(pa.string())),
            "w": pa.array([None if i % 29 == 0 else WORDS[i % 7] + f" {i} grün" for i in numbers]),
            "g": pa.array([None if i % 31 == 0 else point(i % 9, i % 11) for i in numbers]),
            "j": pa.array(
                [None if i % 37 == 0 else f'{{"a":{i % 97},"b":"v{i % 5}"}}' for i in numbers],
                pa.json_(),
            ),
        }
    )


def check(path: str, predicates: list[str]) -> None:
    """Compare the rows that both tools find, with and without the index."""
    theirs, ours = lance.dataset(path), lt.open_table(path)
    for text in predicates:
        assert "ScalarIndexQuery" in theirs.scanner(filter=text).explain_plan()
        expected = theirs.to_table(filter=text, use_scalar_index=False)
        assert theirs.to_table(filter=text).num_rows == expected.num_rows, text
        found = ours.scan(where=text).to_arrow()
        assert str(found.to_pylist()) == str(expected.to_pylist()), text


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize(("kind", "column", "predicates"), CASES)
def test_both_tools_share_an_index(tmp_path, kind, column, predicates, is_stable):
    path = str(tmp_path / "t")
    lance.write_dataset(
        rows(0, 4500), path, max_rows_per_file=1500, enable_stable_row_ids=is_stable
    )
    table = lt.open_table(path)
    # Little memory, so that sorted runs are spilled and merged.
    table.indices.create(column, kind, memory_bytes="1MB")
    check(path, predicates)
    name = f"{column}_idx"
    table.append(rows(4500, 5000))
    table.delete("x = 9")
    assert table.indices[name].rows_uncovered
    table.indices.optimize(mode="append")
    assert len(table.indices[name].segments) == 2
    assert not table.indices[name].rows_uncovered
    check(path, predicates)
    table.indices.optimize(mode="merge")
    assert len(table.indices[name].segments) == 1
    check(path, predicates)
    theirs = lance.write_dataset(rows(5000, 5500), path, mode="append")
    their_optimize(theirs)
    check(path, predicates)
    table = lt.open_table(path)
    table.indices.optimize(mode="append")  # where pylance refused
    table.compact(indices="remap")
    assert not table.indices[name].rows_uncovered
    check(path, predicates)
    lance.write_dataset(rows(5500, 6000), path, mode="append").optimize.compact_files()
    check(path, predicates)
    table = lt.open_table(path)
    table.indices.optimize()
    check(path, predicates)
    table.indices.optimize(mode="rebuild")
    check(path, predicates)
    table.indices.drop(name)
    assert name not in lt.open_table(path).indices


def their_optimize(dataset: lance.LanceDataset) -> None:
    """Optimize the indices with pylance, which does not do so for every index on JSON."""
    try:
        dataset.optimize.optimize_indices()
    except OSError as error:
        assert "JSON" in str(error), error


def their_kind(kind: object) -> object:
    match kind:
        case lt.JsonPath(path, target):
            return IndexConfig("json", {"target_index_type": target.kind, "path": path})
        case lt.RTree(size):
            return IndexConfig("rtree", {"page_size": size})
        case _:
            return str(kind).upper()


@pytest.mark.parametrize(("kind", "column", "predicates"), CASES)
def test_their_index_is_merged(tmp_path, kind, column, predicates):
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(rows(0, 3000), path, max_rows_per_file=1000)
    theirs.create_scalar_index(column, their_kind(kind))
    table = lt.open_table(path)
    table.append(rows(3000, 3500))
    dry = table.indices.optimize(mode="merge", dry_run=True)
    assert dry.is_dry_run
    assert dry.steps[0].is_needed
    table.indices.optimize(mode="merge")
    assert len(table.indices[f"{column}_idx"].segments) == 1
    check(path, predicates)


def test_bad_input_changes_nothing(tmp_path):
    path = str(tmp_path / "t")
    table = lt.create_table(path, rows(0, 100))
    with pytest.raises(lt.SchemaError):
        table.indices.create("nothing", "btree")
    with pytest.raises(lt.SchemaError, match="cannot have an index of kind 'btree'"):
        table.indices.create("l", lt.BTree())
    with pytest.raises(lt.InputError, match="is not a kind of index"):
        table.indices.create("x", "tree")
    with pytest.raises(lt.InputError, match="fragments names 7"):
        table.indices.create("x", "btree", fragments=[7])
    table.indices.create("x", lt.BTree())
    with pytest.raises(lt.ExistsError, match="x_idx"):
        table.indices.create("x", lt.Bitmap())
    with pytest.raises(lt.IndexNotFoundError):
        table.indices.drop("other")
    with pytest.raises(lt.IndexNotFoundError):
        table.indices.optimize(["other"])
    assert table.version == 2
    table.indices.create("x", lt.Bitmap(), replace=True)
    assert table.indices["x_idx"].kind == "bitmap"


@pytest.mark.parametrize("gone", ["dropped", "replaced"])
def test_their_index_on_a_column_that_is_gone_is_left_alone(tmp_path, gone):
    path = str(tmp_path / "t")
    table = lt.create_table(path, rows(0, 300), max_rows_per_file=100)
    theirs = lance.dataset(path)
    if gone == "dropped":
        table.columns.drop(["x"])
    else:
        table.columns.cast("x", pa.int64())
    theirs.create_scalar_index("x", "BTREE")
    table = lt.open_table(path)
    table.append(table.scan(limit=10).to_arrow())
    assert "dropped or replaced" in str(table.indices["x_idx"].unusable)
    for mode in ("auto", "rebuild"):
        (step,) = table.indices.optimize(mode=mode).steps
        assert "dropped or replaced" in step.reason
    assert table.compact(indices="remap").fragments_removed > 1
    assert table.count() == lance.dataset(path).count_rows() == 310
    table.indices.drop("x_idx")
    assert table.maintenance.check(all_versions=False).is_ok
