"""Names, values and messages of a stranger reach the terminal as text only."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lancetable as lt
from lancetable.cli.app import app
from lancetable.errors import MOST_CHARACTERS, CorruptError, InputError, StoreError, printable

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202etxt\x7f\x00"
ACTED_UPON = set("\x1b\x07\x9b\u202e\x7f\x00\r")


@pytest.fixture
def table(tmp_path: Path) -> lt.Table:
    field = pa.field(f"n{EVIL}", pa.string(), metadata={"m": EVIL})
    rows = pa.table([pa.array([EVIL, "plain\ttext"])], schema=pa.schema([field]))
    made = lt.create_table(tmp_path / "t", rows, commit=f"first{EVIL}")
    made.config.update({f"key{EVIL}": EVIL})
    return made


@pytest.mark.parametrize(
    "command",
    ["info", "schema", "head", "history", "versions", "fragments", "files", "pages", "changes"],
)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_no_command_prints_control_characters(
    table: lt.Table, command: str, flags: list[str]
) -> None:
    arguments = [command, table.uri, *flags]
    if command == "pages":
        (data,) = (Path(table.uri) / "data").glob("*.lance")
        arguments[1] = str(data)
    if command == "changes":
        arguments.insert(2, "1")
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert not ACTED_UPON.intersection(done.output)
    if flags:
        json.loads(done.stdout)


def test_json_keeps_the_values(table: lt.Table) -> None:
    done = CliRunner().invoke(app, ["head", table.uri, "--json"])
    assert [row[f"n{EVIL}"] for row in json.loads(done.stdout)] == [EVIL, "plain\ttext"]


def test_no_repr_has_control_characters(table: lt.Table) -> None:
    table.tags.create("one", 1)
    shown = [table, table.scan(), table.history(), table.tags, table.branches, table.bases]
    for one in shown:
        assert not ACTED_UPON.intersection(repr(one)), type(one)
    assert "\x1b" not in str(table)


def test_messages_have_neither_control_characters_nor_megabytes(table: lt.Table) -> None:
    with pytest.raises(InputError) as caught:
        table.scan(columns=[EVIL + "x" * 1_000_000]).to_arrow()
    assert not ACTED_UPON.intersection(str(caught.value))
    assert len(str(caught.value)) < 2 * MOST_CHARACTERS
    for kind in (CorruptError, StoreError):
        text = str(kind(f"{'a' * 10_000} and the way out"))
        assert len(text) < MOST_CHARACTERS + 100
        assert text.endswith("and the way out")
    assert CorruptError("x" * 10_000).message == "x" * 10_000


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("Größe 数量", "a\u3000b", "👨\u200d👩\u200d👧", "café", ""):
        assert printable(text) == text
    assert printable("a\nb\x1b") == "a\\nb\\x1b"
    assert printable("a\nb", keep="\n") == "a\nb"
