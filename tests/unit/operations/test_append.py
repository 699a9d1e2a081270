"""Rows are added: columns fit, files go when it fails, and others may write at the same time."""

import errno
import os
import threading

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.committer import commit
from lancetable.commit.transaction import Merge, Project
from lancetable.errors import ConflictError, InputError, SchemaError, StoreError
from lancetable.format.schema.types import schema_from_arrow
from lancetable.operations.append import append
from tests.same import assert_same_table
from tests.unit.operations.faults import FaultyStore

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": ["x", None, "z"]})


@pytest.fixture
def table(tmp_path):
    return lt.create_table(tmp_path / "t", TABLE)


def files(table, folder="data"):
    return sorted(entry.path for entry in table._snapshot.store.list(folder))


def test_rows_come_after_the_old_ones(table):
    result = table.append(TABLE, commit=lt.CommitOptions("more", {"job": "7"}))
    assert (result.version, result.rows, result.attempts, result.casts) == (2, 3, 1, ())
    assert table.version == 2
    assert_same_table(table.scan().to_arrow(), pa.concat_tables([TABLE, TABLE]))
    transaction = table._snapshot.transaction()
    assert transaction.message == "more"
    assert transaction.properties["job"] == "7"
    assert table.checkout(1).count() == 3


def test_casts_are_reported(table):
    rows = pa.table({"b": pa.array(["q"]).dictionary_encode(), "a": pa.array([7], pa.uint8())})
    result = table.append(rows)
    assert {(note.column, note.to_type) for note in result.casts} == {
        ("a", pa.int64()),
        ("b", pa.string()),
    }
    assert table.scan(where="a = 7").to_arrow().to_pydict() == {"a": [7], "b": ["q"]}


def test_what_does_not_fit_changes_nothing(table):
    before = files(table)
    with pytest.raises(
        SchemaError, match=r"'a' has type int64.*string.*'c' is not.*merge_schema=True"
    ):
        table.append(pa.table({"a": ["1"], "c": [1]}))
    assert (files(table), table.version, table.refresh().version) == (before, 1, 1)


def test_missing_columns_are_null(table):
    table.append([{"a": 9}])
    assert table.fragments[1].files[0].fields == (0,)
    assert table.scan(where="a = 9").to_arrow()["b"].to_pylist() == [None]


def test_nothing_to_append_is_a_version_without_files(table):
    before = files(table)
    assert table.append(TABLE.slice(0, 0)).version == 2
    assert table.count() == 3
    assert files(table) == before


def test_a_table_takes_its_own_rows(table):
    table.append(table.scan(where="a > 1"))
    assert table.scan().to_arrow()["a"].to_pylist() == [1, 2, 3, 2, 3]
    table.append(table)
    assert table.count() == 10


def test_an_iterator_that_breaks_changes_nothing(table):
    def rows():
        for number in range(200_000):
            yield {"a": number}
        raise OSError("the feed broke")

    before = files(table)
    with pytest.raises(OSError, match="the feed broke"):
        table.append(rows(), max_rows_per_file=30_000)
    assert files(table) == before
    assert table.refresh().version == 1


def test_a_null_where_there_must_be_none_changes_nothing(tmp_path):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    table = lt.create_table(tmp_path / "t", [{"a": 1}], schema=schema)
    before = files(table)
    with pytest.raises(InputError, match="'a' must not be null"):
        table.append([{"a": 2}, {"a": None}])
    with pytest.raises(SchemaError, match="'a' must not be null and is not in the data"):
        table.append([{"b": 2}])
    assert files(table) == before


def test_new_columns_come_with_the_rows(table):
    table.append([{"a": 4, "s": {"x": 1}}], merge_schema=True)
    assert table.version == 2
    assert table.schema.names == ["a", "b", "s"]
    table.append([{"a": 5, "s": {"x": 2, "y": "deep"}, "t": 1.5}], merge_schema=True)
    assert table.version == 3
    assert table.scan().to_arrow().to_pylist()[2:] == [
        {"a": 3, "b": "z", "s": None, "t": None},
        {"a": 4, "b": None, "s": {"x": 1, "y": None}, "t": None},
        {"a": 5, "b": None, "s": {"x": 2, "y": "deep"}, "t": 1.5},
    ]
    ids = [field.id for field in table._snapshot.manifest.schema.walk()]
    assert len(set(ids)) == len(ids)
    assert lt.open_table(table.uri, version=1).schema.names == ["a", "b"]


def test_without_new_columns_a_schema_merge_is_a_plain_append(table):
    table.append(TABLE, merge_schema=True)
    assert table._snapshot.transaction().operation_name == "Append"
    table.append([{"n": 1}], merge_schema=True)
    assert table._snapshot.transaction().operation_name == "Merge"


def test_ids_of_dropped_columns_are_not_used_again(table):
    schema = table._snapshot.manifest.schema
    dropped = schema._replace(fields=schema.fields[:1])
    commit(table._snapshot, Project(dropped, preserves_nullability=True))
    table.refresh()
    table.append([{"new": "value"}], merge_schema=True)
    assert table.scan(["new"]).to_arrow()["new"].to_pylist() == [None] * 3 + ["value"]


def test_merged_columns_keep_row_ids(tmp_path):
    table = lt.create_table(tmp_path / "t", TABLE, stable_row_ids=True)
    table.append([{"n": 1}], merge_schema=True)
    ids = table.scan(["n"], with_row_id=True).to_arrow()["_rowid"].to_pylist()
    assert ids == [0, 1, 2, 3]


def test_a_schema_merge_is_done_again_after_another_append(table):
    other = lt.open_table(table.uri)
    other.append([{"a": 10}])
    result = table.append([{"a": 11, "n": 1}], merge_schema=True)
    assert result.version == 3
    assert table.scan().to_arrow()["a"].to_pylist() == [1, 2, 3, 10, 11]


def test_two_schema_merges_get_different_columns(table):
    other = lt.open_table(table.uri)
    other.append([{"a": 10, "left": 1}], merge_schema=True)
    table.append(pa.table({"a": [11], "right": ["r"]}), merge_schema=True)
    assert table.schema.names == ["a", "b", "left", "right"]
    assert table.scan().to_arrow().to_pylist()[3:] == [
        {"a": 10, "b": None, "left": 1, "right": None},
        {"a": 11, "b": None, "left": None, "right": "r"},
    ]
    named = {f"data/{f.path}" for fragment in table.fragments for f in fragment.files}
    assert set(files(table)) == named


def test_rows_that_cannot_be_read_again_are_refused_after_a_change_of_columns(table):
    other = lt.open_table(table.uri)
    other.append([{"a": 10, "left": 1}], merge_schema=True)
    before = files(table)
    with pytest.raises(ConflictError, match="pass them once more"):
        table.append(iter([{"a": 11, "right": "r"}]), merge_schema=True)
    assert files(table) == before


def test_a_retyped_column_is_written_again(table):
    """The other writer made ``a`` a new column of another type, with a file for it."""
    snapshot = table._snapshot
    old = snapshot.manifest
    first, *rest = old.schema.fields
    retyped = first._replace(id=7, logical_type="double")
    schema = old.schema._replace(fields=(retyped, *rest))
    fragments = tuple(one._replace(files=one.files) for one in old.fragments)
    stale = lt.open_table(table.uri)
    commit(snapshot, Merge(fragments, schema))
    result = stale.append(pa.table({"a": pa.array([5], pa.int32())}))
    assert stale.version == 3
    assert [note.to_type for note in result.casts] == [pa.float64()]
    assert stale.scan(["a"]).to_arrow()["a"].to_pylist() == [None, None, None, 5.0]


def test_every_failing_call_of_the_store_leaves_the_table_whole(table):
    counting = FaultyStore(table._snapshot.store)
    made = append(table._snapshot._replace(store=counting), TABLE)
    calls = len(counting.calls)
    assert calls > 5
    for number in range(1, calls + 1):
        latest = lt.open_table(table.uri)
        rows, before = latest.count(), set(files(latest))
        store = FaultyStore(latest._snapshot.store, fail_at=number)
        try:
            append(latest._snapshot._replace(store=store), TABLE)
        except StoreError:
            after = lt.open_table(table.uri)
            assert after.version == latest.version
            assert set(files(latest)) == before
        except lt.UnknownOutcomeError:
            after = lt.open_table(table.uri)
        else:
            after = lt.open_table(table.uri)
            assert after.count() == rows + 3
        named = {f"data/{f.path}" for fragment in after.fragments for f in fragment.files}
        assert named <= set(files(after))
        assert after.scan().to_arrow().num_rows == after.count()
    assert made.result.rows == 3


def test_a_folder_that_may_not_be_written_is_reported(table, monkeypatch):
    real = os.open

    def refused(path, flags, mode=0o777):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode)

    before = files(table, "")
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(StoreError, match="Permission denied"):
            table.append(TABLE)
    assert files(table, "") == before
    assert table.append(TABLE).version == 2


def test_a_refresh_without_news_keeps_opened_files(table):
    table.scan().to_arrow()
    opened = table._handle.readers
    assert table.refresh()._handle.readers is opened
    lt.open_table(table.uri).append(TABLE)
    assert table.refresh().version == 2
    assert table.count() == 6


def test_an_interrupt_at_the_commit_keeps_the_files(table):
    """It may have come when the version was made already."""

    class Interrupted(FaultyStore):
        def put_if_absent(self, path, content):
            super().put_if_absent(path, content)
            raise KeyboardInterrupt

    snapshot = table._snapshot._replace(store=Interrupted(table._snapshot.store))
    with pytest.raises(KeyboardInterrupt):
        append(snapshot, TABLE)
    assert table.refresh().version == 2
    assert table.scan().to_arrow().num_rows == 6


def test_an_interrupt_before_the_commit_removes_the_files(table):
    def rows():
        yield from TABLE.to_batches()
        raise KeyboardInterrupt

    before = files(table)
    with pytest.raises(KeyboardInterrupt):
        table.append(rows())
    assert files(table) == before


def test_many_threads_lose_no_row(table):
    def work(number):
        mine = lt.open_table(table.uri)
        for turn in range(5):
            mine.append([{"a": 1000 + 10 * number + turn}])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = table.refresh().scan(where="a >= 1000").to_arrow()["a"].to_pylist()
    assert sorted(found) == sorted(1000 + 10 * n + t for n in range(6) for t in range(5))


def test_an_overwritten_table_refuses_rows_of_the_old_one(table):
    stale = lt.open_table(table.uri)
    table.overwrite([{"other": 1}])
    before = files(table)
    with pytest.raises(ConflictError):
        stale.append(TABLE)
    assert files(table) == before


def test_json_text_becomes_documents(tmp_path):
    table = lt.create_table(tmp_path / "t", schema=pa.schema([("j", pa.json_())]))
    table.append(pa.table({"j": ['{"a": 1}', None]}))
    table.append([{"j": "[1,2]"}])
    assert table.scan().to_arrow()["j"].to_pylist() == ['{"a":1}', None, "[1,2]"]
    before = files(table)
    with pytest.raises(InputError):
        table.append([{"j": "{broken"}])
    assert files(table) == before


def test_brain_floats_are_two_bytes(tmp_path):
    field = pa.field("h", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    table = lt.create_table(tmp_path / "t", schema=pa.schema([field]))
    table.append([{"h": b"\x80\x3f"}, {"h": None}])
    found = table.scan().to_arrow()["h"].combine_chunks()
    stored = getattr(found, "storage", found)  # pylance, when imported, registers the type
    assert stored.to_pylist() == [b"\x80\x3f", None]
    assert schema_from_arrow(table.schema).fields[0].extension_name == "lance.bfloat16"
