"""Cleanup: what stays, what goes, in which order, and beside whom."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.leases.records import LEASES
from lancetable.commit.versions import load
from lancetable.errors import InputError, StoreError
from lancetable.store import Entry, Store, TableLocation
from lancetable.store.wrap import WrappedStore
from tests.acts import make_base
from tests.crash.aftermath import check_whole, files_below, state
from tests.stores import CountingStore, WrappedLocation

_T = TypeVar("_T")
NOW = timedelta(0)


def _aged(path: Path, versions: int = 4) -> lt.Table:
    """Make a table whose versions have files of their own."""
    table = lt.create_table(path, pa.table({"id": [0, 1, 2], "s": ["a", "b", "c"]}))
    for number in range(1, versions):
        table.overwrite(pa.table({"id": [number], "s": [str(number)]}))
    return table


def test_only_the_latest_version_is_left(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    before = files_below(tmp_path / "t")
    done = table.maintenance.cleanup(older_than=NOW)
    assert [one.version for one in done.removed_versions] == [1, 2, 3]
    assert [info.version for info in table.versions()] == [4]
    assert {kind: amount.files for kind, amount in done.removed.items()} == {
        "data": 3,
        "manifest": 3,
        "transaction": 3,
    }
    assert done.files == len(before) - len(files_below(tmp_path / "t")) == 9
    assert done.bytes > 1000
    assert table.scan().to_arrow().to_pylist() == [{"id": 3, "s": "3"}]
    table.append(pa.table({"id": [9], "s": ["9"]}))
    assert table.version == 5


def test_young_versions_and_the_last_few_stay(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    assert table.maintenance.cleanup().files == 0
    assert {one.reason for one in table.maintenance.cleanup().kept_versions} == {"latest", "young"}
    done = table.maintenance.cleanup(older_than=NOW, keep_last=3)
    assert [one.version for one in done.removed_versions] == [1]


def test_a_dry_run_tells_the_same_and_removes_nothing(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    before = files_below(tmp_path / "t")
    tried = table.maintenance.cleanup(older_than=NOW, dry_run=True)
    assert tried.is_dry_run
    assert files_below(tmp_path / "t") == before
    done = table.maintenance.cleanup(older_than=NOW)
    assert (done.removed, done.removed_versions) == (tried.removed, tried.removed_versions)


def test_tags_branches_and_open_versions_are_kept(tmp_path) -> None:
    table = _aged(tmp_path / "t", 6)
    table.tags.create("first", 1)
    table.branches.create("dev", 3)
    held = lt.open_table(tmp_path / "t", version=4)
    done = held.maintenance.cleanup(older_than=NOW)
    assert {(one.version, one.reason) for one in done.kept_versions} == {
        (1, "tag 'first'"),
        (3, "branch 'dev' begins there"),
        (4, "open here"),
        (6, "latest"),
    }
    assert lt.open_table(tmp_path / "t", tag="first").count() == 3
    assert lt.open_table(tmp_path / "t", branch="dev").scan().to_arrow()["id"].to_pylist() == [2]


def test_named_versions_go_unless_they_must_stay(tmp_path) -> None:
    table = _aged(tmp_path / "t", 5)
    table.tags.create("good", 2)
    before = files_below(tmp_path / "t")
    with pytest.raises(lt.InputError, match="version 2 cannot be removed: tag 'good'"):
        table.maintenance.cleanup(versions=[1, 2])
    with pytest.raises(lt.InputError, match="it is the latest"):
        table.maintenance.cleanup(versions=[5])
    with pytest.raises(lt.InputError, match="version 77 is not there"):
        table.maintenance.cleanup(versions=[77])
    assert files_below(tmp_path / "t") == before
    table.maintenance.cleanup(versions=[3])
    assert [info.version for info in table.versions()] == [1, 2, 4, 5]


def test_wrong_settings_are_refused(tmp_path) -> None:
    table = _aged(tmp_path / "t", 1)
    with pytest.raises(lt.InputError, match="keep_last is 0; give a whole number from 1"):
        table.maintenance.cleanup(keep_last=0)
    with pytest.raises(lt.InputError, match="older_than"):
        table.maintenance.cleanup(older_than=timedelta(days=-1))
    with pytest.raises(lt.InputError, match="files_per_second"):
        table.maintenance.cleanup(files_per_second=0)
    with pytest.raises(lt.InputError, match="cannot be taken for a clone"):
        table.maintenance.cleanup(clones=[str(tmp_path / "nowhere")])


def test_orphans_go_when_they_are_old_enough(tmp_path) -> None:
    table = _aged(tmp_path / "t", 1)
    root = tmp_path / "t"
    orphans = {
        "data/dead.lance": "data",
        "data/dead/0101.blob": "blob",
        "_deletions/0-1-77.arrow": "deletion",
        "_transactions/1-dead.txn": "transaction",
        "_indices/0aa26c0d-7b9c-4f5e-9b3e-0d3c8c8f0f10/index.idx": "index",
        "_versions/.tmp_1.manifest_dead": "temporary",
        "_versions/9.manifest#1": "temporary",
        "data/dead.lance.tmp0011aabb": "temporary",
    }
    foreign = ["notes.txt", "_latest.manifest", "_mem_wal/x/1.arrow", "data/a/b/c.lance", "_fri/x"]
    for path in [*orphans, *foreign]:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"12345")
    young = table.maintenance.cleanup(older_than=NOW)
    assert young.files == 0
    assert sum(amount.files for amount in young.too_young.values()) == len(orphans)
    done = table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert {kind: amount.files for kind, amount in done.removed.items()} == {
        kind: [*orphans.values()].count(kind) for kind in orphans.values()
    }
    left = files_below(root)
    assert left.isdisjoint(orphans)
    assert left.issuperset(foreign)
    assert not (root / "data/dead").exists()
    assert table.count() == 3


def test_links_out_of_the_table_are_not_followed(tmp_path) -> None:
    table = _aged(tmp_path / "t", 3)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.lance").write_bytes(b"precious")
    (outside / "0-1-1.arrow").write_bytes(b"precious")
    (tmp_path / "t/data/link").symlink_to(outside)
    table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert [info.version for info in table.versions()] == [3]
    table.append(pa.table({"id": [9], "s": ["9"]}))
    (tmp_path / "t/_deletions").symlink_to(outside)
    with pytest.raises(InputError, match="allow="):
        table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert len(files_below(outside)) == 2


def test_a_version_that_cannot_be_read_stops_everything(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    damaged = tmp_path / "t" / table.versions()[1].path
    damaged.write_bytes(damaged.read_bytes()[:-7])
    before = files_below(tmp_path / "t")
    with pytest.raises(lt.CorruptError, match="version 2 cannot be read"):
        table.maintenance.cleanup(older_than=NOW)
    assert files_below(tmp_path / "t") == before


def test_a_moved_table_with_branches_is_left_alone(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    table.branches.create("dev", 2)
    (tmp_path / "t").rename(tmp_path / "moved")
    with pytest.raises(lt.CorruptError, match="move it back"):
        lt.open_table(tmp_path / "moved").maintenance.cleanup(older_than=NOW)


def test_files_of_known_clones_stay(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    lt.open_table(tmp_path / "t", version=2).clone(tmp_path / "clone")
    done = table.maintenance.cleanup(older_than=NOW, clones=[str(tmp_path / "clone")])
    assert done.removed["data"].files == 2
    assert lt.open_table(tmp_path / "clone").scan().to_arrow()["id"].to_pylist() == [1]


def test_a_branch_has_its_own_history(tmp_path) -> None:
    table = _aged(tmp_path / "t", 2)
    branch = table.branches.create("dev")
    branch.overwrite(pa.table({"id": [7], "s": ["x"]}))
    branch.overwrite(pa.table({"id": [8], "s": ["y"]}))
    done = branch.maintenance.cleanup(older_than=NOW)
    assert {(one.branch, one.version) for one in done.removed_versions} == {("dev", 2), ("dev", 3)}
    assert [info.version for info in table.versions()] == [1, 2]
    assert lt.open_table(tmp_path / "t", branch="dev").scan().to_arrow()["id"].to_pylist() == [8]
    again = table.maintenance.cleanup(older_than=NOW, all_branches=True)
    assert {(one.branch, one.version) for one in again.removed_versions} == {(None, 1)}


def test_progress_and_pace(tmp_path) -> None:
    table = _aged(tmp_path / "t", 8)
    seen: list[tuple[int, int | None]] = []
    table.maintenance.cleanup(
        older_than=NOW,
        files_per_second=100000,
        progress=lambda now: seen.append((now.done, now.total)),
    )
    assert seen[-1] == (21, 21)


def test_manifests_go_first(tmp_path) -> None:
    _aged(tmp_path / "t")
    stores: list[CountingStore] = []

    def wrap(store: Store) -> Store:
        stores.append(CountingStore(store))
        return stores[-1]

    location = WrappedLocation(str(tmp_path / "t"), wrap=wrap)
    lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW)
    calls = [call for store in stores for call in store.calls]
    gone = [path for verb, path in calls if verb == "delete" and not path.startswith(LEASES)]
    kinds = [path.startswith("_versions/") for path in gone]
    assert kinds == sorted(kinds, reverse=True)
    assert kinds.count(True) == 3


class _Dying(WrappedStore):
    """Fails all deletions after some."""

    left = 0

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        if verb == "delete":
            if not _Dying.left:
                raise KeyboardInterrupt
            _Dying.left -= 1
        return action()


@pytest.mark.parametrize("survived", range(10))
def test_a_crash_at_any_deletion_leaves_whole_versions(tmp_path, survived) -> None:
    _aged(tmp_path / "t")
    plain = TableLocation(str(tmp_path / "t"))
    expected = state(lt.Table(plain, load(plain)))
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Dying)
    _Dying.left = survived
    try:
        lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW)
    except KeyboardInterrupt:
        pass
    table = check_whole(plain)
    assert state(table) == expected
    table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert len(files_below(tmp_path / "t")) == 3


class _Refusing(WrappedStore):
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        if verb == "delete" and path.startswith("data/"):
            raise StoreError(f"{path}: read-only")
        return action()


def test_files_that_cannot_be_removed_are_named(tmp_path) -> None:
    _aged(tmp_path / "t")
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Refusing)
    done = lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW)
    assert len(done.failed) == 3
    assert "data" not in done.removed


class _Locked(WrappedStore):
    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        if verb == "delete" and path.startswith("_versions/"):
            raise StoreError(f"{path}: object lock")
        return action()


def test_versions_whose_manifests_cannot_be_removed_keep_their_files(tmp_path) -> None:
    _aged(tmp_path / "t")
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Locked)
    done = lt.Table(location, load(location)).maintenance.cleanup(
        older_than=NOW, unverified_after=NOW
    )
    assert len(done.failed) == 3
    assert done.removed_versions == ()
    assert done.files == 0
    for version in range(1, 5):
        assert lt.open_table(tmp_path / "t", version=version).scan().to_arrow().num_rows
    assert not lt.check_table(tmp_path / "t").problems


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["tag", "branch", "hold"])
def test_a_version_that_is_named_while_it_goes_comes_back(tmp_path, when, name) -> None:
    _aged(tmp_path / "t")
    old = lt.open_table(tmp_path / "t", version=2)
    with ExitStack() as held:

        def act() -> None:
            if name == "tag":
                # As another library does it, without a look at the version afterwards.
                (tmp_path / "t/_refs/tags").mkdir(parents=True)
                record = b'{"branch": null, "version": 2, "manifestSize": 400}'
                (tmp_path / "t/_refs/tags/x.json").write_bytes(record)
            elif name == "branch":
                with suppress(lt.VersionNotFoundError):
                    old.branches.create("b")
            else:
                held.enter_context(old.hold())

        meddler = _Meddler(
            tmp_path, act, path="_versions/18446744073709551613", is_after=when == "after"
        )
        location = WrappedLocation(str(tmp_path / "t"), wrap=meddler.wrap)
        done = lt.Table(location, load(location)).maintenance.cleanup(
            older_than=NOW, unverified_after=NOW
        )
        assert meddler.is_done
        if name == "branch" and when == "after":
            assert not lt.open_table(tmp_path / "t").branches.list()
        else:
            assert [one.version for one in done.removed_versions] == [1, 3]
            assert old.scan().to_arrow()["id"].to_pylist() == [1]
    assert not lt.check_table(tmp_path / "t", level="data").problems


def test_a_tag_is_not_moved_to_a_version_that_goes_meanwhile(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    table.tags.create("x", 4)

    class _Cleaning(WrappedStore):
        def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
            if verb == "put" and path == "_refs/tags/x.json":
                table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
            return action()

    location = WrappedLocation(str(tmp_path / "t"), wrap=_Cleaning)
    mover = lt.Table(location, load(location))
    with pytest.raises(lt.VersionNotFoundError):
        mover.tags.move("x", 2)
    assert [(one.name, one.version) for one in table.tags.list()] == [("x", 4)]
    assert lt.check_table(tmp_path / "t").is_ok


class _OtherClock(WrappedStore):
    """A store whose clock is behind or ahead of that of this machine."""

    skew = 0.0

    def list(self, prefix: str) -> Iterator[Entry]:
        for entry in self.inner.list(prefix):
            yield entry._replace(modified=entry.modified + self.skew)


@pytest.mark.parametrize("skew", [-86_400.0, -200.0, 200.0, 86_400.0])
def test_leases_count_by_the_clock_of_the_store(tmp_path, monkeypatch, skew) -> None:
    monkeypatch.setattr(_OtherClock, "skew", skew)
    location = WrappedLocation(str(tmp_path / "t"), wrap=_OtherClock)
    _aged(tmp_path / "t")
    with lt.Table(location, load(location, version=2)).hold(seconds=60):
        done = lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW)
        assert [one.version for one in done.removed_versions] == [1, 3]
    assert not files_below(tmp_path / "t" / LEASES)


class _Interrupted(WrappedStore):
    """Stops at a change whose number is given, as a process that is killed."""

    left = 0

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        if verb in {"put", "put_if_absent", "delete", "create", "write", "close", "put_loosely"}:
            if not _Interrupted.left:
                raise KeyboardInterrupt
            _Interrupted.left -= 1
        return action()


def _create_branch(table: lt.Table) -> None:
    table.branches.create("a/new", 2)


def _delete_branch(table: lt.Table) -> None:
    table.branches.delete("a/old")


@pytest.mark.parametrize("act", [_create_branch, _delete_branch])
def test_interrupted_branches_leave_nothing_that_a_cleanup_keeps(tmp_path, act) -> None:
    for survived in range(60):
        path = tmp_path / str(survived)
        _aged(path).branches.create("a", 1)
        other = lt.open_table(path).branches.create("a/old", 2)
        other.append(pa.table({"id": [7], "s": ["7"]}))
        location = WrappedLocation(str(path), wrap=_Interrupted)
        table = lt.Table(location, load(location))
        _Interrupted.left = survived
        is_killed = True
        try:
            act(table)
            is_killed = False
        except KeyboardInterrupt:
            pass
        found = lt.check_table(path)
        assert not [one for one in found.problems if one.is_damage]
        table = lt.open_table(path)
        table.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
        assert lt.check_table(path).is_ok
        names = {one.name for one in table.branches.list()}
        assert "a" in names
        for name in ("old", "new"):
            files = [one for one in (path / "tree/a" / name).rglob("*") if one.is_file()]
            assert bool(files) == (f"a/{name}" in names)
        for name in names:
            assert lt.open_table(path, branch=name).scan().to_arrow().num_rows
        if not is_killed:
            return
    raise AssertionError("the operation never came to its end")


@pytest.mark.parametrize("survived", range(3, 9))
def test_a_half_deleted_branch_can_be_created_again(tmp_path, survived) -> None:
    path = tmp_path / "t"
    _aged(path).branches.create("b", 1).append(pa.table({"id": [7], "s": ["7"]}))
    location = WrappedLocation(str(path), wrap=_Interrupted)
    table = lt.Table(location, load(location))
    _Interrupted.left = survived
    with suppress(KeyboardInterrupt):
        table.branches.delete("b")
    made = lt.open_table(path).branches.create("b", 2)
    assert made.scan().to_arrow()["id"].to_pylist() == [1]
    assert [one.version for one in made.versions()] == [2]
    assert lt.check_table(path).is_ok


def test_temporary_files_of_tags_go(tmp_path) -> None:
    table = _aged(tmp_path / "t")
    table.tags.create("x", 2)
    rest = tmp_path / "t/_refs/tags/x.json.tmp01020304"
    rest.write_bytes(b"{")
    assert table.maintenance.cleanup().files == 0
    assert table.maintenance.cleanup(unverified_after=NOW).removed["temporary"].files == 1
    assert not rest.exists()
    assert [one.name for one in table.tags.list()] == ["x"]


@dataclass
class _Meddler:
    """Does something right before, or right after, the first deletion of a manifest."""

    folder: Path
    act: Callable[[], object]
    is_done: bool = False
    path: str = "_versions/"
    is_after: bool = False

    def wrap(self, store: Store) -> Store:
        outer = self

        class _Store(WrappedStore):
            def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
                is_due = verb == "delete" and path.startswith(outer.path) and not outer.is_done
                if not is_due:
                    return action()
                outer.is_done = True
                if outer.is_after:
                    done = action()
                    outer.act()
                    return done
                outer.act()
                return action()

        return _Store(store)


def test_what_another_writer_restores_meanwhile_stays(tmp_path) -> None:
    _aged(tmp_path / "t")
    meddler = _Meddler(tmp_path, lambda: lt.open_table(tmp_path / "t").restore(1))
    location = WrappedLocation(str(tmp_path / "t"), wrap=meddler.wrap)
    lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    table = lt.open_table(tmp_path / "t")
    assert table.version == 5
    assert table.scan().to_arrow()["id"].to_pylist() == [0, 1, 2]


def test_a_branch_that_begins_meanwhile_keeps_its_files(tmp_path) -> None:
    _aged(tmp_path / "t")
    meddler = _Meddler(tmp_path, lambda: lt.open_table(tmp_path / "t").branches.create("b", 2))
    location = WrappedLocation(str(tmp_path / "t"), wrap=meddler.wrap)
    lt.Table(location, load(location)).maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    found = lt.open_table(tmp_path / "t", branch="b").scan().to_arrow()["id"].to_pylist()
    assert found == [1]


def test_a_long_scan_survives_overwrite_and_cleanup(tmp_path) -> None:
    rows = pa.table({"id": range(200_000), "s": ["x" * 20] * 200_000})
    table = lt.create_table(tmp_path / "t", rows, max_rows_per_file=20_000)
    batches = table.scan(threads=1).to_batches()
    first = next(batches)
    assert list((tmp_path / "t" / LEASES).iterdir())
    other = lt.open_table(tmp_path / "t")
    other.overwrite(pa.table({"id": [1], "s": ["y"]}))
    done = other.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert [one.reason[:8] for one in done.kept_versions] == ["lease of", "latest"]
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 200_000
    assert not list((tmp_path / "t" / LEASES).iterdir())
    assert [one.version for one in other.maintenance.cleanup(older_than=NOW).removed_versions] == [
        1
    ]


def test_a_long_scan_survives_compaction_and_cleanup(tmp_path) -> None:
    rows = pa.table({"id": range(200_000), "s": ["x" * 20] * 200_000})
    table = lt.create_table(tmp_path / "t", rows, max_rows_per_file=20_000)
    batches = table.scan(threads=1).to_batches()
    first = next(batches)
    other = lt.open_table(tmp_path / "t")
    other.compact()
    assert len(other.fragments) < 10
    other.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert first.num_rows + sum(batch.num_rows for batch in batches) == 200_000
    done = other.maintenance.cleanup(older_than=NOW, unverified_after=NOW)
    assert done.removed["data"].files == 10
    assert other.count() == 200_000


def test_without_a_lease_the_scan_says_what_is_missing(tmp_path) -> None:
    rows = pa.table({"id": range(200_000), "s": ["x" * 20] * 200_000})
    table = lt.create_table(tmp_path / "t", rows, max_rows_per_file=20_000)
    batches = table.scan(threads=1, lease_seconds=0).to_batches()
    next(batches)
    assert not (tmp_path / "t" / LEASES).exists()
    other = lt.open_table(tmp_path / "t")
    other.overwrite(pa.table({"id": [1], "s": ["y"]}))
    other.maintenance.cleanup(older_than=NOW)
    with pytest.raises(lt.FileNotFoundInStoreError, match="but it is missing"):
        list(batches)


def test_a_change_feed_keeps_its_versions(tmp_path) -> None:
    table = make_base(tmp_path / "t")
    table.delete("id < 5")
    changes = table.changes(0).to_batches()
    next(changes)
    lt.open_table(tmp_path / "t").maintenance.cleanup(older_than=NOW)
    assert sum(batch.num_rows for batch in changes) > 20
    assert not list((tmp_path / "t" / LEASES).iterdir())
