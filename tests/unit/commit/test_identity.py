"""A commit goes on top of the table that was read, not of another one in its place."""

import shutil
from pathlib import Path

import pytest

import lancetable as lt
from lancetable.commit.loop.newer_versions import _SEEN
from lancetable.commit.versions import load
from lancetable.errors import ConflictError, CorruptError, VersionNotFoundError
from lancetable.format.manifest.names import HINT, Scheme, manifest_path
from lancetable.operations.compact.run import DEFAULT_OPTIONS, DEFAULT_RUN, plan_for, run_plan
from lancetable.store import TableLocation
from tests.acts import ACTS, make_base, rows_from
from tests.crash.aftermath import check_whole, files_below, state

OLD = ["append", "delete rows", "update", "merge", "compact", "config k", "restore", "overwrite"]


@pytest.mark.parametrize("versions", [1, 4, 20])
@pytest.mark.parametrize("name", OLD)
def test_a_table_that_was_made_again_is_left_alone(
    tmp_path: Path, name: str, versions: int
) -> None:
    old = make_base(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    new = lt.create_table(tmp_path / "t", rows_from(500, 4))
    for number in range(versions - 1):
        new.append(rows_from(600 + number, 1))
    before, files = state(new), files_below(tmp_path)
    with pytest.raises((ConflictError, VersionNotFoundError), match="again"):
        ACTS[name].run(old, lt.CommitOptions())
    after = check_whole(TableLocation(str(tmp_path / "t")))
    assert (after.version, state(after)) == (versions, before)
    assert files_below(tmp_path) == files
    after.append(rows_from(700, 1))


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_on_an_object_store_too(versions: int) -> None:
    uri = f"memory://identity/{versions}"
    old = lt.create_table(uri, rows_from(0, 3))
    old.append(rows_from(3, 3))
    store = old._snapshot.store
    for entry in list(store.list("")):
        store.delete(entry.path)
    new = lt.create_table(uri, rows_from(500, 4))
    for number in range(versions - 1):
        new.append(rows_from(600 + number, 1))
    with pytest.raises((ConflictError, VersionNotFoundError), match="again"):
        old.append(rows_from(10, 1))
    again = lt.open_table(uri)
    assert (again.version, state(again)) == (versions, state(new))


def test_a_table_that_is_made_again_while_rows_are_rewritten(tmp_path: Path) -> None:
    old = make_base(tmp_path / "t")
    shutil.copytree(tmp_path / "t", tmp_path / "aside")
    plan = plan_for(old._snapshot, None, DEFAULT_OPTIONS, DEFAULT_RUN)
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "aside" / "data", tmp_path / "t" / "data")
    new = make_base(tmp_path / "other")
    shutil.copytree(tmp_path / "other", tmp_path / "t", dirs_exist_ok=True)
    with pytest.raises(ConflictError, match="created again"):
        run_plan(plan)
    assert state(lt.open_table(tmp_path / "t")) == state(new)


def test_a_version_that_was_cleaned_away_is_no_other_table(tmp_path: Path) -> None:
    make_base(tmp_path / "t")
    stale = lt.open_table(tmp_path / "t")
    for number in range(3):
        lt.open_table(tmp_path / "t").append(rows_from(600 + number, 1).select(["id", "x"]))
    (tmp_path / "t" / stale._snapshot.manifest_path).unlink()
    stale.append(rows_from(700, 1).select(["id", "x"]))
    assert check_whole(TableLocation(str(tmp_path / "t"))).count() == 34


def rename(folder: Path, version: int, scheme: Scheme) -> None:
    other = Scheme.V1 if scheme is Scheme.V2 else Scheme.V2
    (folder / manifest_path(version, other)).rename(folder / manifest_path(version, scheme))


@pytest.mark.parametrize(("version", "is_known"), [(1, False), (3, False), (5, False), (5, True)])
def test_two_naming_schemes_are_refused_before_anything_is_written(
    tmp_path: Path, version: int, is_known: bool
) -> None:
    table = make_base(tmp_path)
    table.append(rows_from(600, 1).select(["id", "x"]))
    handle = lt.open_table(tmp_path, version=4)
    rename(tmp_path, version, Scheme.V1)
    (tmp_path / HINT).write_bytes(b'{"version":4}'.ljust(40))
    if not is_known:
        # As another process, which has not written to the table before.
        _SEEN.clear()
    files = files_below(tmp_path)
    with pytest.raises(CorruptError, match="two naming schemes"):
        handle.delete("id = 3")
    assert files_below(tmp_path) == files


def test_a_handle_follows_manifests_that_were_renamed(tmp_path: Path) -> None:
    stale = make_base(tmp_path)
    for version in range(1, 5):
        rename(tmp_path, version, Scheme.V1)
    stale.append(rows_from(600, 1).select(["id", "x"]))
    location = TableLocation(str(tmp_path))
    assert load(location).manifest_path == manifest_path(5, Scheme.V1)
    assert check_whole(location).count() == 31
