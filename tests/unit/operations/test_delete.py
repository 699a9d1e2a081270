"""Deleting rows: what is left, what is told, and what stays behind when it fails."""

import threading

import pyarrow as pa
import pytest

import lancetable
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import Delete
from lancetable.errors import ExpressionError
from lancetable.operations.delete import delete
from lancetable.operations.rows.find_rows import FindTask, find_rows, plan_find
from lancetable.operations.rows.mark_deleted import mark_deleted, plan_mark
from lancetable.operations.rows.parts import RowSet
from tests.unit.operations.everywhere import fail_everywhere
from tests.unit.operations.faults import FaultyStore


@pytest.fixture
def table(tmp_path):
    made = lancetable.create_table(str(tmp_path / "t"), {"id": list(range(4)), "s": list("abcd")})
    made.append({"id": [4, 5, 6], "s": ["e", None, "g"]})
    return made


class _ClosedStore(FaultyStore):
    """Gives out manifests, which a commit compares, and nothing else."""

    def open(self, path, *, size=None):
        if not path.startswith("_versions/"):
            pytest.fail(f"opened {path}")
        return self.inner.open(path, size=size)


def ids(table):
    return table.scan(["id"]).to_arrow()["id"].to_pylist()


def files(table):
    return {entry.path for entry in table._snapshot.store.list("")}


def test_matching_rows_go_and_are_counted(table):
    result = table.delete("id % 2 = 1")
    assert (result.rows, result.version) == (3, 3)
    assert ids(table) == [0, 2, 4, 6]
    assert ids(lancetable.open_table(table.uri)) == [0, 2, 4, 6]


def test_deletes_add_up(table):
    table.delete("id = 0")
    table.delete("id = 2")
    assert ids(table) == [1, 3, 4, 5, 6]
    (fragment, _) = table.fragments
    assert fragment.deletion_file.deleted_rows == 2


def test_a_null_predicate_deletes_nothing(table):
    assert table.delete("s = 'zz'").rows == 0
    assert table.delete("s > 'f'").rows == 1
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_without_a_match_there_is_no_version(table):
    before = files(table)
    result = table.delete("id = 99")
    assert (result.rows, result.version, table.version) == (0, 2, 2)
    assert files(table) == before


def test_a_fragment_without_rows_is_removed(table):
    table.delete("id < 4")
    assert [fragment.id for fragment in table.fragments] == [1]
    operation = table._snapshot.transaction().operation
    assert operation == Delete((), (0,), "id < 4")


def test_deleting_everything_reads_nothing(table):
    store = _ClosedStore(table._snapshot.store)
    snapshot = table._snapshot
    watched = Snapshot(snapshot.location, store, snapshot.manifest, snapshot.manifest_path)
    done = delete(watched, "true")
    assert done.result.rows == 7
    assert not len(done.snapshot.manifest.fragments)


def test_the_text_of_the_predicate_is_kept(table):
    table.delete("id = 3")
    assert table._snapshot.transaction().operation.predicate == "id = 3"


def test_wrong_sql_changes_nothing(table):
    before = files(table)
    for where in ("id = ", "nope = 1", "id"):
        with pytest.raises(ExpressionError):
            table.delete(where)
    assert files(table) == before


def test_steps_can_be_sent_elsewhere(table):
    import pickle

    tasks = plan_find(table._snapshot, None)
    assert [one.rows.offsets().tolist() for one in find_rows(tasks[0])] == [[0, 1, 2, 3], [0, 1, 2]]
    task = pickle.loads(pickle.dumps(FindTask(table._snapshot, tasks[0].where)))
    found = find_rows(task)
    marks = plan_mark(
        table._snapshot, {one.fragment.id: RowSet.of(one.rows.offsets()[:1]) for one in found}
    )
    marked = mark_deleted(pickle.loads(pickle.dumps(marks[0])))
    files = [one.fragment.deletion_file for one in marked if one.fragment is not None]
    assert [file.deleted_rows for file in files if file is not None] == [1, 1]


def test_concurrent_deletes_of_other_rows_both_hold(table):
    other = lancetable.open_table(table.uri)
    table.delete("id = 1")
    assert other.delete("id = 2 or id = 5").rows == 2
    assert ids(other) == [0, 3, 4, 6]


def test_concurrent_deletes_of_the_same_row_count_it_once(table):
    other = lancetable.open_table(table.uri)
    table.delete("id = 1")
    result = other.delete("id < 2")
    assert result.rows == 1
    assert ids(other) == [2, 3, 4, 5, 6]


def test_many_threads(tmp_path):
    uri = str(tmp_path / "many")
    lancetable.create_table(uri, {"id": list(range(400))})
    failed = []

    def work(number):
        try:
            handle = lancetable.open_table(uri)
            for step in range(5):
                handle.delete(f"id % 40 = {number * 5 + step}")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    left = ids(lancetable.open_table(uri))
    assert sorted(left) == [id_ for id_ in range(400) if id_ % 40 >= 20]


def test_a_failure_leaves_nothing_behind(table):
    failures = fail_everywhere(table, lambda faulty: delete(faulty, "id in (1, 4)"))
    assert len(failures) > 5
    assert sorted(ids(lancetable.open_table(table.uri))) == [0, 2, 3, 5, 6]


def test_an_arrow_predicate(table):
    import pyarrow.compute as pc

    assert table.delete(pc.field("id") >= 5).rows == 2
    assert "5" in table._snapshot.transaction().operation.predicate
    assert pa.types.is_integer(table.schema.field("id").type)
