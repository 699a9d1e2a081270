"""Tables that one library compacts and the other goes on with; indices that stay true."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import lancetable as lt
from lancetable.commit.reuse import load_reuse
from lancetable.file.write.copy import holds_lists_in_structs
from lancetable.format.manifest.reuse import codec as reuse_codec
from lancetable.fragment.write import copy
from tests.conftest import GOLDEN
from tests.oracle.refusals import is_refusal
from tests.same import assert_same_table
from tests.strategies import ABILITIES, tables

pytestmark = pytest.mark.oracle

EXAMPLES = 60
SOAK = int(os.environ.get("LANCETABLE_EXAMPLES", "5000")) // 5
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows_of(first: int, stop: int) -> pa.Table:
    numbers = np.arange(first, stop)
    return pa.table(
        {
            "id": numbers,
            "v": numbers % 350,
            "s": [f"s{number % 350}" for number in numbers],
            "l": [[int(number) % 7, 3] for number in numbers],
        }
    )


def same(path: Path) -> None:
    """Compare what both libraries read."""
    dataset = lance.dataset(str(path))
    dataset.validate()
    table = lt.open_table(path)
    expected = dataset.to_table(with_row_id=True, with_row_address=True)
    assert_same_table(table.scan(with_row_id=True, with_row_address=True).to_arrow(), expected)


def answers(path: Path) -> None:
    """Check that pylance's filters, indexed or not, find what a scan of all rows finds."""
    same(path)
    dataset = lance.dataset(str(path))
    rows = dataset.to_table().to_pylist()
    for value in (0, 7, 13, 55, 120, 199, 250, 333):
        expected = sorted(row["id"] for row in rows if row["v"] == value)
        for where in (f"v = {value}", f"s = 's{value}'"):
            found = dataset.to_table(columns=["id"], filter=where)["id"].to_pylist()
            assert sorted(found) == expected, where
    found = dataset.to_table(columns=["id"], filter="array_has(l, 5)")["id"].to_pylist()
    assert sorted(found) == sorted(row["id"] for row in rows if 5 in row["l"])
    found = dataset.to_table(columns=["id"], filter="v between 40 and 60")["id"].to_pylist()
    assert sorted(found) == sorted(row["id"] for row in rows if 40 <= row["v"] <= 60)


def covered(path: Path, name: str) -> set[int]:
    """Return the fragments that pylance takes an index to describe."""
    dataset = lance.dataset(str(path))
    found = next(one for one in dataset.describe_indices() if one.name == name)
    return {id_ for segment in found.segments for id_ in segment.fragment_ids}


def indexed(path: Path, *, kinds: bool = True, stable: bool = False) -> Any:
    """Create a table of eight fragments with deleted rows and indices."""
    dataset = lance.write_dataset(
        rows_of(0, 400), str(path), max_rows_per_file=50, enable_stable_row_ids=stable
    )
    if kinds:
        dataset.create_scalar_index("v", "BTREE")
        dataset.create_scalar_index("s", "BITMAP")
        dataset.create_scalar_index("l", "LABEL_LIST")
    dataset.delete("id % 11 = 3")
    return dataset


@contextmanager
def copying_always() -> Iterator[None]:
    """Copy pages however small they are."""
    before = copy.LEAST_PAGE_ROWS
    copy.LEAST_PAGE_ROWS = 0
    try:
        yield
    finally:
        copy.LEAST_PAGE_ROWS = before


def check_copy(table: pa.Table, version: str, pieces: int, stable: bool) -> None:
    """Compact a table of pylance's both ways: the rows are the same for both libraries."""
    # pylance does not find columns of some names by them.
    table = table.rename_columns([f"c{number}" for number in range(table.num_columns)])
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t"
        each = max(table.num_rows // pieces, 1)
        try:
            lance.write_dataset(
                table, uri, max_rows_per_file=each, data_storage_version=version,
                enable_stable_row_ids=stable,
            )  # fmt: skip
        except BaseException as cause:
            if is_refusal(cause):
                reject()
            raise
        before = lt.open_table(uri).scan(with_row_id=stable).to_arrow()
        shutil.copytree(uri, f"{uri}-decoded")
        copied, decoded = lt.open_table(uri), lt.open_table(f"{uri}-decoded")
        with copying_always():
            done = copied.compact(deleted_share=0.0)
        decoded.compact(deleted_share=0.0, copy_pages=False)
        # Structs of lists are written anew when only some pages say that they may be null.
        if not any(map(holds_lists_in_structs, copied._snapshot.manifest.schema.fields)):
            assert done.fragments_copied == (done.fragments_added if version != "2.0" else 0)
        for one in (copied, decoded):
            assert_same_table(one.scan(with_row_id=stable).to_arrow(), before)
        theirs = lance.dataset(uri)
        theirs.validate()
        assert_same_table(theirs.to_table(with_row_id=stable), before)
        if table.num_rows:
            places = sorted({0, table.num_rows // 2, table.num_rows - 1})
            assert_same_table(copied.take(places), before.select(table.column_names).take(places))


copies = st.sampled_from(["2.0", "2.1", "2.2"]).flatmap(
    lambda version: st.tuples(
        tables(ABILITIES[version], most_rows=600),
        st.just(version),
        st.integers(2, 5),
        st.booleans(),
    )
)


@settings(max_examples=EXAMPLES)
@given(copies)
def test_copied_pages_are_the_same_rows(case: tuple[pa.Table, str, int, bool]) -> None:
    check_copy(*case)


@pytest.mark.soak
@settings(max_examples=SOAK, derandomize=False)
@given(copies)
def test_copied_pages_are_the_same_rows_at_length(case: tuple[pa.Table, str, int, bool]) -> None:
    check_copy(*case)


def test_structs_of_lists_that_are_null_in_some_pages_are_written_anew(tmp_path: Path) -> None:
    kind = pa.struct(
        [pa.field("l", pa.list_(pa.int8())), pa.field("s", pa.struct([("a", "int8")]))]
    )
    full, null = {"l": [1], "s": {"a": 1}}, {"l": [2, 3], "s": None}
    path = tmp_path / "t"
    for rows in ([full, full], [full, None], [null, full]):
        lance.write_dataset(pa.table({"x": pa.array(rows, kind)}), path, mode="append")
    before = lance.dataset(path).to_table()
    table = lt.open_table(path)
    with copying_always():
        done = table.compact()
    assert (done.fragments_added, done.fragments_copied) == (1, 0)
    assert_same_table(lance.dataset(path).to_table(), before)
    assert_same_table(table.scan().to_arrow(), before)


@pytest.mark.parametrize("stable", [False, True])
def test_pylance_goes_on_where_we_compacted(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    indexed(path, kinds=False, stable=stable)
    table = lt.open_table(path)
    table.update({"s": "'changed'"}, "id in (5, 77)")
    columns = ["id", "s", *(LINEAGE if stable else [])]
    before = table.scan(columns).to_arrow().sort_by("id")
    table.compact(target_rows=120)
    same(path)
    if stable:
        theirs = lance.dataset(str(path)).to_table(columns=columns).sort_by("id")
        assert_same_table(theirs, before)
    dataset = lance.dataset(str(path))
    dataset.delete("id < 20")
    dataset.update({"v": "v + 1"}, where="id = 33")
    lance.write_dataset(rows_of(1000, 1010), dataset, mode="append")
    same(path)
    lance.dataset(str(path)).optimize.compact_files()
    same(path)
    table.refresh()
    assert table.scan(columns).to_arrow().num_rows == before.num_rows - 18 + 10
    table.compact(sort_by=["s"])
    same(path)


@pytest.mark.parametrize("stable", [False, True])
def test_pylance_reads_files_of_limited_bytes(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    for number in range(6):
        rows = rows_of(500 * number, 500 * number + 500)
        lance.write_dataset(rows, str(path), mode="append", enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("id % 5 = 1")
    table = lt.open_table(path)
    most = 3 * max(one.files[0].size or 0 for one in table.fragments)
    assert table.compact(max_bytes_per_file=most).fragments_added == 2
    assert max(one.files[0].size or 0 for one in table.fragments) <= most
    same(path)


@pytest.mark.parametrize("stable", [False, True])
def test_we_go_on_where_pylance_compacted(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    indexed(path, stable=stable).optimize.compact_files(target_rows_per_fragment=120)
    table = lt.open_table(path)
    table.delete("id % 10 = 4")
    table.append(rows_of(1000, 1010))
    table.update({"v": "v + 1"}, "id = 33")
    answers(path)
    table.compact()
    answers(path)


@pytest.mark.parametrize("is_external", [False, True])
def test_moved_rows_are_recorded_for_the_indices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_external: bool
) -> None:
    if is_external:
        monkeypatch.setattr(reuse_codec.encode_reuse, "__defaults__", (10,))
    path = tmp_path / "t"
    indexed(path)
    stale, table = lt.open_table(path), lt.open_table(path)
    table.delete("id in (7, 55, 357)")
    stale.compact(target_rows=120, indices="reuse")
    answers(path)
    new = {one.id for one in stale._snapshot.manifest.fragments}
    assert covered(path, "v_idx") == covered(path, "s_idx") == new
    # pylance writes the translated fragments into the segments, their files keep old addresses.
    lance.write_dataset(rows_of(1000, 1040), str(path), mode="append")
    table.refresh().append(rows_of(2000, 2040))
    answers(path)
    table.compact(deleted_share=0.0)
    answers(path)
    reuse = load_reuse(table._snapshot, table._snapshot.indices())
    assert reuse is not None
    assert len(reuse.versions) == 2
    details = [f"{one.name}" for one in (path / "_indices").rglob("details.binpb")]
    assert bool(details) == is_external
    # A new deferred compaction of pylance goes behind ours.
    lance.dataset(str(path)).delete("id % 13 = 5")
    lance.dataset(str(path)).optimize.compact_files(
        defer_index_remap=True, materialize_deletions_threshold=0.0
    )
    answers(path)
    table.refresh()
    table.update({"v": "v + 1"}, "id between 200 and 210", mode="columns")
    answers(path)
    lance.dataset(str(path)).optimize.optimize_indices()
    answers(path)
    lance.dataset(str(path)).optimize.compact_files()
    answers(path)


def test_a_record_is_dropped_when_all_indices_are_newer(tmp_path: Path) -> None:
    path = tmp_path / "t"
    indexed(path)
    table = lt.open_table(path)
    table.compact(target_rows=120)
    dataset = lance.dataset(str(path))
    dataset.create_scalar_index("v", "BTREE", replace=True)
    dataset.create_scalar_index("s", "BITMAP", replace=True)
    dataset.create_scalar_index("l", "LABEL_LIST", replace=True)
    table.refresh().compact()
    reuse = load_reuse(table._snapshot, table._snapshot.indices())
    assert reuse is not None
    assert len(reuse.versions) == 1
    assert {one.id for one in table._snapshot.manifest.fragments} == reuse.new_ids()
    answers(path)


def test_segments_left_uncovered_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "t"
    indexed(path)
    lt.open_table(path).compact(indices="uncover")
    answers(path)
    lance.dataset(str(path)).optimize.optimize_indices()
    answers(path)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("settings", [{}, {"sort_by": ["s"]}, {"target_rows": 120}])
def test_known_kinds_are_written_anew(
    tmp_path: Path, stable: bool, settings: dict[str, Any]
) -> None:
    path = tmp_path / "t"
    indexed(path, stable=stable)
    stale, table = lt.open_table(path), lt.open_table(path)
    table.delete("id in (7, 55, 357)")
    done = stale.compact(indices="remap", **settings)
    # With stable row ids all but the btree hold those, and need nothing.
    assert done.indices_remapped == (1 if stable else 3)
    answers(path)
    new = {one.id for one in stale._snapshot.manifest.fragments}
    assert covered(path, "v_idx") == covered(path, "s_idx") == new
    lance.write_dataset(rows_of(1000, 1040), str(path), mode="append")
    lance.dataset(str(path)).optimize.optimize_indices()
    answers(path)
    lance.dataset(str(path)).optimize.compact_files()
    answers(path)


def test_segments_with_a_record_are_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "t"
    indexed(path)
    table = lt.open_table(path)
    table.compact(target_rows=120, indices="reuse")
    table.delete("id % 5 = 2")
    assert table.compact(indices="remap").indices_remapped == 3
    answers(path)
    new = {one.id for one in table._snapshot.manifest.fragments}
    assert covered(path, "v_idx") == covered(path, "s_idx") == new
    table.append(rows_of(1000, 1040))
    table.compact(indices="reuse")
    answers(path)


@pytest.mark.parametrize(
    "column", ["id", "f", "s", "b", "d", "t"], ids=["int", "float", "text", "bool", "date", "time"]
)
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_values_of_all_types_are_written_anew(tmp_path: Path, column: str, kind: str) -> None:
    rows, path = 9000, tmp_path / "t"
    chance = np.random.default_rng(1)
    numbers = chance.permutation(rows)
    gaps = chance.random(rows) < 0.3
    data = pa.table(
        {
            "id": pa.array(numbers, pa.int64(), mask=gaps),
            "f": pa.array(np.where(numbers % 50 == 0, np.nan, numbers / 7), mask=gaps),
            "s": pa.array([f"text {number % 40}" for number in numbers], mask=gaps),
            "b": pa.array(numbers % 2 == 0, mask=gaps),
            "d": pa.array(numbers.astype(np.int32), pa.date32()),
            "t": pa.array(numbers.astype(np.int64) * 1000, pa.timestamp("us")),
            "row": np.arange(rows),
        }
    )
    dataset = lance.write_dataset(data, str(path), max_rows_per_file=2000)
    if kind == "BITMAP" and column in {"id", "f", "d", "t"}:
        data = data.slice(0, 500)
        dataset = lance.write_dataset(data, str(path), max_rows_per_file=100, mode="overwrite")
    dataset.create_scalar_index(column, kind)
    dataset.delete("row % 7 = 3")
    assert lt.open_table(path).compact(indices="remap").indices_remapped == 1
    dataset = lance.dataset(str(path))
    everything = dataset.to_table()
    values = [one for one in everything[column].to_pylist() if one is not None]
    literal = {"s": "'{}'", "d": "date '{}'", "t": "timestamp '{}'"}.get(column, "{}")
    for value in values[:: len(values) // 5]:
        for sign in ("=", "<", ">="):
            where = f"{column} {sign} {literal.format(value)}"
            if str(value) == "nan":
                continue
            found = dataset.to_table(columns=["row"], filter=where)["row"].to_pylist()
            plain = (
                dataset.scanner(columns=["row"], filter=where, use_scalar_index=False)
                .to_table()["row"]
                .to_pylist()
            )
            assert sorted(found) == sorted(plain), where
    for where in (f"{column} is null", f"{column} is not null"):
        found = dataset.to_table(columns=["row"], filter=where)["row"].to_pylist()
        plain = dataset.scanner(columns=["row"], filter=where, use_scalar_index=False).to_table()
        assert sorted(found) == sorted(plain["row"].to_pylist()), where


@pytest.mark.parametrize("kind", ["ZONEMAP", "BLOOMFILTER", "BTREE", "BITMAP"])
@pytest.mark.parametrize("stable", [False, True])
def test_every_kind_of_index_stays_true(tmp_path: Path, kind: str, stable: bool) -> None:
    path = tmp_path / "t"
    dataset = indexed(path, kinds=False, stable=stable)
    dataset.create_scalar_index("v", kind)
    table = lt.open_table(path)
    table.compact(target_rows=120)
    answers(path)
    table.delete("id % 5 = 2")
    table.compact()
    answers(path)
    lance.dataset(str(path)).optimize.optimize_indices()
    answers(path)


def test_unindexed_fragments_are_not_mixed_with_indexed_ones(tmp_path: Path) -> None:
    path = tmp_path / "t"
    indexed(path)
    lance.write_dataset(rows_of(1000, 1100), str(path), mode="append", max_rows_per_file=20)
    table = lt.open_table(path)
    done = table.compact()
    assert done.fragments_added == 2
    answers(path)
    assert len(covered(path, "v_idx")) == 1


def test_an_index_that_is_built_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "t"
    dataset = indexed(path)
    stale, other = lt.open_table(path), lt.open_table(path)
    dataset = lance.dataset(str(path))
    dataset.create_scalar_index("id", "BTREE")
    # All fragments of each group are indexed, so the record serves the new index too.
    stale.compact(indices="reuse", commit=lt.CommitOptions(attempts=1))
    answers(path)
    dataset = lance.dataset(str(path))
    plan = dataset.scanner(filter="id = 17").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert dataset.to_table(filter="id = 17").num_rows == 1
    with pytest.raises(lt.ConflictError):
        other.compact(indices="uncover", commit=lt.CommitOptions(attempts=1))


@pytest.mark.parametrize("name", ["defer_remap.lance"])
def test_records_of_pylance_are_read_and_extended(tmp_path: Path, name: str) -> None:
    path = Path(shutil.copytree(GOLDEN / "table" / name, tmp_path / name))
    table = lt.open_table(path)
    reuse = load_reuse(table._snapshot, table._snapshot.indices())
    assert reuse is not None
    (group,) = reuse.versions[0].groups
    old = np.concatenate(
        [(np.uint64(one.id) << np.uint64(32)) + np.arange(10, dtype=np.uint64)
         for one in group.old_fragments]
    )  # fmt: skip
    new, kept = reuse.translate(old)
    assert np.flatnonzero(~kept).tolist() == [4]
    assert (new[kept] - (np.uint64(3) << np.uint64(32))).tolist() == list(range(29))
    table.append(table.scan().to_arrow().slice(0, 4))
    table.delete("id = 7")
    table.compact(deleted_share=0.0)
    again = load_reuse(table._snapshot, table._snapshot.indices())
    assert again is not None
    assert len(again.versions) == 2
    same(path)
    dataset = lance.dataset(str(path))
    rows = dataset.to_table().to_pylist()
    for value in range(30):
        found = dataset.to_table(filter=f"id = {value}").num_rows
        assert found == sum(1 for row in rows if row["id"] == value)


TABLES = sorted(path.parent for path in GOLDEN.rglob("_versions") if "tree" not in path.parts)
# Base paths in these name a folder of the machine that wrote them; the last one is damaged.
ELSEWHERE = {"multi_base.lance", "shallow_clone.lance", "legacy_0_25_2_rowids.lance"}


@pytest.mark.parametrize("source", TABLES, ids=lambda path: path.relative_to(GOLDEN).as_posix())
def test_tables_of_all_releases(source: Path, tmp_path: Path) -> None:
    if source.name in ELSEWHERE:
        pytest.skip("its files are elsewhere")
    path = Path(shutil.copytree(source, tmp_path / "t"))
    table = lt.open_table(path)
    before = table.scan(blobs="bytes").to_arrow().to_pylist()
    oldest = min((file.major for one in table.fragments for file in one.files), default=2)
    if oldest < 2:
        with pytest.raises(lt.UnsupportedError, match=r"0\.1"):
            table.compact()
        return
    if table._snapshot.manifest.blob_dataset_version is not None:
        with pytest.raises(lt.UnsupportedError, match="blob dataset"):
            table.compact(deleted_share=0.0)
        return
    done = table.compact(deleted_share=0.0)
    after = table.scan(blobs="bytes").to_arrow().to_pylist()
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    if done.fragments_removed:
        dataset = lance.dataset(str(path))
        dataset.validate()
        assert dataset.count_rows() == len(before)
        dataset.to_table()


@pytest.mark.parametrize("stable", [False, True])
def test_branches_and_clones_are_compacted_on_their_own(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t"
    indexed(path, stable=stable)
    main = lt.open_table(path)
    expected = main.scan().to_arrow().sort_by("id")
    main.branches.create("side")
    side = lt.open_table(path, branch="side")
    side.append(rows_of(1000, 1010))
    side.delete("id < 10")
    wanted = side.scan().to_arrow().sort_by("id")
    assert side.compact().fragments_removed > 0
    assert side.scan().to_arrow().sort_by("id").equals(wanted)
    assert main.refresh().scan().to_arrow().sort_by("id").equals(expected)
    theirs = lance.dataset(str(path)).checkout_version(("side", None))
    assert_same_table(theirs.to_table().sort_by("id"), wanted)
    clone = main.clone(tmp_path / "clone")
    clone.delete("id % 10 = 4")
    wanted = clone.scan().to_arrow().sort_by("id")
    assert clone.compact(deleted_share=0.0).fragments_removed > 0
    assert clone.scan().to_arrow().sort_by("id").equals(wanted)
    assert_same_table(lance.dataset(str(tmp_path / "clone")).to_table().sort_by("id"), wanted)
    assert main.refresh().scan().to_arrow().sort_by("id").equals(expected)
