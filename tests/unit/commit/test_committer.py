"""Commits: the loop, races, failures of the store, and what is left behind."""

import json
import pickle
import threading
from datetime import UTC, datetime

import numpy as np
import pytest

from lancetable.commit import load
from lancetable.commit.committer import CommitOptions, CreateMode, commit, create
from lancetable.commit.snapshot import Snapshot
from lancetable.commit.transaction import (
    Append,
    Delete,
    MapUpdate,
    Overwrite,
    Restore,
    Update,
    UpdateConfig,
)
from lancetable.errors import (
    ConflictError,
    ContentionError,
    ExistsError,
    FileNotFoundInStoreError,
    InputError,
    LanceTableError,
    StoreError,
    UnknownOutcomeError,
    UnsupportedError,
    VersionNotFoundError,
)
from lancetable.format.manifest import DataFile, Fragment, Manifest
from lancetable.format.manifest.codec import encode_manifest
from lancetable.format.manifest.deletions import decode_deletions
from lancetable.format.manifest.names import HINT, Scheme, manifest_path
from lancetable.format.schema import Field, Schema
from lancetable.fragment.deletions import load_deletions, write_deletions
from lancetable.store import LocalStore, TableLocation
from lancetable.store.memory import MemoryStore
from lancetable.store.wrap import WrappedStore
from tests.stores import CountingStore, FaultyStore, Moment, SlowStore, WrappedLocation

SCHEMA = Schema((Field("a", 0, "int64"),))
FRAGMENT = Fragment(0, (DataFile("a.lance", (0,), (0,), 2, 1, 100),), physical_rows=10)
FIRST = Overwrite((FRAGMENT,), SCHEMA)
MORE = Append((FRAGMENT,))


@pytest.fixture
def location(tmp_path):
    return TableLocation(str(tmp_path / "t"))


@pytest.fixture
def table(location):
    return create(location, FIRST).snapshot


def ids(snapshot):
    return [fragment.id for fragment in snapshot.manifest.fragments]


def record(snapshot):
    return snapshot.transaction()


def fragments(snapshot):
    return list(snapshot.manifest.fragments)


def delete_rows(snapshot, fragment_id, *offsets):
    """Return the deletion of some rows, its file written, and the rows by fragment."""
    fragment = next(one for one in snapshot.manifest.fragments if one.id == fragment_id)
    rows = np.array(offsets)
    old = fragment.deletion_file
    gone = load_deletions(snapshot, fragment, old, 10).offsets if old else np.array([], np.int64)
    every = np.union1d(gone, rows)
    made = write_deletions(snapshot.store, fragment, every, read_version=snapshot.version)
    return Delete((fragment._replace(deletion_file=made.file),)), {fragment_id: rows}


def deleted(snapshot, fragment_id):
    fragment = next(one for one in snapshot.manifest.fragments if one.id == fragment_id)
    return load_deletions(snapshot, fragment, fragment.deletion_file, 10).offsets.tolist()


def test_the_first_version_and_the_next(location, table):
    assert (table.version, ids(table), table.manifest.data_format) == (1, [0], "2.1")
    second = commit(table, MORE, CommitOptions("more rows", {"job": "7"}))
    assert (second.snapshot.version, second.attempts, ids(second.snapshot)) == (2, 1, [0, 1])
    read = load(location)
    assert read.manifest == second.snapshot.manifest
    transaction = record(read)
    assert (transaction.read_version, transaction.message) == (1, "more rows")
    assert transaction.properties["job"] == "7"
    assert transaction.operation == MORE
    manifest = read.manifest
    assert manifest.writer is not None
    assert manifest.timestamp is not None
    assert manifest.writer.library == "lancetable"
    assert abs((datetime.now(UTC) - manifest.timestamp).total_seconds()) < 60
    assert json.loads(read.store.read(HINT)) == {"version": 2}
    name = f"_transactions/{read.manifest.transaction_file}"
    assert read.manifest.transaction_file == f"1-{transaction.uuid}.txn"
    stored = read.store.read(name)
    assert read.store.read(read.manifest_path).find(stored) > 0
    assert read.manifest_path == manifest_path(2, Scheme.V2)
    assert pickle.loads(pickle.dumps(second.snapshot.manifest)) == read.manifest


def test_many_commits_on_one_handle_agree_with_what_is_read(location, table):
    for _ in range(5):
        table = commit(table, MORE).snapshot
    assert ids(table) == ids(load(location)) == list(range(6))
    operation, rows = delete_rows(table, 3, 1, 2)
    table = commit(table, operation, affected=rows).snapshot
    table = commit(table, Delete((), (0, 5))).snapshot
    table = commit(table, MORE).snapshot
    assert ids(table) == ids(load(location)) == [1, 2, 3, 4, 6]
    assert deleted(load(location), 3) == [1, 2]
    assert table.manifest.reader_flags == 1
    table = commit(table, Delete((), (3,))).snapshot
    assert table.manifest.reader_flags == load(location).manifest.reader_flags == 0


@pytest.mark.parametrize("mode", CreateMode)
def test_a_table_that_exists(location, table, mode):
    again = Overwrite((FRAGMENT, FRAGMENT), SCHEMA)
    if mode is CreateMode.ERROR:
        with pytest.raises(ExistsError, match="there is a table already"):
            create(location, again, mode=mode)
        return
    result = create(location, again, mode=mode)
    ignored = mode is CreateMode.IGNORE
    assert (result.snapshot.version, result.attempts) == ((1, 0) if ignored else (2, 1))
    assert ids(result.snapshot) == ([0] if ignored else [1, 2])


@pytest.mark.parametrize("mode", CreateMode)
def test_two_create_at_the_same_time(tmp_path, mode):
    """The other table appears after this one looked."""
    plain = TableLocation(str(tmp_path / "t"))

    class Late(WrappedStore):
        def create(self, path):
            if not self.inner.exists(manifest_path(1, Scheme.V2)):
                create(plain, FIRST)
            return super().create(path)

    location = WrappedLocation(plain.uri, wrap=Late)
    if mode is CreateMode.ERROR:
        with pytest.raises(ExistsError):
            create(location, FIRST, mode=mode)
        expected = 1
    else:
        expected = create(location, FIRST, mode=mode).snapshot.version
    assert load(plain).version == expected == (2 if mode is CreateMode.OVERWRITE else 1)
    transactions = list(plain.open().list("_transactions"))
    assert len(transactions) == expected


def test_stable_row_ids_from_the_start(location):
    table = create(location, FIRST, stable_row_ids=True, storage_version="2.2").snapshot
    assert (table.manifest.reader_flags & 2, table.manifest.next_row_id) == (2, 10)
    table = commit(table, MORE).snapshot
    assert table.manifest.next_row_id == 20
    assert load(location).manifest == table.manifest
    assert create(TableLocation(f"{location.uri}2"), Overwrite((), SCHEMA)).snapshot.version == 1


def test_stale_handles_append_after_whoever_was_first(location, table):
    results = [commit(table, MORE) for _ in range(3)]
    assert [(made.snapshot.version, made.attempts) for made in results] == [(2, 1), (3, 1), (4, 1)]
    assert record(results[-1].snapshot).read_version == 1
    assert ids(load(location)) == [0, 1, 2, 3]


def test_old_names_stay(tmp_path):
    store = LocalStore(str(tmp_path))
    first = manifest_path(1, Scheme.V1)
    made = encode_manifest(
        Manifest(1, SCHEMA, (FRAGMENT,)), first, index_section=None, transaction=None
    )
    store.put(first, made.content)
    table = load(TableLocation(str(tmp_path)))
    table = commit(table, MORE).snapshot
    assert table.manifest_path == "_versions/2.manifest"
    # Version 1 names no largest id although it has a fragment.
    assert (ids(table), table.manifest.max_fragment_id) == ([0, 1], 1)


def test_a_version_without_a_record_conflicts(location, table):
    path = manifest_path(2, Scheme.V2)
    bare = table.manifest._replace(version=2, transaction_file="")
    table.store.put(path, encode_manifest(bare, path, index_section=None, transaction=None).content)
    with pytest.raises(ConflictError, match="no record") as caught:
        commit(table, MORE)
    assert caught.value.retryable is False


def test_versions_that_were_cleaned_away(location, table):
    latest = table
    for _ in range(4):
        latest = commit(latest, MORE).snapshot
    for version in (2, 3):
        table.store.delete(manifest_path(version, Scheme.V2))
    with pytest.raises(ConflictError, match="cleaned away") as caught:
        commit(table, MORE)
    assert caught.value.retryable
    assert commit(latest, MORE).snapshot.version == 6


@pytest.mark.parametrize("hint", [None, b'{"version":1}', b"garbage", b'{"version":99}'])
def test_a_wrong_hint_does_no_harm(table, hint):
    commit(table, MORE)
    if hint is None:
        table.store.delete(HINT)
    else:
        table.store.put(HINT, hint)
    assert commit(table, MORE).snapshot.version == 3
    assert json.loads(table.store.read(HINT)) == {"version": 3}


def test_deleted_rows_are_merged(location, table):
    first, rows = delete_rows(table, 0, 1, 2)
    second, other = delete_rows(table, 0, 5)
    commit(table, first, affected=rows)
    made = commit(table, second, affected=other).snapshot
    assert deleted(made, 0) == deleted(load(location), 0) == [1, 2, 5]
    assert record(made).read_version == 2
    file = fragments(made)[0].deletion_file
    assert (file.deleted_rows, file.read_version) == (3, 2)
    kept = {entry.path.rpartition("/")[2] for entry in made.store.list("_deletions")}
    old = fragments(load(location, version=2))[0].deletion_file
    assert kept == {f"0-2-{file.id}.bin", f"0-1-{old.id}.arrow"}


def test_the_last_rows_of_a_fragment_take_it_along(location, table):
    first, rows = delete_rows(table, 0, *range(5))
    second, other = delete_rows(table, 0, *range(5, 10))
    commit(table, first, affected=rows)
    made = commit(table, Update(updated_fragments=second.updated_fragments), affected=other)
    assert ids(made.snapshot) == ids(load(location)) == []
    assert record(made.snapshot).operation.removed_fragment_ids == (0,)
    assert made.snapshot.manifest.max_fragment_id == 0


def test_the_same_row_cannot_go_twice(table):
    first, rows = delete_rows(table, 0, 1, 2)
    second, other = delete_rows(table, 0, 2, 3)
    commit(table, first, affected=rows)
    for known in (other, None):
        with pytest.raises(ConflictError) as caught:
            commit(table, second, affected=known)
        assert caught.value.retryable
    assert load(table.location).version == 2
    assert len(list(table.store.list("_transactions"))) == 2


def test_restoring(location, table):
    changed = UpdateConfig(config=MapUpdate({"k": "v"}))
    latest = commit(commit(commit(table, MORE).snapshot, changed).snapshot, Delete((), (0,)))
    restored = commit(latest.snapshot, Restore(2)).snapshot
    assert (restored.version, ids(restored), restored.manifest.config) == (5, [0, 1], {})
    assert restored.manifest.writer_flags == 0
    with pytest.raises(VersionNotFoundError):
        commit(restored, Restore(77))


def test_a_branch_goes_its_own_way(location, table):
    folder = location.child("tree/dev").open()
    path = manifest_path(1, Scheme.V2)
    manifest = table.manifest._replace(branch="dev")
    content = encode_manifest(manifest, path, index_section=None, transaction=None).content
    folder.put(path, content)
    branch = load(location, branch="dev")
    made = commit(branch, MORE).snapshot
    assert (made.branch, made.manifest.branch, made.store.root) == ("dev", "dev", folder.root)
    assert load(location, branch="dev").version == 2
    assert load(location).version == 1
    assert commit(made, Restore(1)).snapshot.version == 3


def test_what_later_writers_need_is_respected(table):
    manifest = table.manifest._replace(writer_flags=1 << 20)
    with pytest.raises(UnsupportedError, match="writer feature flag 1048576"):
        commit(table._replace(manifest=manifest), MORE)
    with pytest.raises(InputError, match="fragment 8"):
        commit(table, Delete((), (8,)))
    detached = table._replace(manifest_path="_versions/d9223372036854775809.manifest")
    with pytest.raises(InputError, match="detached"):
        commit(detached, MORE)
    assert len(list(table.store.list("_transactions"))) == 1


def test_a_change_that_does_not_fit_any_more(table):
    commit(table, Delete((), (0,)))
    with pytest.raises(ConflictError):
        commit(table, Delete((), (0,)))


def test_few_requests(tmp_path):
    create(TableLocation(str(tmp_path / "t")), FIRST)
    stores = []

    def counted(inner):
        stores.append(CountingStore(inner))
        return stores[-1]

    table = load(WrappedLocation(str(tmp_path / "t"), wrap=counted))
    (store,) = stores
    assert store.counts == {"read": 2, "exists": 1}
    store.calls.clear()
    # The first commit of a process lists the versions; then the next names and the hint do.
    table = commit(table, MORE).snapshot
    assert store.counts["list"] == 1
    store.calls.clear()
    commit(table, MORE)
    assert store.counts == {
        "exists": 2,
        "read": 2,
        "create": 1,
        "write": 1,
        "close": 1,
        "put_if_absent": 1,
        "put_loosely": 1,
    }


def opened(snapshot, store):
    return snapshot._replace(store=store)


class Racing(WrappedStore):
    """Lets another writer win each race."""

    def __init__(self, inner, plain):
        super().__init__(inner)
        self._plain = plain

    def put_if_absent(self, path, content):
        commit(load(self._plain), MORE)
        super().put_if_absent(path, content)


def test_losing_every_race(location, table):
    options = CommitOptions(attempts=3)
    with pytest.raises(ContentionError, match="3 rounds"):
        commit(opened(table, Racing(table.store, location)), MORE, options)
    late = CommitOptions(deadline_seconds=0)
    with pytest.raises(ContentionError, match="1 rounds"):
        commit(opened(table, Racing(table.store, location)), MORE, late)
    assert load(location).version == 5
    assert len(list(table.store.list("_transactions"))) == 5


class Forgetful(WrappedStore):
    """Says that a manifest exists, and does not find it for a while."""

    def __init__(self, inner, looks, *, is_made):
        super().__init__(inner)
        self.looks = looks
        self.is_made = is_made
        self.denied = set()

    def put_if_absent(self, path, content):
        if path not in self.denied and self.is_made:
            self.inner.put_if_absent(path, content)
        self.denied.add(path)
        raise ExistsError(f"{path}: the object already exists")

    def _is_hidden(self, path):
        if path in self.denied:
            self.looks -= 1
        return path in self.denied and self.looks >= 0

    def read(self, path, *, most=None):
        if self._is_hidden(path):
            raise FileNotFoundInStoreError(path)
        return self.inner.read(path, most=most)

    def exists(self, path):
        return not self._is_hidden(path) and self.inner.exists(path)


def test_an_own_version_that_is_seen_late_is_recognised(location, table):
    for options in (CommitOptions(), CommitOptions(strict=True)):
        latest = load(location)
        store = Forgetful(latest.store, 3, is_made=True)
        made = commit(opened(latest, store), MORE, options)
        assert made.snapshot.version == latest.version + 1 == load(location).version
        assert made.attempts > 1


def test_a_claim_that_stays_in_doubt_keeps_its_files(location, table, caplog):
    operation, rows = delete_rows(table, 0, 3)
    other, others = delete_rows(table, 0, 4)
    commit(table, other, affected=others)
    before = len(list(table.store.list("_deletions")))
    store = Forgetful(table.store, 1 << 30, is_made=False)
    caplog.set_level("INFO", "lancetable.commit")
    with pytest.raises(UnknownOutcomeError, match="found nothing"):
        commit(opened(table, store), operation, CommitOptions(attempts=3), affected=rows)
    assert len(caplog.records) == 3
    assert "does not find it" in caplog.text
    assert load(location).version == 2
    # The merged rows were written once for all rounds, and stay: the version may turn up.
    assert len(list(table.store.list("_deletions"))) == before + 1


def test_rounds_are_bounded_by_time(location, table):
    racing = opened(table, Racing(table.store, location))
    with pytest.raises(ContentionError, match="rounds and 0"):
        commit(racing, MORE, CommitOptions(deadline_seconds=0.05))
    assert load(location).version > 2


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_lose_no_version(location, table, threads):
    each = 12
    failed = []

    def work():
        try:
            mine = load(location)
            for _ in range(each):
                mine = commit(mine, MORE, CommitOptions(attempts=500)).snapshot
        except LanceTableError as error:
            failed.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed
    latest = load(location)
    assert latest.version == 1 + threads * each
    assert ids(latest) == list(range(1 + threads * each))
    uuids = {
        record(load(location, version=version)).uuid for version in range(1, latest.version + 1)
    }
    assert len(uuids) == latest.version


def test_threads_deleting_different_rows_of_one_fragment(location, table):
    done = []

    def work(offset):
        operation, rows = delete_rows(table, 0, offset)
        done.append(commit(table, operation, CommitOptions(attempts=500), affected=rows))

    workers = [threading.Thread(target=work, args=(offset,)) for offset in range(9)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(done) == 9
    assert deleted(load(location), 0) == list(range(9))


def always(store):
    """Return a location whose store is this one."""
    return WrappedLocation("/memory", wrap=lambda _: store)


def history(location):
    """Return what a reader finds, checking that nothing it needs is missing."""
    latest = load(location)
    assert latest.transaction() is not None
    for fragment in latest.manifest.fragments:
        if fragment.deletion_file is not None:
            store, path = latest.deletion_file_place(fragment, fragment.deletion_file)
            decode_deletions(store.read(path), fragment.deletion_file.kind)
    return latest


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("stays_down", [False, True])
def test_the_store_fails_at_any_call(tmp_path, moment, stays_down):
    """The table is at the old or the new version, and the next commit works."""
    number, outcomes = 0, set()
    while True:
        location = TableLocation(str(tmp_path / str(number)))
        table = create(location, FIRST).snapshot
        operation, rows = delete_rows(table, 0, 3)
        other, others = delete_rows(table, 0, 4)
        commit(table, other, affected=others)
        faulty = FaultyStore(table.store, number, moment, stays_down=stays_down)
        try:
            made = commit(opened(table, faulty), operation, affected=rows).snapshot
        except UnknownOutcomeError:
            made = None
            outcomes.add("unknown")
        except StoreError:
            outcomes.add("failed")
            made = load(location)
            assert made.version == 2
        latest = history(location)
        if made is not None:
            assert latest.version == made.version
        expected = [4] if latest.version == 2 else [3, 4]
        assert deleted(latest, 0) == expected
        assert commit(latest, MORE).snapshot.version == latest.version + 1
        if not faulty.has_failed:
            break
        number += 1
    assert number > 8
    assert "failed" in outcomes


@pytest.mark.parametrize("moment", Moment)
def test_the_store_fails_at_any_call_of_a_creation(tmp_path, moment):
    number = 0
    while True:
        plain = TableLocation(str(tmp_path / str(number)))
        store = FaultyStore(plain.open(), number, moment)
        try:
            create(always(store), FIRST)
        except (StoreError, UnknownOutcomeError):
            made = create(plain, FIRST, mode=CreateMode.IGNORE).snapshot
            assert made.version == 1
        assert commit(history(plain), MORE).snapshot.version == 2
        if not store.has_failed:
            break
        number += 1
    assert number > 4


def failing_claim(moment, *, down):
    class Store(WrappedStore):
        broken = False

        def call(self, verb, path, action):
            if self.broken and down:
                raise StoreError("down")
            if verb != "put_if_absent":
                return action()
            self.broken = True
            if moment is Moment.AFTER:
                action()
            raise StoreError("lost")

    return Store


def test_a_lost_answer_is_looked_up(location, table):
    store = failing_claim(Moment.AFTER, down=False)(table.store)
    assert commit(opened(table, store), MORE).snapshot.version == 2


@pytest.mark.parametrize(
    ("moment", "down"), [(Moment.BEFORE, False), (Moment.BEFORE, True), (Moment.AFTER, True)]
)
def test_nothing_is_removed_while_the_outcome_is_unknown(location, table, moment, down):
    store = failing_claim(moment, down=down)(table.store)
    with pytest.raises(UnknownOutcomeError, match="may or may not"):
        commit(opened(table, store), MORE)
    assert len(list(table.store.list("_transactions"))) == 2
    assert load(location).version == (2 if moment is Moment.AFTER else 1)


def test_a_refusal_of_the_system_is_a_plain_failure(location, table):
    class Full(WrappedStore):
        def put_if_absent(self, path, content):
            raise StoreError(f"{path}: no space", is_certain=True)

    with pytest.raises(StoreError, match="no space"):
        commit(opened(table, Full(table.store)), MORE)
    assert len(list(table.store.list("_transactions"))) == 1
    assert load(location).version == 1


def test_another_writer_won_while_the_store_failed(location, table):
    class Store(Racing):
        failed = False

        def put_if_absent(self, path, content):
            if self.failed:
                self.inner.put_if_absent(path, content)
                return
            self.failed = True
            commit(load(self._plain), MORE)
            raise StoreError("lost")

    result = commit(opened(table, Store(table.store, location)), MORE)
    assert (result.snapshot.version, result.attempts) == (3, 2)


def test_any_store_will_do():
    location = always(SlowStore(MemoryStore(), 0.0))
    table = create(location, FIRST).snapshot
    assert isinstance(table, Snapshot)
    table = commit(table, MORE).snapshot
    assert load(location).manifest == table.manifest
