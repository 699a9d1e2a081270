"""The commands that look after a table."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lancetable as lt
from lancetable.cli.app import app
from lancetable.cli.upkeep import age
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


def test_cleanup_only_shows_unless_told_to(path: Path) -> None:
    tried = run_json("cleanup", path, "--older-than", "0")
    assert (tried["dry_run"], [one["version"] for one in tried["removed_versions"]]) == (True, [1])
    assert "would go: 1 versions" in run("cleanup", path, "--older-than", "0")
    assert "pass --yes" in run("cleanup", path, "--older-than", "0", "--execute", code=1)
    assert len(lt.open_table(path).versions()) == 3
    done = run_json("cleanup", path, "--older-than", "0", "--execute", "--yes")
    assert (done["dry_run"], done["files"]) == (False, tried["files"])
    assert done["removed"] == tried["removed"]
    assert len(lt.open_table(path).versions()) == 2
    assert "would go: 0 versions" in run("cleanup", path)
    assert "is no age" in run("cleanup", path, "--older-than", "soon", code=1)


def test_check_and_repair(path: Path) -> None:
    assert run_json("check", path, "--level", "data")["ok"]
    assert "0 problems in 3 versions" in run("check", path)
    assert "is sound" in run("repair", path)
    DAMAGES["missing data file"].act(path, lt.open_table(path))
    found = run_json("check", path, code=1)
    assert [one["kind"] for one in found["problems"]] == ["data"]
    assert "cannot be read in version 1 to 3" in run("check", path, code=1)
    plan = run_json("repair", path)
    assert (plan["done"], plan["version"], plan["lost_rows"]) == (False, 4, 4)
    assert "would lose" in run("repair", path)
    assert "pass --yes" in run("repair", path, "--execute", code=1)
    assert run_json("repair", path, "--execute", "--yes")["done"]
    assert lt.open_table(path).count() == 6
    assert run_json("check", path, "--latest")["ok"]


def test_a_table_that_does_not_open_is_repaired(path: Path) -> None:
    DAMAGES["truncated latest manifest"].act(path, lt.open_table(path))
    run("info", path, code=1)
    assert "a repair goes back to version 2" in run("check", path, code=1)
    assert "repaired" in run("repair", path, "--execute", "-y")
    assert run_json("info", path)["rows"] == 6


def test_ages() -> None:
    assert age("14d") == age("2w") == age("14") == timedelta(days=14)
    assert age("90 m") == timedelta(minutes=90)
    assert age("30s") + age("1h") == timedelta(hours=1, seconds=30)
    for text in ("", "d", "-1d", "1y", "9" * 30):
        with pytest.raises(lt.InputError):
            age(text)
