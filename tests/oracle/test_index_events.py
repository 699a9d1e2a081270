"""After each event in the life of a table its indices are true, of every kind, and for pylance too.

One table has an index of each kind, a fragment that none covers, and deleted rows. After an event,
then after a compaction, then after an optimization, a scan with indices equals one without.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancetable as lt
from tests.unit.index.test_geometry import point

pytestmark = pytest.mark.oracle

KINDS: dict[str, Any] = {
    "a": "btree",
    "b": "bitmap",
    "l": "label_list",
    "z": lt.ZoneMap(rows_per_zone=16),
    "f": lt.BloomFilter(items=16),
    "w": "ngram",
    "g": lt.RTree(page_size=8),
    "j": lt.JsonPath("k", lt.BTree()),
}
PREDICATES = {
    "a": ["a = 7", "a > 60 and a < 70", "a is null", "a in (1, 2, 999)"],
    "b": ["b = 'v3'", "b is null"],
    "c": ["c = 'v3'", "c is null"],
    "l": ["array_has(l, 'x2')"],
    "z": ["z = 33", "z >= 100"],
    "f": ["f = 44", "f is null"],
    "w": ["contains(w, 'word 12')"],
    "g": ["st_intersects(g, st_geomfromtext('POINT (3 4)'))"],
    "j": ["json_get_int(j, 'k') = 5"],
}


def rows(first: int, stop: int) -> pa.Table:
    numbers = range(first, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "n": pa.array([0] * len(numbers), pa.int64()),
            "a": pa.array([None if i % 11 == 0 else i * 37 % 101 for i in numbers], pa.int64()),
            "b": pa.array([None if i % 13 == 0 else f"v{i % 7}" for i in numbers]),
            "l": pa.array([[f"x{i % 5}", f"x{i % 3}"] for i in numbers], pa.list_(pa.string())),
            "z": pa.array(numbers, pa.int64()),
            "f": pa.array([None if i % 17 == 0 else i for i in numbers], pa.int64()),
            "w": pa.array([f"word {i}" for i in numbers]),
            "g": pa.array([point(i % 9, i % 11) for i in numbers]),
            "j": pa.array([f'{{"k":{i % 13}}}' for i in numbers], pa.json_()),
        }
    )


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "t"
    table = lt.create_table(path, rows(0, 120), max_rows_per_file=40, stable_row_ids=request.param)
    for column, kind in KINDS.items():
        table.indices.create(column, kind)
    table.append(rows(120, 150))
    table.delete("id in (3, 44, 45, 81, 121)")
    return path


@pytest.fixture
def table(base: Path, tmp_path: Path) -> lt.Table:
    shutil.copytree(base, tmp_path / "t")
    return lt.open_table(tmp_path / "t")


def check(table: lt.Table) -> None:
    """Compare the rows that each predicate finds, with indices, without, and in pylance."""
    theirs = lance.dataset(table.uri)
    if table.branch is not None:
        theirs = theirs.checkout_version((table.branch, None))
    for column in set(table.schema.names).intersection(PREDICATES):
        for text in PREDICATES[column]:
            expected = ids(table.scan(["id"], where=text, use_indices=False).to_arrow())
            assert ids(table.scan(["id"], where=text).to_arrow()) == expected, text
            assert table.count(text) == len(expected), text
            assert ids(theirs.to_table(["id"], filter=text)) == expected, text


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


def published(table: lt.Table) -> lt.Table:
    """Do several things on a branch, and bring them to the main history as one version."""
    branch = table.branches.create("dev")
    branch.update({"a": "500"}, "id = 7")
    branch.append(rows(300, 310))
    branch.indices.optimize()
    table.branches.fast_forward("dev")
    return table


def picked(table: lt.Table) -> lt.Table:
    branch = table.branches.create("dev")
    branch.append(rows(300, 310))
    branch.delete("id = 60")
    table.append(rows(400, 405))
    table.branches.cherry_pick("dev")
    return table


def branched(table: lt.Table) -> lt.Table:
    branch = table.branches.create("dev")
    branch.append(rows(300, 310))
    branch.update({"a": "500", "b": "'v9'"}, "id = 7")
    return branch


def restored(table: lt.Table) -> lt.Table:
    version = table.version
    table.update({"a": "a + 1", "b": "'v3'"}, "id < 50", mode="columns")
    table.compact(indices="uncover")
    table.restore(version)
    return table


def cloned(table: lt.Table, *, deep: bool) -> lt.Table:
    made = table.clone(table.uri + "-clone", deep=deep)
    made.append(rows(300, 310))
    made.update({"a": "500", "b": "'v9'"}, "id = 7")
    return made


def merged(table: lt.Table) -> lt.Table:
    source = rows(100, 160).set_column(2, "a", pa.array([7] * 60, pa.int64()))
    table.merge(source, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    return table


def partly_merged(table: lt.Table) -> lt.Table:
    source = pa.table({"id": [5, 6, 50, 122], "n": [1, 1, 1, 1]})
    table.merge(source, on="id").when_matched_update({"n": "source.n"}).execute()
    return table


CHANGES: dict[str, Callable[[lt.Table], object]] = {
    "nothing": lambda t: None,
    "append": lambda t: t.append(rows(200, 220)),
    "delete": lambda t: t.delete("id < 20 or a = 7"),
    "delete a fragment": lambda t: t.delete("id < 40"),
    "delete all": lambda t: t.truncate(),
    "update": lambda t: t.update({"a": "7", "b": "'v3'", "z": "33", "f": "44"}, "id < 10"),
    "update another column": lambda t: t.update({"n": "1"}, "id < 10 or id = 60"),
    "update twice": lambda t: (
        t.update({"a": "7", "w": "'word 12'"}, "id < 10"),
        t.update({"n": "1"}, "id < 20"),
        t.indices.optimize(mode="append"),
        t.update({"a": "8", "w": "'other'"}, "id < 10"),
    ),
    "update in place": lambda t: t.update(
        {"a": "7", "b": "'v3'", "z": "33", "f": "44", "w": "'word 12'"}, "id < 10", mode="columns"
    ),
    "update another in place": lambda t: t.update({"n": "1"}, "id < 10", mode="columns"),
    "merge": merged,
    "merge some columns": partly_merged,
    "compact, reuse": lambda t: t.compact(deleted_share=0),
    "compact, remap": lambda t: t.compact(deleted_share=0, indices="remap"),
    "compact, uncover": lambda t: t.compact(deleted_share=0, indices="uncover"),
    "sort": lambda t: t.compact(sort_by=["a"], indices="remap"),
    "compact some": lambda t: t.compact(deleted_share=0, where="id < 40"),
    "drop columns": lambda t: t.columns.drop(["a", "l"]),
    "rename": lambda t: t.columns.rename("b", "c"),
    "cast": lambda t: (t.columns.cast("a", pa.int32()), t.columns.cast("f", pa.float64())),
    "add a column": lambda t: t.columns.add({"m": "a + 1"}),
    "replace values": lambda t: t.columns.replace({"a": "7", "z": "z + 1"}),
    "reorder": lambda t: t.columns.reorder(t.schema.names[::-1]),
    "overwrite": lambda t: t.overwrite(rows(500, 560)),
    "overwrite some": lambda t: t.overwrite(rows(0, 10), where="id < 10"),
    "restore": restored,
    "branch": branched,
    "fast-forward": published,
    "cherry-pick": picked,
    "shallow clone": lambda t: cloned(t, deep=False),
    "deep clone": lambda t: cloned(t, deep=True),
    "drop": lambda t: [t.indices.drop(f"{column}_idx") for column in "az"],
    "replace": lambda t: t.indices.create("a", "bitmap", name="a_idx", replace=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_indices_stay_true(table: lt.Table, change: str) -> None:
    made = CHANGES[change](table)
    table = made if isinstance(made, lt.Table) else table
    check(table)
    policy: Any = "remap" if len(change) % 2 or table._snapshot.manifest.next_row_id else "reuse"
    table.compact(indices=policy, deleted_share=0)
    check(table)
    more = rows(600, 610)
    if "c" in table.schema.names:
        more = more.rename_columns([{"b": "c"}.get(name, name) for name in more.column_names])
    if change == "cast":
        more = more.set_column(2, "a", more["a"].cast("int32")).set_column(
            6, "f", more["f"].cast("double")
        )
    table.append(more, merge_schema=True)
    table.indices.optimize(mode="append" if len(change) % 3 else "auto")
    assert not any(info.rows_uncovered for info in table.indices.list() if not info.is_system)
    check(table)
