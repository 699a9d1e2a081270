"""The commands ``index``: list, show, create, optimize, drop; and how options reach them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lancetable as lt
from lancetable.cli.app import app


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["index", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["index", *arguments])
    assert result.exit_code == 1
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    return result.output


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    data = {"id": range(100), "tag": [f"t{i % 5}" for i in range(100)]}
    return lt.create_table(tmp_path / "t", pa.table(data), max_rows_per_file=40)


def test_the_life_of_an_index(table: lt.Table) -> None:
    uri = table.uri
    assert "0 indices: none" in run("list", uri)
    made: dict[str, Any] = json.loads(run("create", uri, "id", "btree", "--json"))
    assert (made["name"], made["segments"], made["rows"]) == ("id_idx", 1, 100)
    run("create", uri, "tag", "bitmap", "--name", "tags", "--fragments", "0,1", "-m", "a note")
    assert table.refresh().history(limit=1)[0].message == "a note"
    (ids, tags) = json.loads(run("list", uri, "--json"))
    assert (ids["kind"], ids["columns"], ids["rows_uncovered"]) == ("btree", ["id"], 0)
    assert (tags["name"], tags["fragments_covered"], tags["fragments"]) == ("tags", 2, 3)
    assert tags["rows_uncovered"] == 20
    assert "tags" in run("list", uri)
    plan = run("optimize", uri, "--dry-run", "--mode", "append")
    assert "tags: 1 uncovered fragment with 20 rows get a segment of their own" in plan
    assert "id_idx: nothing to do" in plan
    done: dict[str, Any] = json.loads(run("optimize", uri, "tags", "--mode", "append", "--json"))
    assert (done["segments_added"], done["rows"], done["is_dry_run"]) == (1, 20, False)
    told: dict[str, Any] = json.loads(run("show", uri, "tags", "--json"))
    assert [one["fragments_covered"] for one in told["segments"]] == [[0, 1], [2]]
    assert told["segments"][0]["uuid"] in run("show", uri, "tags")
    assert "nothing to optimize" in run("optimize", uri, "tags", "--mode", "append")
    assert "index dropped" in run("drop", uri, "tags", "--yes")
    assert list(table.refresh().indices) == ["id_idx"]


def test_parameters_of_a_kind(table: lt.Table) -> None:
    run("create", table.uri, "id", "zone_map", "--set", "rows_per_zone=7", "--no-train")
    assert table.refresh().indices["id_idx"].rows_uncovered == 100
    documents = pa.array(['{"a": 1}'], pa.json_())
    other = lt.create_table(table.uri + "2", pa.table({"d": documents}))
    run("create", other.uri, "d", "json", "--set", "path=a", "--set", "target=bitmap")
    assert other.refresh().indices["d_idx"].kind == "json"
    assert "path is ''" in fails("create", other.uri, "d", "json")
    assert "--set 'x' is not valid" in fails("create", table.uri, "id", "btree", "--set", "x")
    assert "no option 'x'" in fails("create", table.uri, "id", "btree", "--set", "x=1")


def test_one_line_for_what_is_wrong(table: lt.Table) -> None:
    uri = table.uri
    assert "is not a kind of index" in fails("create", uri, "id", "tree")
    assert "nothing" in fails("create", uri, "nothing", "btree")
    assert "there is no index 'x'" in fails("drop", uri, "x", "--yes")
    assert "there is no index 'x'" in fails("optimize", uri, "x")
    assert "'x'" in fails("show", uri, "x")


def test_coverage_is_shown(table: lt.Table) -> None:
    table.indices.create("id", "btree", fragments=[0, 1])
    line = "btree id_idx: 2 of 3 fragments, 20 rows uncovered"
    assert line in repr(table)
    assert line in table._repr_html_()
    found = json.loads(CliRunner().invoke(app, ["info", table.uri, "--json"]).stdout)
    assert found["indices"] == [line]
    assert table.indices["id_idx"].summary == line
