"""Compaction: which fragments, the same rows, and what others do meanwhile."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.operations.compact.options import CompactOptions
from lancetable.operations.compact.run import plan_for, run_plan
from lancetable.operations.results import RunOptions
from lancetable.operations.run.runner import Threads

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows_of(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "s": [f"s{number}" for number in numbers]}
    )


def make(path: Path, fragments: int = 5, rows: int = 20, *, stable: bool = False) -> lt.Table:
    table = lt.create_table(path, rows_of(0, rows), stable_row_ids=stable)
    for number in range(1, fragments):
        table.append(rows_of(number * rows, rows))
    return table


def ids(table: lt.Table) -> list[int]:
    found: list[int] = table.scan(["id"]).to_arrow()["id"].to_pylist()
    return found


def fragments(table: lt.Table) -> list[tuple[int, int]]:
    return [(one.id, one.physical_rows) for one in table._snapshot.manifest.fragments]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("copy_pages", [False, True])
def test_rows_order_ids_and_versions_stay(tmp_path: Path, stable: bool, copy_pages: bool) -> None:
    table = make(tmp_path / "t", stable=stable)
    table.delete("id % 5 = 1")
    table.update({"s": "concat(s, '!')"}, "id in (7, 42, 99)")
    columns = ["id", "s", *(LINEAGE if stable else [])]
    before = table.scan(columns).to_arrow()
    done = table.compact(copy_pages=copy_pages)
    assert table.scan(columns).to_arrow().equals(before)
    assert (done.fragments_removed, done.fragments_added) == (6, 1)
    assert (done.rows, done.deleted_rows, done.attempts) == (80, 23, 1)
    assert done.bytes_after == table._snapshot.manifest.fragments[0].files[0].size
    assert fragments(table) == [(6, 80)]


def test_nothing_worth_it_makes_no_version(tmp_path: Path) -> None:
    table = make(tmp_path / "t", fragments=1)
    table.delete("id = 3")
    done = table.compact()
    assert done == lt.CompactResult(2, is_new_version=False)
    assert table.version == 2


def test_groups_are_cut_where_they_are_large_enough(tmp_path: Path) -> None:
    table = make(tmp_path / "t", fragments=9, rows=30)
    options = CompactOptions(target_rows=100)
    planned = plan_for(table._snapshot, options=options)
    assert [len(one.fragments) for one in planned.groups] == [4, 5]
    assert [one.new_fragments for one in planned.groups] == [1, 2]
    table.compact(target_rows=100)
    assert fragments(table) == [(9, 120), (10, 75), (11, 75)]
    # What is near the target is left alone: joining and cutting it again would gain nothing.
    assert table.compact(target_rows=100).fragments_removed == 0


def test_large_fragments_are_left_alone_unless_much_is_deleted(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", rows_of(0, 100))
    table.append(rows_of(100, 10))
    table.append(rows_of(110, 100))
    table.append(rows_of(210, 100))
    table.delete("id in (1, 2, 3)")
    table.delete("id between 110 and 130")
    planned = plan_for(table._snapshot, options=CompactOptions(target_rows=50))
    assert [[one.id for one in group.fragments] for group in planned.groups] == [[1, 2]]
    everything = plan_for(table._snapshot, options=CompactOptions(target_rows=50, deleted_share=0))
    assert [[one.id for one in group.fragments] for group in everything.groups] == [[0], [1, 2]]


def test_bytes_limit_what_is_joined(tmp_path: Path) -> None:
    table = make(tmp_path / "t", fragments=4)
    size = table._snapshot.manifest.fragments[0].files[0].size or 0
    assert not plan_for(table._snapshot, options=CompactOptions(target_bytes=size)).groups
    planned = plan_for(table._snapshot, options=CompactOptions(target_bytes=2 * size))
    assert [len(one.fragments) for one in planned.groups] == [2, 2]


def sizes(table: lt.Table) -> list[int]:
    return [one.files[0].size or 0 for one in table.fragments]


def noise(first: int, rows: int) -> pa.Table:
    chance = random.Random(first)
    return pa.table(
        {"id": range(first, first + rows), "b": [chance.randbytes(1000) for _ in range(rows)]}
    )


@pytest.mark.parametrize("copy_pages", [False, True])
def test_bytes_of_new_files_are_limited(tmp_path: Path, copy_pages: bool) -> None:
    table = lt.create_table(tmp_path / "t", noise(0, 200))
    for number in range(1, 12):
        table.append(noise(200 * number, 200))
    most = 4 * max(sizes(table))
    done = table.compact(max_bytes_per_file=most, copy_pages=copy_pages)
    assert (done.fragments_removed, done.fragments_added) == (12, 3)
    assert all(0.9 * most < size <= most for size in sizes(table))
    assert ids(table) == list(range(2400))
    again = table.compact(max_bytes_per_file=most, copy_pages=copy_pages)
    assert not again.is_new_version


def test_a_limit_of_bytes_splits_what_is_written_anyway(tmp_path: Path) -> None:
    table = lt.create_table(tmp_path / "t", noise(0, 2000))
    (whole,) = sizes(table)
    assert not table.compact(max_bytes_per_file=whole // 4).is_new_version
    table.delete("id % 2 = 0")
    assert table.compact(max_bytes_per_file=whole // 4).fragments_added in {2, 3}
    assert max(sizes(table)) <= whole // 4 * 1.05
    expected = list(range(1, 2000, 2))
    assert ids(table) == expected
    table.compact(sort_by=["b"], max_bytes_per_file=whole // 8)
    assert max(sizes(table)) <= whole // 8 * 1.05
    assert sorted(ids(table)) == expected


def test_values_that_compress_well_fill_files_to_the_limit(tmp_path: Path) -> None:
    rows = pa.table({"id": range(50_000), "s": ["the same long text again " * 4] * 50_000})
    table = lt.create_table(tmp_path / "t", rows)
    table.append(rows)
    most = sum(sizes(table))
    assert most < rows.nbytes // 4
    assert table.compact(max_bytes_per_file=most, copy_pages=False).fragments_added == 1


def test_where_limits_the_fragments(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    before = sorted(ids(table))
    done = table.compact(where="id between 25 and 65")
    assert done.fragments_removed == 3
    assert fragments(table) == [(0, 20), (4, 20), (5, 60)]
    assert sorted(ids(table)) == before
    with pytest.raises(lt.ExpressionError):
        table.compact(where="nothing = 1")


def test_fragments_without_live_rows_vanish(tmp_path: Path) -> None:
    table = make(tmp_path / "t", fragments=2)
    fragment = table._snapshot.manifest.fragments[0]
    stale = lt.open_table(tmp_path / "t")
    table.delete("id < 20")
    assert [one.id for one in table._snapshot.manifest.fragments] == [1]
    # The handle that compacts has seen all rows of a fragment that is gone by now.
    done = stale.compact()
    assert fragment.id == 0
    assert fragments(stale) == [(2, 40)]
    assert ids(stale) == list(range(20, 40))
    assert done.rows == 40


def test_a_dry_run_tells_and_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.delete("id < 5")
    told = table.compact(dry_run=True)
    assert (told.fragments_removed, told.fragments_added, told.rows) == (5, 1, 95)
    assert told.is_dry_run
    assert table.version == 6
    text = table.compact(dry_run=True).explain()
    assert "5 of 5 fragments become 1, 95 rows" in text
    assert "fragments 0 to 4 (5): 95 rows, 5 deleted" in text
    assert (
        "nothing to compact"
        in table.compact(dry_run=True, target_rows=10, deleted_share=1).explain()
    )


def test_progress_is_told(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    seen: list[tuple[int, int | None]] = []
    table.compact(target_rows=40, progress=lambda now: seen.append((now.done, now.total)))
    assert seen == [(0, 80), (40, 80), (80, 80)]


@pytest.mark.parametrize("stable", [False, True])
def test_rows_are_sorted(tmp_path: Path, stable: bool) -> None:
    table = make(tmp_path / "t", stable=stable)
    table.update({"s": "'a'"}, "id in (50, 60)")
    columns = ["s", "id", *(LINEAGE if stable else [])]
    before = table.scan(columns).to_arrow()
    table.compact(sort_by=["s", "id"])
    assert (
        table.scan(columns)
        .to_arrow()
        .equals(before.sort_by([("s", "ascending"), ("id", "ascending")]))
    )


def test_neighbours_on_the_curve_are_near_in_both_columns(tmp_path: Path) -> None:
    side = 16
    xs, ys = np.meshgrid(np.arange(side), np.arange(side))
    table = lt.create_table(tmp_path / "t", pa.table({"x": xs.ravel(), "y": ys.ravel()}))
    table.compact(z_order_by=["x", "y"])
    found = table.scan().to_arrow()
    for first in range(0, side * side, 16):
        block = found.slice(first, 16)
        for name in ("x", "y"):
            values = block[name].to_numpy()
            assert values.max() - values.min() == 3
    assert sorted(map(str, found.to_pylist())) == sorted(
        str({"x": int(x), "y": int(y)}) for x, y in zip(xs.ravel(), ys.ravel(), strict=True)
    )


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("settings", [{}, {"sort_by": ["s"]}, {"target_rows": 40}])
def test_what_others_delete_and_update_meanwhile_stays_done(
    tmp_path: Path, stable: bool, settings: dict[str, object]
) -> None:
    table = make(tmp_path / "t", stable=stable)
    table.delete("id % 9 = 2")
    stale = lt.open_table(tmp_path / "t")
    table.delete("id % 10 = 3")
    table.update({"s": "'new'"}, "id % 10 = 4")
    table.append(rows_of(1000, 5))
    table.delete("id between 60 and 79")
    columns = ["id", "s", *(LINEAGE if stable else [])]
    expected = table.scan(columns).to_arrow().sort_by("id")
    done = stale.compact(**settings)  # type: ignore[arg-type]
    assert done.fragments_removed == 5
    assert stale.version == table.version + 1
    for opened in (stale, lt.open_table(tmp_path / "t")):
        assert opened.scan(columns).to_arrow().sort_by("id").equals(expected)
        assert opened.count() == expected.num_rows
    again = lt.open_table(tmp_path / "t").compact(deleted_share=0)
    assert again.fragments_removed > 0
    assert lt.open_table(tmp_path / "t").scan(columns).to_arrow().sort_by("id").equals(expected)


def test_files_whose_rows_are_all_gone_are_removed(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    stale = lt.open_table(tmp_path / "t")
    table.delete("id < 40")
    before = {one.name for one in (tmp_path / "t" / "data").iterdir()}
    stale.compact(target_rows=40)
    new = {one.name for one in (tmp_path / "t" / "data").iterdir()} - before
    named = {file.path for one in stale._snapshot.manifest.fragments for file in one.files}
    assert new == named - before
    assert sorted(ids(stale)) == list(range(40, 100))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update({"s": "'x'"}, "id = 3", mode="columns"),
        lambda table: table.columns.add({"n": "id + 1"}),
        lambda table: table.compact(),
    ],
    ids=["update columns", "add columns", "compact"],
)
def test_work_is_done_again_when_the_rows_were_rewritten(tmp_path: Path, change: object) -> None:
    table = make(tmp_path / "t")
    stale, again = lt.open_table(tmp_path / "t"), lt.open_table(tmp_path / "t")
    change(table)  # type: ignore[operator]
    files = sorted(one.name for one in (tmp_path / "t" / "data").iterdir())
    with pytest.raises(lt.ConflictError, match="another writer"):
        stale.compact(commit=lt.CommitOptions(attempts=1))
    assert sorted(one.name for one in (tmp_path / "t" / "data").iterdir()) == files
    again.compact()
    assert again.scan().to_arrow().equals(table.scan().to_arrow())


def test_a_plan_is_committed_from_its_own_version(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    planned = plan_for(table._snapshot)
    table.delete("id < 30")
    table.update({"s": "'late'"}, "id = 31")
    made = run_plan(planned, RunOptions(Threads(1)))
    assert made.snapshot.version == table.version + 1
    table.refresh()
    assert sorted(ids(table)) == list(range(30, 100))
    assert table.count("s = 'late'") == 1


def test_deleted_rows_of_a_landed_compaction_are_found_again(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    stale = lt.open_table(tmp_path / "t")
    table.compact()
    assert stale.delete("id % 2 = 0").rows == 50
    other = lt.open_table(tmp_path / "t", version=5)
    assert other.update({"s": "'u'"}, "id = 7").rows == 1
    assert sorted(ids(other)) == list(range(1, 100, 2))


@pytest.mark.parametrize(
    "settings",
    [
        {"target_rows": 0},
        {"target_bytes": 0},
        {"max_bytes_per_file": 0},
        {"deleted_share": 1.5},
        {"threads": 0},
        {"memory_bytes": 1},
        {"sort_by": "s"},
        {"sort_by": ["s"], "z_order_by": ["id"]},
        {"indices": "forget"},
        {"sort_by": ["s"], "indices": "reuse"},
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, settings: dict[str, object]) -> None:
    table = make(tmp_path / "t", fragments=2)
    with pytest.raises(lt.InputError):
        table.compact(**settings)  # type: ignore[arg-type]
    with pytest.raises(lt.SchemaError):
        table.compact(sort_by=["nothing"])
    assert table.version == 2


def test_wide_rows_and_blobs_within_a_small_memory(tmp_path: Path) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), blob])
    payloads = [bytes([number]) * 1_000_000 for number in range(24)]
    table = lt.create_table(
        tmp_path / "t",
        pa.table([pa.array(range(24)), pa.array(payloads, pa.large_binary())], schema=schema),
    )
    table.append(
        pa.table([pa.array([24, 25]), pa.array([b"", None], pa.large_binary())], schema=schema)
    )
    table.delete("id = 3")
    table.compact(memory_bytes=16 * 1024 * 1024, threads=1)
    found = table.scan(blobs="bytes").to_arrow().to_pylist()
    expected = {
        number: payload for number, payload in enumerate([*payloads, b"", None]) if number != 3
    }
    assert {one["id"]: one["b"] for one in found} == expected


@pytest.mark.parametrize(
    "name", ["target_rows", "target_bytes", "threads", "memory_bytes", "deleted_share"]
)
@pytest.mark.parametrize("value", ["a", None, [], True, -1, b"x"])
def test_settings_that_are_no_numbers_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    compact: Any = make(tmp_path / "t", fragments=1).compact
    with pytest.raises(lt.InputError, match=name):
        compact(**{name: value})


@pytest.mark.parametrize("value", ["a", [], True, -1, 1.5])
def test_a_limit_of_bytes_that_is_no_number_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(lt.InputError, match="max_bytes_per_file"):
        make(tmp_path / "t", fragments=1).compact(max_bytes_per_file=value)


@pytest.mark.parametrize("name", ["sort_by", "z_order_by"])
@pytest.mark.parametrize("value", [None, 5, b"id", "id", [5], [None], object()])
def test_columns_to_sort_by_are_names(tmp_path: Path, name: str, value: Any) -> None:
    compact: Any = make(tmp_path / "t", fragments=1).compact
    with pytest.raises(lt.InputError, match=name):
        compact(**{name: value})


def test_unknown_settings_are_named(tmp_path: Path) -> None:
    table = make(tmp_path / "t", fragments=1)
    compact: Any = table.compact
    with pytest.raises(lt.InputError, match="no option 'rows'; use one of target_rows"):
        compact(rows=5)
    with pytest.raises(lt.InputError, match="no option 'rows'"):
        compact(rows=5, dry_run=True)
    wrong: list[Any] = [[], {}, "zz", 5]
    for value in wrong:
        with pytest.raises(lt.InputError, match="indices"):
            table.compact(indices=value)
