"""The command line: what it prints, for people and for programs, and how it fails."""

import json
import math
import os
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lancetable
from lancetable import cli
from lancetable.cli import show
from lancetable.cli.app import app
from lancetable.cli.options import split_columns
from lancetable.format.encoding.kernels.compiled import LIBRARY

COMMANDS = ["info", "schema", "head", "versions", "fragments", "files"]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def run_json(*arguments: str):
    return json.loads(run(*arguments, "--json"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, None),
        ("id", ["id"]),
        ("id, v.x ,", ["id", "v.x"]),
        ("`a,b`,c", ["`a,b`", "c"]),
    ],
)
def test_columns_are_split_at_commas_outside_backticks(text, names) -> None:
    assert split_columns(text) == names


def test_json_has_a_word_for_every_value() -> None:
    value = {
        "bytes": b"\x00\xff",
        "when": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "day": date(2026, 3, 1),
        "clock": time(12, 30),
        "span": timedelta(minutes=1),
        "number": Decimal("1.50"),
        "nan": math.nan,
        "far": -math.inf,
        "pairs": [("a", 1), ("b", None)],
        1: True,
    }
    assert json.loads(json.dumps(show.plain(value), allow_nan=False)) == {
        "bytes": "AP8=",
        "when": "2026-03-01T12:00:00+00:00",
        "day": "2026-03-01",
        "clock": "12:30:00",
        "span": 60.0,
        "number": "1.50",
        "nan": "nan",
        "far": "-inf",
        "pairs": [["a", 1], ["b", None]],
        "1": True,
    }


def test_long_cells_are_cut() -> None:
    assert show.cell("x" * 1000) == "x" * (show.WIDEST_CELL - 1) + "…"
    assert show.cell(bytes(100)) == "00" * 16 + "…"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (3 << 40, "3.0 TiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_sizes_are_said_in_units(count, text) -> None:
    assert show.size(count) == text


def test_version() -> None:
    assert run("--version").strip() == f"lancetable {lancetable.__version__}"


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_overview_is_what_typer_says(option, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["lancetable", option])
    with pytest.raises(SystemExit):
        app(prog_name="lancetable")
    worded = capsys.readouterr().out
    cli.main()
    assert capsys.readouterr().out == worded


def test_a_narrow_terminal_gets_shorter_lines(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "argv", ["lancetable", "--help"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_for_people(command, history) -> None:
    assert run(command, history).strip()


@pytest.mark.parametrize("wanted", ["numpy", "c"])
def test_info_tells_which_kernels_run(wanted) -> None:
    if wanted == "c" and LIBRARY is None:
        pytest.skip("the compiled kernels are not there")
    program = "from lancetable.cli import main; main()"
    found = subprocess.run(
        [sys.executable, "-c", program, "info", "--kernels"],
        env={**os.environ, "LANCETABLE_KERNELS": wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(f"kernels: {wanted}")


def test_info(history) -> None:
    found = run_json("info", history)
    assert found["version"] == 6
    assert found["rows"] == 136
    assert found["deleted"] == 20
    assert found["columns"] == 3
    assert found["fragments"] == 4
    assert found["files"] == 6
    assert found["bytes"] == 7106
    assert found["tags"] == {"t2": 2}
    assert found["branches"] == []
    assert found["indices"] == []


def test_schema(history) -> None:
    fields = run_json("schema", history)["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [
        ("id", "int64"),
        ("v", "double"),
        ("w", "double"),
    ]


def test_head_takes_columns_condition_and_limit(history) -> None:
    rows = run_json("head", history, "-n", "2", "-c", "w,id", "-w", "v > 50 and id % 2 = 0")
    assert rows == [{"w": 104.0, "id": 52}, {"w": 108.0, "id": 54}]
    assert run_json("head", history, "-n", "0") == []


def test_head_of_older_versions(history) -> None:
    assert len(run_json("head", history, "--version", "1", "-n", "1000")) == 100
    assert len(run_json("head", history, "--tag", "t2", "-n", "1000")) == 150
    assert len(run_json("head", history, "--as-of", "2999-01-01", "-n", "1000")) == 136


def test_versions(history) -> None:
    rows = run_json("versions", history)
    assert [row["version"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row["tags"] for row in rows] == [[], ["t2"], [], [], [], []]
    assert all(row["timestamp"].startswith("2026-11-15T22:30:48") for row in rows)
    assert all((Path(history) / row["manifest"]).stat().st_size == row["bytes"] for row in rows)


def test_fragments_add_up(history) -> None:
    rows = run_json("fragments", history)
    assert sum(row["rows"] for row in rows) == 136
    assert sum(row["deleted"] for row in rows) == 20


def test_files_are_where_they_are_said_to_be(history) -> None:
    rows = run_json("files", history)
    assert [row["kind"] for row in rows].count("data") == 6
    assert [row["kind"] for row in rows].count("deletion") == 3
    for row in rows:
        found = (Path(history) / row["path"]).stat().st_size
        assert row["bytes"] in (None, found)


def test_pages(history) -> None:
    path = next((Path(history) / "data").iterdir())
    found = run_json("pages", str(path))
    assert found["rows"] == sum(page["rows"] for page in found["pages"] if page["column"] == 0)
    assert all(page["encoding"] for page in found["pages"])
    assert run("pages", str(path)).strip()


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "no/such/table"],
        ["info", "{table}", "--version", "99"],
        ["info", "{table}", "--tag", "absent"],
        ["info", "{table}", "--branch", "absent"],
        ["info", "{table}", "--as-of", "yesterday"],
        ["info", "{table}", "--as-of", "1999-01-01"],
        ["head", "{table}", "--columns", "absent"],
        ["head", "{table}", "--where", "v >"],
        ["pages", "no/such/file.lance"],
        ["pages", "{table}/_versions/latest_version_hint.json"],
    ],
    ids=" ".join,
)
def test_an_error_is_one_line(arguments, history) -> None:
    result = CliRunner().invoke(app, [argument.format(table=history) for argument in arguments])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("options", [["--json"], []], ids=["json", "people"])
def test_a_reader_that_leaves_early_causes_no_traceback(options, history) -> None:
    program = "from lancetable.cli import main; main()"
    arguments = ["head", history, "-n", "136", *options]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
