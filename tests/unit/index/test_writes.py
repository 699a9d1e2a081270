"""Deletes, updates, merges and overwrites find their rows through indices."""

import pyarrow as pa
import pytest

import lancetable as lt

ROWS, PER_FILE = 4000, 500


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    data = {"id": range(ROWS), "s": [f"k{i}" for i in range(ROWS)], "v": [0] * ROWS}
    made = lt.create_table(
        str(tmp_path / "t"),
        pa.table(data),
        max_rows_per_file=PER_FILE,
        stable_row_ids=request.param,
    )
    made.indices.create("id", "btree")
    made.indices.create("s", "btree")
    return made


def values(table: lt.Table) -> dict[str, tuple[int, int]]:
    return {
        row["s"]: (row["id"], row["v"])
        for row in table.scan(use_indices=False).to_arrow().to_pylist()
    }


def test_deletes_and_updates_read_what_is_named(table):
    expected = values(table)
    done = table.delete("id in (3, 777, 3999)")
    assert (done.rows, done.fragments_scanned) == (3, 0)
    for gone in ("k3", "k777", "k3999"):
        del expected[gone]
    assert table.delete("id = 777").fragments_scanned == 0
    done = table.update({"v": "1"}, where="s = 'k5' or id = 6")
    assert (done.rows, done.fragments_scanned) == (2, 0)
    expected |= {"k5": (5, 1), "k6": (6, 1)}
    assert values(table) == expected
    # The fragment of the changed rows is new, so it is all that is scanned.
    done = table.delete("id = 5")
    assert (done.rows, done.fragments_scanned) == (1, 1)
    assert table.delete("v = 1 and id > 3").fragments_scanned > 1


@pytest.mark.parametrize("on", ["id", "s"])
def test_merges_look_keys_up(table, on):
    expected = values(table)
    table.delete("id = 40")
    keys = [40, 41, 2500, 5000]
    source = pa.table({"id": keys, "s": [f"k{i}" for i in keys], "v": [7] * 4})
    done = (
        table.merge(source, on=on).when_matched_update_all().when_not_matched_insert_all().execute()
    )
    assert (done.updated, done.inserted, done.fragments_scanned) == (2, 2, 0)
    expected |= {f"k{i}": (i, 7) for i in keys}
    assert values(table) == expected
    again = table.merge(source, on=on).when_matched_delete().execute()
    assert (again.deleted, again.fragments_scanned) == (4, 1)
    assert len(values(table)) == ROWS - 3


def test_merges_on_several_columns_use_any_index(table):
    table.indices.drop("s_idx")
    source = pa.table({"id": [1, 2, None], "s": ["k1", "other", "k3"], "v": [7, 7, 7]})
    done = table.merge(source, on=["id", "s"]).when_matched_update_all().execute()
    assert (done.updated, done.fragments_scanned) == (1, 0)


def test_clauses_for_the_other_rows_see_them_all(table):
    source = pa.table({"id": [1, 2], "s": ["k1", "k2"], "v": [7, 7]})
    done = (
        table.merge(source, on="id")
        .when_matched_update_all()
        .when_not_matched_by_source_delete("target.id < 10")
        .execute()
    )
    assert (done.updated, done.deleted) == (2, 8)


def test_new_rows_of_an_overwrite_are_not_looked_up(table):
    new = pa.table({"id": [5, 6], "s": ["a", "b"], "v": [1, 1]})
    table.overwrite(new, where="id in (5, 6)")
    assert values(table)["a"] == (5, 1)
    assert len(values(table)) == ROWS
