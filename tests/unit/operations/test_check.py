"""Check names every kind of damage; repair makes a version with exactly the loss it announced."""

import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import lancetable as lt
from lancetable.commit.versions import load
from lancetable.errors import ShortageError, StoreError
from lancetable.operations.check.journal import Journal
from lancetable.operations.check.model import Level
from lancetable.operations.check.repair import plan_repair
from lancetable.operations.check.run import check
from lancetable.operations.check.version import LookTask
from lancetable.store import TableLocation
from lancetable.store.wrap import WrappedStore
from tests.acts import make_base
from tests.crash.aftermath import files_below
from tests.damage import DAMAGES, EVERY, data_file, flip, make_table
from tests.stores import WrappedLocation

_T = TypeVar("_T")


def _ids(path: Path) -> list[int]:
    ids: list[int] = lt.open_table(path).scan(["id"]).to_arrow()["id"].to_pylist()
    return sorted(ids)


@pytest.mark.parametrize("level", ["metadata", "files", "data"])
@pytest.mark.parametrize("stable", [False, True])
def test_a_sound_table_is_found_sound(tmp_path, level, stable) -> None:
    make_table(tmp_path / "t", stable=stable)
    found = lt.open_table(tmp_path / "t").maintenance.check(level=level)
    assert found.problems == ()
    assert found.is_ok
    assert (found.latest, found.versions) == (3, 3)
    assert found.files == (0 if level == "metadata" else 4)
    plan = lt.repair_table(tmp_path / "t", level)
    assert not plan.is_needed
    assert plan.execute().version == 3


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_and_repaired(tmp_path, name) -> None:
    damage = DAMAGES[name]
    path = tmp_path / "t"
    table = make_table(path)
    damage.act(path, table)
    found = lt.check_table(path, level=damage.level)
    (problem,) = [one for one in found.problems if one.kind == damage.kind][:1]
    assert damage.file in problem.path
    assert problem.message
    assert problem.consequence
    before = {file: (path / file).read_bytes() for file in files_below(path)}
    if not damage.opens:
        with pytest.raises(lt.CorruptError, match="or run repair_table"):
            lt.open_table(path)
    plan = lt.repair_table(path, damage.level)
    assert {one.kind for one in plan.losses} == ({damage.loss} if damage.loss else set())
    assert {file: (path / file).read_bytes() for file in files_below(path)} == before
    done = plan.execute()
    assert {file: (path / file).read_bytes() for file in before} == before, "a file was touched"
    assert _ids(path) == sorted(damage.left)
    if damage.loss == "rows":
        assert plan.lost_rows == len(EVERY) - len(damage.left)
    repaired = lt.open_table(path)
    assert repaired.version == done.version == plan.version if plan.is_needed else True
    left = lt.check_table(path, level=damage.level, all_versions=False).problems
    assert not [one for one in left if one.kind in {"manifest", "data", "deletion", "row ids"}]
    repaired.append(pa.table({"id": [99], "s": ["new"]}))
    repaired.delete("id = 8")
    assert _ids(path) == sorted({*damage.left, 99} - {8})


@pytest.mark.parametrize("name", DAMAGES)
def test_workers_find_what_one_finds(tmp_path, name) -> None:
    """What workers look at is sent to them, and what they found is sent back."""
    damage = DAMAGES[name]
    path = tmp_path / "t"
    damage.act(path, make_table(path))
    level = Level.named(damage.level)
    runner = _Sent([])
    found = check(TableLocation(str(path)), level=level, runner=runner)
    assert found == lt.check_table(path, level=damage.level)
    assert (len(runner.tasks) > 0) == (level >= Level.FILES)
    looked = [file.path for task in runner.tasks for file in task.files]
    assert len(set(looked)) == len(looked), "a file was looked at twice"
    plan = plan_repair(TableLocation(str(path)), level=level, runner=runner)
    assert plan.losses == lt.repair_table(path, damage.level).losses


@dataclass
class _Sent:
    """Runs steps on copies, as those do that are elsewhere."""

    tasks: list[LookTask]

    def map(self, step, tasks):
        for task in tasks:
            self.tasks.append(task)
            yield pickle.loads(pickle.dumps(step(pickle.loads(pickle.dumps(task)))))


def test_deleted_rows_come_back_only_when_asked_for(tmp_path) -> None:
    path = tmp_path / "t"
    DAMAGES["missing deletion file"].act(path, make_table(path))
    plan = lt.repair_table(path, revive=True)
    assert [(one.kind, one.rows) for one in plan.losses] == [("deletions", 2)]
    plan.execute()
    assert _ids(path) == list(range(12))


def test_several_kinds_of_damage_at_once(tmp_path) -> None:
    path = tmp_path / "t"
    table = make_table(path)
    for name in ("missing data file", "truncated deletion file", "flipped transaction file"):
        DAMAGES[name].act(path, table)
    found = table.maintenance.check()
    assert {one.kind for one in found.problems} == {"data", "deletion", "transaction"}
    (data,) = [one for one in found.problems if one.kind == "data"]
    assert (data.versions, data.fragments) == ((1, 2, 3), (0,))
    assert "version 1 to 3, the latest among them," in data.consequence
    plan = table.maintenance.repair()
    assert plan.lost_rows == 6
    assert "all 4 rows of fragment 0" in plan.explain()
    plan.execute()
    assert _ids(path) == [8, 9, 10, 11]


def test_several_versions_may_be_unreadable(tmp_path) -> None:
    path = tmp_path / "t"
    table = make_table(path)
    for info in table.versions()[1:]:
        flip(path / info.path, -1)
    plan = lt.repair_table(path)
    assert (plan.base.version, plan.version, len(plan.losses)) == (1, 4, 2)
    plan.execute()
    assert _ids(path) == list(range(8))
    flip(path / table.versions(detail=False)[0].path, -1)
    flip(path / lt.open_table(path)._snapshot.manifest_path, -1)
    with pytest.raises(lt.CorruptError, match="no version of the table can be opened"):
        lt.repair_table(path)


def test_after_a_repair_a_cleanup_removes_what_is_broken(tmp_path) -> None:
    from datetime import timedelta

    path = tmp_path / "t"
    table = make_table(path)
    DAMAGES["truncated latest manifest"].act(path, table)
    lt.repair_table(path).execute()
    repaired = lt.open_table(path)
    with pytest.raises(lt.CorruptError, match="repair the table first"):
        repaired.maintenance.cleanup(older_than=timedelta(0))
    done = repaired.maintenance.cleanup(older_than=timedelta(0), remove_damaged=True)
    assert 3 in {one.version for one in done.removed_versions}
    assert lt.check_table(path).is_ok


def test_a_plan_is_void_when_the_table_went_on(tmp_path) -> None:
    path = tmp_path / "t"
    table = make_table(path)
    data_file(path, table, 0).unlink()
    plan = table.maintenance.repair()
    table.append(pa.table({"id": [77], "s": ["new"]}))
    with pytest.raises(lt.ConflictError, match="plan it again"):
        plan.execute()
    table.maintenance.repair().execute()
    assert 77 in _ids(path)


def test_only_the_latest_version_can_be_looked_at(tmp_path) -> None:
    path = tmp_path / "t"
    table = make_table(path)
    DAMAGES["truncated older manifest"].act(path, table)
    assert table.maintenance.check(level="files", all_versions=False).is_ok
    assert not table.maintenance.check(level="metadata").is_ok


def test_a_branch_is_looked_at_by_itself(tmp_path) -> None:
    path = tmp_path / "t"
    branch = make_table(path).branches.create("dev")
    branch.append(pa.table({"id": [50], "s": ["x"]}))
    next((path / "tree/dev/data").iterdir()).unlink()
    assert lt.open_table(path).maintenance.check().is_ok
    (problem,) = lt.open_table(path, branch="dev").maintenance.check().problems
    assert (problem.kind, problem.branch) == ("data", "dev")
    lt.repair_table(path, branch="dev").execute()
    ids = lt.open_table(path, branch="dev").scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == sorted(EVERY)


def test_a_stopped_check_goes_on_from_its_journal(tmp_path) -> None:
    path, journal = tmp_path / "t", str(tmp_path / "journal.json")
    table = make_table(path)
    DAMAGES["spoilt pages of a data file"].act(path, table)
    first = table.maintenance.check(level="data", journal=journal)
    kept = Journal.open(journal, 2)
    assert len(kept.found) == 3
    for file in (path / "data").iterdir():
        file.unlink()  # what the journal knows is not looked at again
    assert table.maintenance.check(level="data", journal=journal).problems == first.problems
    assert len(table.maintenance.check(level="files", journal=journal).problems) == 3
    Path(journal).write_text("[]")
    with pytest.raises(lt.InputError, match="not a journal"):
        table.maintenance.check(level="data", journal=journal)


def test_wrong_questions_are_refused(tmp_path) -> None:
    table = make_base(tmp_path / "t")
    with pytest.raises(lt.InputError, match="metadata, files, data"):
        table.maintenance.check(level="everything")  # type: ignore[arg-type]
    with pytest.raises(lt.TableNotFoundError):
        lt.check_table(tmp_path / "nowhere")
    with pytest.raises(lt.TableNotFoundError):
        lt.repair_table(tmp_path / "nowhere")
    with pytest.raises(lt.TableNotFoundError):
        lt.check_table(tmp_path / "t", branch="nope")


ELSEWHERE = {"multi_base.lance", "shallow_clone.lance"}
"""Tables with files in folders of the machine that wrote them."""


@pytest.mark.slow
def test_the_golden_tables_are_sound(golden) -> None:
    tables = {one.parent for one in golden.rglob("_versions") if "tree" not in one.parts}
    assert len(tables) > 100
    found = {
        table.name: {one.kind for one in lt.check_table(table, level="data").problems}
        for table in tables
        if table.name not in ELSEWHERE
    }
    assert {name: kinds for name, kinds in found.items() if kinds} == {
        "legacy_0_25_2_rowids.lance": {"deletion"},  # as that release wrote it
        "by-0.20.0.lance": {"fragment ids"},
    }


def test_progress_is_told(tmp_path) -> None:
    seen: list[tuple[int, int | None]] = []
    make_table(tmp_path / "t").maintenance.check(
        progress=lambda now: seen.append((now.done, now.total))
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


class _Passing(WrappedStore):
    """Fails once, at a call whose number is given."""

    left = -1
    error: Exception = StoreError("")

    def call(self, verb: str, path: str, action: Callable[[], _T]) -> _T:
        _Passing.left -= 1
        if _Passing.left == 0:
            raise _Passing.error
        return action()


@pytest.mark.parametrize(
    "error",
    [
        StoreError("input/output error"),
        StoreError("403", is_certain=True),
        ShortageError("too many open files"),
        MemoryError("no room"),
    ],
    ids=["store", "refused", "shortage", "memory"],
)
def test_a_repair_takes_no_passing_error_for_damage(tmp_path, monkeypatch, error) -> None:
    make_table(tmp_path / "t", stable=True)
    monkeypatch.setattr(_Passing, "error", error)
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Passing)
    outcomes = set()
    for number in range(1, 500):
        monkeypatch.setattr(_Passing, "left", number)
        try:
            plan = plan_repair(location, level=Level.DATA)
        except type(error):
            outcomes.add("raised")
            continue
        assert not plan.is_needed, number
        assert plan.base.version == 3
        if plan.unchecked:
            outcomes.add("unchecked")
            assert "not checked, and therefore kept" in plan.explain()
        elif _Passing.left > 0:
            break
    assert outcomes == {"raised", "unchecked"}


def test_a_check_tells_a_passing_error_from_damage(tmp_path, monkeypatch) -> None:
    make_table(tmp_path / "t", stable=True)
    monkeypatch.setattr(_Passing, "error", StoreError("input/output error"))
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Passing)
    for number in range(1, 500):
        monkeypatch.setattr(_Passing, "left", number)
        try:
            found = check(location, level=Level.DATA)
        except StoreError:
            continue
        assert not [one for one in found.problems if one.is_damage], number
        if _Passing.left > 0:
            return


def test_a_cleanup_removes_no_version_that_could_not_be_read(tmp_path, monkeypatch) -> None:
    make_table(tmp_path / "t")
    monkeypatch.setattr(_Passing, "error", StoreError("input/output error"))
    location = WrappedLocation(str(tmp_path / "t"), wrap=_Passing)
    for number in range(1, 60):
        monkeypatch.setattr(_Passing, "left", -1)
        table = lt.Table(location, load(location))
        monkeypatch.setattr(_Passing, "left", number)
        with suppress(StoreError):
            done = table.maintenance.cleanup(dry_run=True, remove_damaged=True)
            assert not done.removed_versions
            assert not done.files
