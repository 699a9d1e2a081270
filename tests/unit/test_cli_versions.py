"""The commands for versions: tags, branches, clones, going back."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lancetable as lt
from lancetable.cli.app import app


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result.output


def run_json(*arguments: object):
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    table = lt.create_table(tmp_path / "t", pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]}))
    table.append(pa.table({"a": [4], "s": ["w"]}), commit="one more")
    return table.uri


def test_tags(uri: str) -> None:
    made = run_json("tag", "create", uri, "v1", "--version", 1, "--note", "who=me")
    assert (made[0]["version"], made[0]["metadata"]) == (1, {"who": "me"})
    moved = run_json("tag", "move", uri, "v1")
    assert (moved[0]["version"], moved[0]["was"]) == (2, 1)
    assert "v1" in run("tag", "list", uri)
    assert "pass --yes" in run("tag", "delete", uri, "v1", code=1)
    assert [tag["tag"] for tag in run_json("tag", "list", uri)] == ["v1"]
    assert run_json("tag", "delete", uri, "v1", "--yes")[0]["version"] == 2
    assert run_json("tag", "list", uri) == []
    assert "error: there is no tag 'v1'" in run("tag", "delete", uri, "v1", "--yes", code=1)
    assert "key=value" in run("tag", "create", uri, "v2", "--note", "nothing", code=1)


def test_branches(uri: str) -> None:
    made = run_json("branch", "create", uri, "dev", "--version", 1)
    assert (made[0]["parent"], made[0]["parent_version"]) == ("main", 1)
    assert run_json("info", uri, "--branch", "dev")["rows"] == 3
    assert "dev" in run("branch", "list", uri)
    assert "pass --yes" in run("branch", "delete", uri, "dev", code=1)
    assert run_json("branch", "delete", uri, "dev", "-y")[0]["branch"] == "dev"
    assert run_json("branch", "list", uri) == []


def test_clones_and_going_back(uri: str, tmp_path: Path) -> None:
    shallow = run_json("clone", uri, tmp_path / "shallow", "--version", 1)
    assert (shallow["rows"], shallow["version"]) == (3, 1)
    assert "cloned" in run("clone", uri, tmp_path / "deep", "--deep")
    assert lt.open_table(tmp_path / "deep").count() == 4
    assert "pass --yes" in run("restore", uri, 1, code=1)
    assert run_json("restore", uri, 1, "--yes", "-m", "back")["rows"] == 3
    assert lt.open_table(uri).count() == 3
    assert "version 9" in run("restore", uri, 9, "--yes", code=1)


def test_a_history(uri: str) -> None:
    run("tag", "create", uri, "v2")
    newest, oldest = run_json("history", uri)
    assert (newest["operation"], newest["rows_added"], newest["message"]) == (
        "Append",
        1,
        "one more",
    )
    assert (newest["tags"], oldest["version"]) == (["v2"], 1)
    assert len(run_json("history", uri, "--limit", 1)) == 1
    assert "one more" in run("history", uri)


def test_publishing_a_branch(uri: str) -> None:
    run("branch", "create", uri, "dev")
    lt.open_table(uri, branch="dev").append(pa.table({"a": [5], "s": ["v"]}))
    assert "pass --yes" in run("branch", "fast-forward", uri, "dev", code=1)
    done = run_json("branch", "fast-forward", uri, "dev", "--yes", "-m", "published")
    assert (done[0]["version"], done[0]["added"], done[0]["files"]) == (3, 1, 1)
    assert lt.open_table(uri).history()[0].message == "published"
    assert "latest version is 3" in run("branch", "fast-forward", uri, "dev", "--yes", code=1)
    run("branch", "create", uri, "next")
    lt.open_table(uri, branch="next").delete("a = 1")
    lt.open_table(uri).append(pa.table({"a": [6], "s": ["u"]}))
    picked = run_json("branch", "cherry-pick", uri, "next", 4, "--yes")
    assert picked == [{"branch": "next", "branch_version": 4, "version": 5}]
    assert "before, as version 5" in run("branch", "cherry-pick", uri, "next", "--yes", code=1)
    assert lt.open_table(uri).count() == 5


def test_how_versions_differ(uri: str) -> None:
    table = lt.open_table(uri)
    table.tags.create("old", 1)
    table.delete("a in (1, 2)")
    table.columns.add({"b": "a * 2"})
    found = run_json("diff", uri, "old")
    assert (found["from"]["version"], found["to"]["version"]) == (1, 4)
    assert found["rows"] == {"before": 3, "after": 2}
    assert (found["rows_new"], found["rows_gone"]) == (1, 2)
    assert found["fragments_added"] == [1]
    assert found["fragments_changed"] == [0]
    assert [one["after"] for one in found["columns"]] == ["b int64"]
    assert {one["kind"] for one in found["files"]} == {"data", "deletion"}
    assert "no difference" in run("diff", uri, 4)
    table.branches.create("dev").append(table.head(1))
    text = run("diff", uri, "main@4", "dev")
    assert "rows_new" in text
    assert run_json("diff", uri, 4, "dev@5")["rows_new"] == 1
    assert "no branch 'nothing'" in run("diff", uri, "nothing", code=1)
