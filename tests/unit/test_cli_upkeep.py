"""The commands that look after a table."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lancetable as lt
from lancetable.cli.app import app
from lancetable.options import duration
from tests.damage import DAMAGES, make_table


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result.output


def run_json(*arguments: object, code: int = 0):
    return json.loads(run(*arguments, "--json", code=code))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make_table(tmp_path / "t")
    return tmp_path / "t"


def test_changes(path: Path) -> None:
    found = run_json("changes", path, 1)
    assert [(row["_commit_version"], row["_change_type"], row["id"]) for row in found] == [
        *((2, "delete", id_) for id_ in (5, 6)),
        *((3, "insert", id_) for id_ in range(8, 12)),
    ]
    assert len(run_json("changes", path, 0, 1, "--limit", 3, "-c", "id", "--row-ids")) == 3
    assert run_json("changes", path, 0, "--counts") == [
        {"version": 1, "insert": 8, "delete": 0},
        {"version": 2, "insert": 0, "delete": 2},
        {"version": 3, "insert": 4, "delete": 0},
    ]
    assert "update" not in run("changes", path, 1)
    assert "error: changes go from" in run("changes", path, 3, 1, code=1)


def test_cleanup_removes_unless_it_is_a_dry_run(path: Path) -> None:
    tried = run_json("cleanup", path, "--older-than", "0", "--dry-run")
    assert tried["is_dry_run"]
    assert [one["version"] for one in tried["removed_versions"]] == [1]
    shown = run("cleanup", path, "--older-than", "0", "--dry-run")
    assert "would be removed: 1 versions" in shown
    assert "pass --yes" in run("cleanup", path, "--older-than", "0", code=1)
    assert len(lt.open_table(path).versions()) == 3
    done = run_json("cleanup", path, "--older-than", "0", "--yes")
    assert (done["is_dry_run"], done["files"]) == (False, tried["files"])
    assert done["removed"] == tried["removed"]
    assert len(lt.open_table(path).versions()) == 2
    assert "would be removed: 0 versions" in run("cleanup", path)
    assert "is not a duration" in run("cleanup", path, "--older-than", "soon", code=1)


def test_check_and_repair(path: Path) -> None:
    assert run_json("check", path, "--level", "data")["is_ok"]
    assert "0 problems in 3 versions" in run("check", path)
    assert "is sound" in run("repair", path)
    DAMAGES["missing data file"].act(path, lt.open_table(path))
    found = run_json("check", path, code=1)
    assert [one["kind"] for one in found["problems"]] == ["data"]
    assert "cannot be read in version 1 to 3" in run("check", path, code=1)
    plan = run_json("repair", path, "--dry-run")
    assert (plan["is_done"], plan["version"], plan["lost_rows"]) == (False, 4, 4)
    assert "would lose" in run("repair", path, "--dry-run")
    assert "pass --yes" in run("repair", path, code=1)
    assert run_json("repair", path, "--yes")["is_done"]
    assert lt.open_table(path).count() == 6
    assert run_json("check", path, "--no-all-versions")["is_ok"]


def test_a_table_that_does_not_open_is_repaired(path: Path) -> None:
    DAMAGES["truncated latest manifest"].act(path, lt.open_table(path))
    run("info", path, code=1)
    assert "a repair goes back to version 2" in run("check", path, code=1)
    assert "repaired" in run("repair", path, "-y")
    assert run_json("info", path)["rows"] == 6


def test_ages() -> None:
    assert duration("14d") == duration("2w") == duration("14") == timedelta(days=14)
    assert duration("90 m") == timedelta(minutes=90)
    assert duration("30s") + duration("1h") == timedelta(hours=1, seconds=30)
    for text in ("", "d", "-1d", "1y", "9" * 30):
        with pytest.raises(lt.InputError):
            duration(text)
