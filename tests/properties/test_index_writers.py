"""Writers who began with the same version: indices and scans find the same rows afterwards."""

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.scan import narrow

Act = Callable[[lt.Table, random.Random], object]
WRITERS, STEPS = (1, 2, 2, 3), 6
KINDS = ["btree", "bitmap", "zonemap", "bloomfilter"]
PREDICATES = [
    *(f"x {op} {value}" for op in ("=", "<", "!=") for value in (0, 3, 11)),
    *("x is null", "x in (1, 2)", "not (x = 4)", "y = 'a'", "y is null", "x = 3 and y = 'b'"),
    *("x = 1 or y = 'c'", "y like 'd%'"),
]


def rows_from(first: int, count: int, draw: random.Random) -> pa.Table:
    columns = {
        "id": pa.array(range(first, first + count), pa.int64()),
        "x": pa.array([draw.choice([None, *range(12)]) for _ in range(count)], pa.int32()),
        "y": pa.array([draw.choice(["a", "b", "c", None, "dd"]) for _ in range(count)]),
    }
    return pa.table(columns)


def _upsert(table: lt.Table, draw: random.Random) -> object:
    source = rows_from(draw.choice([5, 25, 990]), 8, draw)
    merge = table.merge(source, on="id").when_matched_update_all()
    return merge.when_not_matched_insert_all().execute()


def _update(table: lt.Table, draw: random.Random, mode: str) -> object:
    value, share = draw.randrange(12), draw.choice([2, 5, 7])
    return table.update({"x": str(value)}, f"id % {share} = 0", mode=mode)


def _drop(table: lt.Table, draw: random.Random) -> object:
    names = [one.name for one in table.indices.list() if not one.is_system]
    return table.indices.drop(draw.choice(names)) if names else None


ACTS: dict[str, Act] = {
    "index x": lambda t, d: t.indices.create("x", d.choice(KINDS), replace=True),
    "index some": lambda t, d: t.indices.create(
        "x", "btree", name="some", replace=True, fragments=[one.id for one in t.fragments][::2]
    ),
    "index y": lambda t, d: t.indices.create(
        "y", d.choice(["btree", "bitmap", "ngram"]), replace=True
    ),
    "optimize": lambda t, d: t.indices.optimize(
        mode=d.choice(["auto", "append", "merge", "rebuild"])
    ),
    "drop": _drop,
    "append": lambda t, d: t.append(rows_from(d.randrange(1000, 9000), 5, d)),
    "delete": lambda t, d: t.delete(f"x = {d.randrange(12)}"),
    "delete a fragment": lambda t, d: t.delete("id >= 10 and id < 20"),
    "update rows": lambda t, d: _update(t, d, "rows"),
    "update columns": lambda t, d: _update(t, d, "columns"),
    "replace": lambda t, d: t.columns.replace({"x": f"{d.randrange(12)}"}),
    "upsert": _upsert,
    "compact": lambda t, d: t.compact(indices=d.choice(["remap", "uncover"]), deleted_share=0.0),
    "compact with a record": lambda t, d: t.compact(indices="reuse", deleted_share=0.0),
    "compact sorted": lambda t, d: t.compact(indices="remap", sort_by=["y"]),
    "cast": lambda t, d: t.columns.cast("x", d.choice([pa.int64(), pa.int32()])),
    "overwrite": lambda t, d: t.overwrite(rows_from(0, 30, d)),
    "restore": lambda t, d: t.restore(d.randrange(2, t.version + 1)),
}


def check_table(path: Path, seed: int) -> int:
    """Change a table by several writers at a time; return how many answers came from an index."""
    draw = random.Random(seed)
    table = lt.create_table(
        path, rows_from(0, 30, draw), max_rows_per_file=10, stable_row_ids=draw.random() < 0.5
    )
    table.indices.create("x", draw.choice(KINDS))
    history: list[object] = []
    used = 0
    for _ in range(STEPS):
        handles = [lt.open_table(path) for _ in range(draw.choice(WRITERS))]
        for handle in handles:
            name = draw.choice(list(ACTS))
            try:
                ACTS[name](handle, draw)
                history.append(name)
            except (lt.ConflictError, lt.InputError, lt.IndexNotFoundError) as error:
                history.append(f"{name}: {type(error).__name__}")
        used += _compare(lt.open_table(path), f"seed {seed}, after {history}")
    return used


def _compare(table: lt.Table, said: str) -> int:
    used = 0
    for where in PREDICATES:
        expected = table.scan(where=where, use_indices=False).to_arrow()
        scan = table.scan(where=where)
        assert scan.to_arrow() == expected, f"{said}: {where}"
        assert table.count(where) == len(expected), f"{said}: {where}"
        part = table.scan(where=where, limit=3, offset=1).to_arrow()
        assert part == expected.slice(1, 3), f"{said}: {where}"
        used += "index " in scan.explain()
    problems = table.maintenance.check(level="data", all_versions=False).problems
    assert not problems, f"{said}: {problems[0]}"
    return used


@pytest.fixture(params=[narrow.SCAN_FROM, 1.0], ids=["usual", "by row"])
def _scan_from(request, monkeypatch):
    """Read the rows that indices name by row, also when they are many."""
    monkeypatch.setattr(narrow, "SCAN_FROM", request.param)


@pytest.mark.slow
@pytest.mark.usefixtures("_scan_from")
def test_indices_are_right_whoever_wrote_meanwhile(tmp_path):
    first = 100 * (narrow.SCAN_FROM == 1.0)
    used = [check_table(tmp_path / str(seed), seed) for seed in range(first, first + 6)]
    assert sum(used) > len(used) * STEPS * len(PREDICATES) / 10


@pytest.mark.soak
@pytest.mark.usefixtures("_scan_from")
@pytest.mark.parametrize("group", range(10))
def test_indices_are_right_whoever_wrote_meanwhile_for_long(tmp_path, group):
    for seed in range(1000 + 50 * group, 1050 + 50 * group):
        check_table(tmp_path / str(seed), seed)
