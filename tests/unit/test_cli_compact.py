"""The command ``compact``: the plan, the work, and what both print."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lancetable as lt
from lancetable.cli.app import app


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    made = lt.create_table(tmp_path / "t", pa.table({"id": range(10)}))
    for number in range(1, 4):
        made.append(pa.table({"id": range(10 * number, 10 * number + 10)}))
    made.delete("id % 3 = 0")
    return made


def test_a_dry_run_shows_the_plan(table: lt.Table) -> None:
    text = run("compact", table.uri, "--dry-run", "--target-rows", "100")
    assert "4 of 4 fragments become 1, 26 rows" in text
    size = max(one.files[0].size or 0 for one in table.fragments)
    text = run("compact", table.uri, "--dry-run", "--max-bytes-per-file", str(2 * size))
    assert "4 of 4 fragments become 2, 26 rows" in text
    told: dict[str, Any] = json.loads(run("compact", table.uri, "--dry-run", "--json"))
    assert (told["fragments_removed"], told["is_dry_run"]) == (4, True)
    assert table.refresh().version == 5


def test_fragments_are_joined(table: lt.Table) -> None:
    expected = sorted(table.scan().to_arrow()["id"].to_pylist(), reverse=True)
    told: dict[str, Any] = json.loads(
        run(
            "compact",
            table.uri,
            "--sort-by",
            "id",
            "--memory-bytes",
            "64MiB",
            "-m",
            "tidy",
            "--json",
        )
    )
    assert (told["fragments_removed"], told["fragments_added"], told["version"]) == (4, 1, 6)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == expected[::-1]
    assert "nothing to compact" in run("compact", table.uri, "--deleted-share", "0.5")


def test_one_line_for_what_makes_no_sense(table: lt.Table) -> None:
    result = CliRunner().invoke(app, ["compact", table.uri, "--sort-by", "nothing"])
    assert result.exit_code == 1
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
