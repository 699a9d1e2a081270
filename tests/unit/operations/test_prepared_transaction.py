"""Deletes, updates and merges that are carried out now and committed later."""

import os
import pickle
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.errors import StoreError
from lancetable.operations.prepared_transaction import commit_prepared

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": [1, 2, 3, 4], "n": [10, 20, 30, 40]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def table(tmp_path, request):
    return lt.create_table(
        str(tmp_path / "t"), ROWS, stable_row_ids=request.param, max_rows_per_file=2
    )


def upsert(table, rows, **notes):
    merge = table.merge(rows, on="id", **notes)
    return merge.when_matched_update_all().when_not_matched_insert_all()


def content(table):
    rows = lt.open_table(table.uri).scan(["id", "n"]).to_arrow()
    assert rows["id"].to_pylist() == list(dict.fromkeys(rows["id"].to_pylist()))
    return dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))


def files(table):
    root = Path(table.uri)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def sent(prepared):
    return pickle.loads(pickle.dumps(prepared))


PREPARE = {
    "merge": lambda table: upsert(table, {"id": [2, 9], "n": [21, 90]}).execute_uncommitted(),
    "insert": lambda table: (
        table.merge({"id": [9], "n": [90]}, on="id")
        .when_not_matched_insert_all()
        .execute_uncommitted()
    ),
    "evolve": lambda table: (
        upsert(table, {"id": [2, 9], "n": [21, 90], "new": [1, 2]}, merge_schema=True)
    ).execute_uncommitted(),
    "delete": lambda table: table.delete_uncommitted("id = 2"),
    "delete fragment": lambda table: table.delete_uncommitted("id < 3"),
    "delete all": lambda table: table.delete_uncommitted("true"),
    "update": lambda table: table.update_uncommitted({"n": "n + 1"}, "id = 2"),
    "columns": lambda table: table.update_uncommitted({"n": "n + 1"}, "id = 2", mode="columns"),
}
AFTER = {
    "merge": {1: 10, 2: 21, 3: 30, 4: 40, 9: 90},
    "insert": {1: 10, 2: 20, 3: 30, 4: 40, 9: 90},
    "evolve": {1: 10, 2: 21, 3: 30, 4: 40, 9: 90},
    "delete": {1: 10, 3: 30, 4: 40},
    "delete fragment": {3: 30, 4: 40},
    "delete all": {},
    "update": {1: 10, 2: 21, 3: 30, 4: 40},
    "columns": {1: 10, 2: 21, 3: 30, 4: 40},
}


@pytest.mark.parametrize("kind", PREPARE)
def test_a_change_becomes_a_version_when_it_is_committed(table, kind):
    prepared = sent(PREPARE[kind](table))
    assert (prepared.read_version, prepared.result.is_new_version) == (1, False)
    assert lt.open_table(table.uri).version == table.version == 1
    assert content(table) == {1: 10, 2: 20, 3: 30, 4: 40}
    other = lt.open_table(table.uri)
    result = other.commit_prepared(prepared)
    assert (result.version, result.is_new_version, other.version) == (2, True, 2)
    assert content(table) == AFTER[kind]
    assert not other.maintenance.check(level="data").problems


@pytest.mark.parametrize("kind", PREPARE)
def test_nothing_is_committed_twice(table, kind):
    prepared = PREPARE[kind](table)
    table.commit_prepared(prepared)
    with pytest.raises((lt.InputError, lt.ConflictError)):
        lt.open_table(table.uri).commit_prepared(prepared)
    table.append({"id": [100], "n": [0]})
    with pytest.raises((lt.InputError, lt.ConflictError)):
        lt.open_table(table.uri).commit_prepared(prepared)
    table.restore(1)
    with pytest.raises((lt.InputError, lt.ConflictError)):
        lt.open_table(table.uri).commit_prepared(prepared)
    assert content(table) == {1: 10, 2: 20, 3: 30, 4: 40}


@pytest.mark.parametrize("kind", PREPARE)
def test_of_commits_at_the_same_time_one_lands(table, kind):
    prepared = PREPARE[kind](table)
    handles = [lt.open_table(table.uri) for _ in range(4)]
    together = threading.Barrier(len(handles))

    def commit(handle):
        together.wait()
        try:
            return handle.commit_prepared(prepared).version
        except (lt.InputError, lt.ConflictError):
            return None

    with ThreadPoolExecutor(len(handles)) as pool:
        landed = list(pool.map(commit, handles))
    assert sorted(landed, key=str) == [2, None, None, None]
    assert content(table) == AFTER[kind]
    assert not table.maintenance.check(level="data").problems


def test_a_second_commit_is_told_about_the_first(table):
    prepared = PREPARE["merge"](table)
    table.commit_prepared(prepared)
    with pytest.raises(lt.InputError, match="is part of version 2 already"):
        table.commit_prepared(prepared)


def test_counts_and_notes(table):
    merge = upsert(table, {"id": [2, 9], "n": [21, 90]}, commit=lt.CommitOptions("a", {"p": "1"}))
    prepared = sent(merge.execute_uncommitted())
    assert (prepared.result.updated, prepared.result.inserted) == (1, 1)
    assert prepared.operation_name == "Update"
    assert len(repr(prepared)) < 1000
    result = table.commit_prepared(prepared, commit=lt.CommitOptions(properties={"q": "2"}))
    assert (result.updated, result.inserted, result.attempts) == (1, 1, 1)
    entry = table.history(limit=1)[0]
    assert (entry.message, entry.properties["p"], entry.properties["q"]) == ("a", "1", "2")
    again = table.delete_uncommitted("id = 9", commit="b")
    table.commit_prepared(again, commit="c")
    assert table.history(limit=1)[0].message == "c"


def test_nothing_to_change_makes_no_version(table):
    before = files(table)
    prepared = sent(table.delete_uncommitted("id = 77"))
    assert prepared.operation_name is None
    result = table.commit_prepared(prepared)
    assert (result.version, result.is_new_version, result.rows) == (1, False, 0)
    assert files(table) == before


@pytest.mark.parametrize("kind", ["merge", "delete", "update"])
def test_changes_of_other_rows_are_kept(table, kind):
    prepared = PREPARE[kind](table)
    other = lt.open_table(table.uri)
    other.delete("id = 1")
    other.delete("id = 4")
    table.commit_prepared(prepared)
    assert content(table) == {k: v for k, v in AFTER[kind].items() if k not in {1, 4}}
    assert not table.maintenance.check(level="data").problems


@pytest.mark.parametrize("kind", ["merge", "insert", "evolve", "update", "columns", "delete"])
def test_changes_of_the_same_rows_are_a_conflict(table, kind):
    prepared = PREPARE[kind](table)
    upsert(lt.open_table(table.uri), {"id": [2, 9], "n": [0, 0]}).execute()
    before = files(table)
    with pytest.raises(lt.ConflictError):
        table.commit_prepared(prepared)
    assert content(table) == {1: 10, 2: 0, 3: 30, 4: 40, 9: 0}
    assert files(table) == before


def test_of_two_prepared_merges_that_insert_a_key_one_lands(table):
    first, second = PREPARE["insert"](table), PREPARE["insert"](table)
    table.commit_prepared(first)
    with pytest.raises(lt.ConflictError):
        table.commit_prepared(second)
    assert table.count() == 5


def test_transactions_of_another_table_branch_or_kind(table, tmp_path):
    other = lt.create_table(str(tmp_path / "u"), ROWS)
    with pytest.raises(lt.InputError, match="was prepared for"):
        table.commit_prepared(other.delete_uncommitted("id = 2"))
    table.branches.create("b")
    branch = lt.open_table(table.uri, branch="b")
    prepared = branch.delete_uncommitted("id = 2")
    with pytest.raises(lt.InputError, match="was prepared for"):
        table.commit_prepared(prepared)
    lt.open_table(table.uri, branch="b").delete("id = 4")
    branch.commit_prepared(prepared)
    again = branch.delete_uncommitted("id = 3")
    branch.append({"id": [5], "n": [50]})
    lt.open_table(table.uri, branch="b").commit_prepared(sent(again))
    branch = lt.open_table(table.uri, branch="b")
    assert sorted(branch.scan(["id"]).to_arrow()["id"].to_pylist()) == [1, 5]
    assert table.count() == 4
    with pytest.raises(lt.InputError, match="prepared is a int"):
        table.commit_prepared(1)


def test_detached_versions_are_refused(table):
    detached = lt.CommitOptions(detached=True)
    with pytest.raises(lt.InputError, match="detached"):
        table.delete_uncommitted("id = 2", commit=detached)
    prepared = table.delete_uncommitted("id = 2")
    with pytest.raises(lt.InputError, match="detached"):
        table.commit_prepared(prepared, commit=detached)


def test_a_table_that_was_made_again(tmp_path):
    table = lt.create_table(str(tmp_path / "t"), ROWS)
    prepared = table.delete_uncommitted("id = 2")
    shutil.rmtree(tmp_path / "t")
    again = lt.create_table(str(tmp_path / "t"), ROWS)
    with pytest.raises(lt.ConflictError, match="removed and created again"):
        again.commit_prepared(prepared)


def aged(table, days=30):
    past = time.time() - days * 86400
    for path in files(table):
        os.utime(Path(table.uri) / path, (past, past))


def test_a_cleanup_removes_old_files_of_what_was_not_committed(table):
    before = files(table)
    prepared = PREPARE["merge"](table)
    new = files(table) - before
    assert new
    table.maintenance.cleanup()
    assert new <= files(table)
    aged(table)
    table.maintenance.cleanup()
    assert not new & files(table)
    with pytest.raises(lt.ConflictError, match="is gone"):
        table.commit_prepared(prepared)
    assert content(table) == {1: 10, 2: 20, 3: 30, 4: 40}


def test_the_version_it_builds_on_was_cleaned_away(table):
    prepared = PREPARE["delete"](table)
    table.append({"id": [5], "n": [50]})
    table.maintenance.cleanup(older_than=timedelta(0))
    with pytest.raises(lt.ConflictError, match="version 1, which the transaction builds on"):
        table.commit_prepared(prepared)


class LostAnswer:
    """A store that creates an object, reports a failure and cannot be read from then on."""

    def __init__(self, inner):
        self.inner = inner
        self.root = inner.root
        self.is_lost = False

    def put_if_absent(self, path, content):
        self.inner.put_if_absent(path, content)
        self.is_lost = True
        raise StoreError("connection lost")

    def read(self, path):
        if self.is_lost:
            raise StoreError("connection lost")
        return self.inner.read(path)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_an_unknown_outcome_keeps_the_files(table):
    prepared = PREPARE["merge"](table)
    new = files(table)
    snapshot = table._snapshot
    with pytest.raises(lt.UnknownOutcomeError):
        commit_prepared(snapshot._replace(store=LostAnswer(snapshot.store)), prepared)
    assert new <= files(table)
    assert content(table) == AFTER["merge"]
    with pytest.raises(lt.InputError, match="is part of version 2 already"):
        lt.open_table(table.uri).commit_prepared(prepared)
