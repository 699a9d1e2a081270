"""Former values of rows in a segment never count, and no index keeps them beside later ones."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.options import CommitOptions
from lancetable.index.specs import BTree, parse_spec
from lancetable.operations.index.create import commit_segments
from lancetable.operations.index.segments import SegmentTask, build_segment

KINDS = {"a": "btree", "b": "bitmap", "l": "label_list", "w": "ngram", "z": "zonemap"}
PREDICATES = [
    *("a = 3", "a = 1000", "a < 5", "b = 'v3'", "b is null", "b in ('v1', 'v9')"),
    *("array_has(l, 'x3')", "array_has(l, 'new')", "contains(w, 'word 3')", "z = 3", "z > 990"),
]


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    n = 120
    data = {
        "id": range(n),
        "a": range(n),
        "b": [None if i % 13 == 0 else f"v{i % 7}" for i in range(n)],
        "l": [[f"x{i % 5}"] for i in range(n)],
        "w": [f"word {i}" for i in range(n)],
        "z": range(n),
    }
    made = lt.create_table(
        tmp_path / "t", pa.table(data), max_rows_per_file=40, stable_row_ids=request.param
    )
    for column, kind in KINDS.items():
        made.indices.create(column, kind)
    return made


def check(table):
    for where in PREDICATES:
        plain = table.scan(["id"], where=where, use_indices=False).to_arrow()
        found = table.scan(["id"], where=where).to_arrow()
        assert found.equals(plain), where
        assert table.count(where) == len(plain), where


def delta(table, fragment):
    """Give each index a segment for one fragment, as other writers do."""
    snapshot = table._snapshot
    made = []
    for column, kind in KINDS.items():
        spec = parse_spec(kind)
        ids = frozenset({fragment})
        task = SegmentTask(snapshot, f"{column}_idx", column, spec, ids, 1_000_000)
        made.append(build_segment(task))
    commit_segments(snapshot, made, (), CommitOptions())
    table.refresh()


CHANGED = {"a": "1000", "b": "'v9'", "l": "['new']", "w": "'other'", "z": "1000"}


@pytest.mark.parametrize("mode", ["rows", "columns"])
@pytest.mark.parametrize("later", [None, "optimize", "merge", "compact"])
def test_rows_count_where_they_are_covered(table, mode, later):
    table.update(CHANGED, "id < 10", mode=mode)
    check(table)
    delta(table, max(one.id for one in table.fragments) if mode == "rows" else 0)
    check(table)
    match later:
        case "optimize":
            table.indices.optimize()
        case "merge":
            table.indices.optimize(mode="merge")
        case "compact":
            table.compact(indices="remap", deleted_share=0)
    check(table)


@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_new_segments_leave_no_former_values_behind(table, mode):
    is_stable = bool(table._snapshot.manifest.next_row_id)
    table.update(CHANGED, "id < 10", mode=mode)
    table.indices.optimize(mode="append")
    counts = {name: len(info.segments) for name, info in table.indices.items()}
    has_stale = mode == "columns" or is_stable
    assert counts["b_idx"] == counts["l_idx"] == (1 if has_stale else 2)
    assert counts["a_idx"] == (1 if mode == "columns" else 2)
    assert counts["w_idx"] == counts["z_idx"] == 2
    check(table)
    table.append(table.head(5))
    assert "segment of their own" in table.indices.optimize(mode="append", dry_run=True).explain()
    table.indices.optimize(mode="append")
    assert {len(one.segments) for one in table.indices.values()} <= {2, 3}
    check(table)


def test_an_index_on_another_column_follows_the_rows(table):
    is_stable = bool(table._snapshot.manifest.next_row_id)
    table.update({"a": "1000"}, "id < 10")
    uncovered = {name: info.rows_uncovered for name, info in table.indices.items()}
    expected = 0 if is_stable else 10
    assert (uncovered["b_idx"], uncovered["l_idx"], uncovered["w_idx"]) == (expected,) * 3
    assert (uncovered["a_idx"], uncovered["z_idx"]) == (10, 10)
    check(table)
    table.update({"b": "'v9'"}, "id < 20")
    assert table.indices["b_idx"].rows_uncovered == 20
    check(table)
    table.indices.optimize()
    source = pa.table({"id": [1, 2, 50], "w": ["word 3"] * 3})
    table.merge(source, on="id").when_matched_update({"w": "source.w"}).execute()
    assert table.indices["b_idx"].rows_uncovered == (0 if is_stable else 3)
    assert table.indices["w_idx"].rows_uncovered == 3
    check(table)


def test_a_task_can_be_sent_elsewhere(table):
    import pickle

    snapshot = table._snapshot
    task = SegmentTask(snapshot, "n", "a", BTree(), frozenset({0}), 1, progress=lambda now: None)
    sent = pickle.loads(pickle.dumps(task))
    assert (sent.name, sent.fragment_ids, sent.progress) == ("n", frozenset({0}), None)
