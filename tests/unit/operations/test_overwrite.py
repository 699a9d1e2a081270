"""Rows are replaced: all, some, or none but gone; and older versions come back."""

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import ExpressionError, InputError, SchemaError, VersionNotFoundError

TABLE = pa.table({"a": pa.array([1, 2, 3, 4], pa.int64()), "b": ["x", "y", "x", "y"]})


@pytest.fixture
def table(tmp_path):
    return lt.create_table(tmp_path / "t", TABLE, max_rows_per_file=2)


def rows(table):
    return table.scan().to_arrow().to_pylist()


def files(table):
    return {entry.path for entry in table._snapshot.store.list("")}


def test_all_rows_and_columns_are_replaced(table):
    table.config.update({"kept": "yes"})
    result = table.overwrite(pa.table({"c": [1.5]}), commit="anew")
    assert (result.version, result.rows) == (3, 1)
    assert rows(table) == [{"c": 1.5}]
    assert table.config == {"kept": "yes"}
    assert lt.open_table(table.uri, version=1).count() == 4
    assert [fragment.id for fragment in table.fragments] == [2]


def test_python_rows_keep_the_types_and_notes_of_the_columns(tmp_path):
    schema = pa.schema(
        [pa.field("a", pa.int16(), nullable=False, metadata={"note": "kept"}), ("j", pa.json_())]
    )
    table = lt.create_table(tmp_path / "t", [{"a": 1, "j": "{}"}], schema=schema)
    table.overwrite([{"j": "[]", "a": 2, "new": "x"}])
    assert table.schema.field("a") == schema.field("a")
    assert table.schema.field("a").metadata == {b"note": b"kept"}
    assert table.schema.field("j").type == pa.json_()
    assert rows(table) == [{"j": "[]", "a": 2, "new": "x"}]


def test_an_overwrite_keeps_or_changes_the_storage_version(tmp_path):
    table = lt.create_table(tmp_path / "t", TABLE, storage_version="2.0")
    table.overwrite(TABLE)
    assert table.fragments[0].files[0].minor == 0
    table.overwrite(TABLE, storage_version="2.1")
    assert table.fragments[0].files[0].minor == 1
    table.overwrite([{"m": 1}], storage_version="2.2")
    table.append([{"m": 2}])
    assert {f.files[0].minor for f in table.fragments} == {2}


def test_the_last_of_two_overwrites_wins(table):
    other = lt.open_table(table.uri)
    table.overwrite([{"who": "first"}])
    other.overwrite([{"who": "second"}])
    assert rows(other) == [{"who": "second"}]
    assert other.version == 3


def test_rows_that_match_are_replaced_in_one_version(table):
    result = table.overwrite([{"a": 30, "b": "x"}], where="b = 'x'")
    assert (result.version, result.rows) == (2, 1)
    assert rows(table) == [{"a": 2, "b": "y"}, {"a": 4, "b": "y"}, {"a": 30, "b": "x"}]
    assert table._snapshot.transaction().operation_name == "Update"


def test_whole_fragments_may_be_replaced(table):
    table.overwrite([{"a": 0}], where="a <= 2")
    assert [row["a"] for row in rows(table)] == [3, 4, 0]
    assert [fragment.id for fragment in table.fragments] == [1, 2]


def test_without_a_match_the_rows_are_added(table):
    table.overwrite([{"a": 109}], where="a > 100")
    assert [row["a"] for row in rows(table)] == [1, 2, 3, 4, 109]


def test_a_replacement_beside_other_writers(table):
    other = lt.open_table(table.uri)
    other.append([{"a": 50, "b": "x"}])
    table.overwrite([{"a": -9}], where="a < 2")
    assert sorted(row["a"] for row in rows(table)) == [-9, 2, 3, 4, 50]


@pytest.mark.parametrize(
    ("data", "where", "error"),
    [
        ([{"a": "text"}], "a = 1", ValueError),
        (pa.table({"z": [1]}), "a = 1", SchemaError),
        ([{"a": 1}], "nowhere = 1", lt.LanceTableError),
        ([{"a": 1}], "a = ", ExpressionError),
    ],
)
def test_a_refused_replacement_changes_nothing(table, data, where, error):
    before = files(table)
    with pytest.raises(error):
        table.overwrite(data, where=where)
    assert files(table) == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"a": 1, "b": "x"}, {"a": 7, "b": "no"}, {"a": 8, "b": "x"}], "1 of .* has b = 'no';"),
        ([{"a": 1, "b": "x"}, {"a": 7}, {"a": 8, "b": "y"}], "2 of .* has b = None;"),
        (pa.table({"a": [1, 2]}), "2 of .* has b = None;"),
        (pa.table({"a": [1], "b": pa.array(["y"]).dictionary_encode()}), "1 of .* has b = 'y';"),
        ((one for one in TABLE.to_batches(max_chunksize=1)), "2 of .* has b = 'y';"),
    ],
    ids=["one", "null", "left out", "cast", "stream"],
)
def test_rows_that_do_not_match_are_refused(table, data, message):
    before = files(table)
    with pytest.raises(InputError, match=f"{message} nothing was written.*check=False"):
        table.overwrite(data, where="b = 'x'", max_rows_per_file=1)
    assert files(table) == before
    assert table.refresh().version == 1


def test_a_repeated_replacement_changes_nothing(table):
    new = [{"a": 7, "b": "x"}, {"a": 8, "b": "x"}]
    table.overwrite(new, where="b = 'x'")
    once = rows(table)
    table.overwrite(new, where="b = 'x'")
    assert rows(table) == once


@pytest.mark.parametrize("where", ["false", "null = 1", "a = 1 and b = null"])
def test_a_predicate_that_holds_for_no_row_takes_none(table, where):
    table.overwrite(TABLE.slice(0, 0), where=where)
    assert table.count() == 4
    with pytest.raises(InputError, match="1 of the new rows does not match"):
        table.overwrite([{"a": 1}], where=where)


def test_rows_that_do_not_match_can_be_written_on_purpose(table):
    table.overwrite([{"a": 9, "b": "new"}], where="b = 'x'", check=False)
    assert [row["a"] for row in rows(table)] == [2, 4, 9]


def test_new_rows_cannot_be_checked_by_their_address(table):
    with pytest.raises(InputError, match="'_rowaddr'"):
        table.overwrite([{"a": 9}], where="_rowaddr = 0")
    table.overwrite([{"a": 9}], where="_rowaddr = 0", check=False)
    assert table.count() == 4


def test_rows_of_a_table_with_row_ids_are_checked(tmp_path):
    table = lt.create_table(tmp_path / "t", TABLE, stable_row_ids=True)
    table.overwrite([{"a": 9, "b": "x"}], where="b = 'x'")
    with pytest.raises(InputError, match="has b = 'z'"):
        table.overwrite([{"a": 9, "b": "z"}], where="b = 'x'")
    assert [row["a"] for row in rows(table)] == [2, 4, 9]


def test_truncate_removes_the_rows_only(table):
    table.config.update({"k": "v"})
    result = table.truncate(commit="empty")
    assert (result.version, result.rows) == (3, 4)
    assert (table.count(), table.schema.names, table.config) == (0, ["a", "b"], {"k": "v"})
    table.append(TABLE)
    assert min(fragment.id for fragment in table.fragments) == 2
    assert table.count() == 4


def test_truncate_keeps_what_others_append_meanwhile(table):
    stale = lt.open_table(table.uri)
    table.append([{"a": 99}])
    stale.truncate()
    assert rows(stale) == [{"a": 99, "b": None}]


def test_restore_brings_rows_and_settings_back(table):
    table.config.update({"k": "v"})
    table.overwrite([{"z": 1}])
    result = table.restore(2)
    assert (result.version, result.rows) == (4, 4)
    assert table.scan().to_arrow().to_pylist() == TABLE.to_pylist()
    assert table.config == {"k": "v"}
    table.append([{"a": 5}])
    ids = [fragment.id for fragment in table.fragments]
    assert ids == [0, 1, 3]


def test_a_version_that_is_not_there_cannot_be_restored(table):
    with pytest.raises(VersionNotFoundError):
        table.restore(7)
    assert table.refresh().version == 1


def test_an_iterator_that_breaks_leaves_the_old_rows(table):
    def data():
        yield TABLE.to_batches()[0]
        raise RuntimeError("broke")

    before = files(table)
    for where in (None, "a = 1"):
        with pytest.raises(RuntimeError, match="broke"):
            table.overwrite(data(), where=where)
        assert files(table) == before
