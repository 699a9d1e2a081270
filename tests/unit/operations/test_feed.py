"""The change feed: what each kind of version tells, and what it cannot."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from tests.acts import make_base

KINDS = ("_commit_version", "_change_type", "id")


def _told(changes) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in KINDS) for row in changes.to_arrow().to_pylist()]


def _table(path: Path, *, stable: bool = False) -> lt.Table:
    rows = pa.table({"id": [0, 1, 2, 3], "s": ["a", "b", "c", "d"]})
    return lt.create_table(path, rows, stable_row_ids=stable)


def test_deletes_come_with_their_contents(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.delete("id in (1, 2)")
    found = table.changes(1).to_arrow()
    assert found.column_names == ["id", "s", "_change_type", "_commit_version", "_commit_timestamp"]
    assert found.select(["id", "s", "_change_type"]).to_pylist() == [
        {"id": 1, "s": "b", "_change_type": "delete"},
        {"id": 2, "s": "c", "_change_type": "delete"},
    ]
    assert set(found["_commit_timestamp"].to_pylist()) == {table.timestamp}


def test_an_update_has_both_images_where_rows_have_ids(tmp_path) -> None:
    table = _table(tmp_path / "t", stable=True)
    table.update({"s": "'z'"}, "id = 3")
    found = table.changes(1, with_row_id=True).to_arrow().to_pylist()
    assert [(row["_change_type"], row["s"], row["_rowid"]) for row in found] == [
        ("update_preimage", "d", 3),
        ("update_postimage", "z", 3),
    ]


def test_an_update_without_row_ids_is_a_delete_and_an_insert(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.update({"s": "'z'"}, "id = 3")
    assert _told(table.changes(1)) == [(2, "delete", 3), (2, "insert", 3)]


def test_an_update_of_whole_columns_has_both_images_of_the_rows_it_names(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.update({"s": "'z'"}, "id = 3", mode="columns")
    assert _told(table.changes(1)) == [(2, "update_preimage", 3), (2, "update_postimage", 3)]


def test_an_overwrite_deletes_all_and_inserts_all(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.overwrite(pa.table({"id": [7], "t": [1.5]}))
    assert _told(table.changes(1)) == [
        *((2, "delete", id_) for id_ in range(4)),
        (2, "insert", 7),
    ]


def test_a_restore_tells_what_came_back(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.delete("id = 2")
    table.restore(1)
    assert _told(table.changes(2)) == [(3, "insert", 2)]
    assert _told(table.changes(1)) == [(2, "delete", 2), (3, "insert", 2)]


def test_columns_are_those_of_the_last_version(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.columns.rename("s", "text")
    table.columns.cast("id", pa.int32())
    table.columns.add({"twice": "id * 2"})
    found = table.changes(0).to_arrow()
    assert found.schema.field("id").type == pa.int32()
    assert found.slice(0, 1).select(["id", "text", "twice"]).to_pylist() == [
        {"id": 0, "text": "a", "twice": None}
    ]
    last = [row for row in found.to_pylist() if row["_commit_version"] == 4]
    assert {(row["_change_type"], row["twice"]) for row in last if row["id"] == 3} == {
        ("update_preimage", None),
        ("update_postimage", 6),
    }
    assert table.changes(2, 3).counts() == {3: {}}


def test_a_type_that_cannot_be_shown_is_named(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.overwrite(pa.table({"id": [7], "s": [1.5]}))
    with pytest.raises(lt.UnsupportedError, match="'s' of version 1 is string"):
        table.changes(0).to_arrow()
    assert _told(table.changes(0, 1)) == [(1, "insert", id_) for id_ in range(4)]
    assert len(_told(table.changes(0, columns=["id"]))) == 9


def test_settings_and_moves_change_nothing(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.config.update({"a": "b"})
    table.columns.add(pa.field("n", pa.int32()))
    table.columns.reorder(["n", "s", "id"])
    table.columns.drop(["n"])
    assert table.changes(1).to_arrow().num_rows == 0


def test_tasks_can_be_sent_and_cut(tmp_path) -> None:
    table = make_base(tmp_path / "t", stable=True)
    table.update({"x": "x + 1"}, "id < 15")
    feed = table.changes(0)
    tasks = pickle.loads(pickle.dumps(list(feed.tasks(rows=4))))
    assert all(task.rows <= 4 for task in tasks)
    assert [task.commit_version for task in tasks] == sorted(task.commit_version for task in tasks)
    batches = [batch for task in tasks for batch in task.read()]
    assert pa.Table.from_batches(batches, feed.schema).equals(feed.to_arrow())
    assert sum(batch.num_rows for batch in feed) == sum(
        sum(kinds.values()) for kinds in feed.counts().values()
    )
    assert max(batch.num_rows for batch in table.changes(0, batch_rows=3)) == 3
    assert pa.table(feed).equals(feed.to_arrow())


def test_a_version_that_was_cleaned_away_is_named(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.delete("id = 1")
    table.delete("id = 2")
    (tmp_path / "t" / table.versions()[1].path).unlink()
    with pytest.raises(lt.VersionNotFoundError, match="changes of version 3"):
        table.changes(1).to_arrow()


def test_a_version_without_a_record_is_told_where_it_can_be(tmp_path) -> None:
    for stable in (False, True):
        path = tmp_path / f"t{stable}"
        table = _table(path, stable=stable)
        table.update({"s": "'z'"}, "id = 3")
        _forget_transaction(path, table)
        table = lt.open_table(path)
        assert table.versions()[-1].operation is None
        if stable:
            told = [(2, "update_preimage", 3), (2, "update_postimage", 3)]
            assert _told(table.changes(1)) == told
        else:
            with pytest.raises(lt.UnsupportedError, match="operation of version 2 is unknown"):
                table.changes(1).to_arrow()


def _forget_transaction(path: Path, table: lt.Table) -> None:

    from lancetable.format.manifest.codec import encode_manifest

    manifest = table._snapshot.manifest._replace(
        transaction_file="", transaction_section=None, index_section=None
    )
    file = path / table._snapshot.manifest_path
    encoded = encode_manifest(manifest, str(file), index_section=None, transaction=None)
    file.write_bytes(encoded.content)


def test_wrong_questions_are_refused(tmp_path) -> None:
    table = _table(tmp_path / "t")
    table.delete("id = 1")
    with pytest.raises(lt.InputError, match="from 2 to 1"):
        table.changes(2, 1)
    with pytest.raises(lt.InputError, match="from -1 to 2"):
        table.changes(-1)
    with pytest.raises(lt.VersionNotFoundError):
        table.changes(1, 9)
    assert table.changes(2).to_arrow().num_rows == 0
    taken = lt.create_table(tmp_path / "u", pa.table({"_change_type": [1]}))
    with pytest.raises(lt.InputError, match="_change_type"):
        taken.changes(0)
