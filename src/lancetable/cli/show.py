"""Print results: JSON for programs, tables for people."""

import base64
import enum
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lancetable import records
from lancetable.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDEST_CELL = 60
# A file or a pipe has no width, so nothing is squeezed into one.
WIDEST_LINE = 2000

Row = Mapping[str, object]


def as_json(value: object) -> None:
    """Print one value as JSON."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    typer.echo(printable(text, keep="\n", escape=lambda one: json.dumps(one)[1:-1]))


def as_table(
    rows: Iterable[Row], *, title: str, numbers: Sequence[str] = (), whole: Sequence[str] = ()
) -> None:
    """Print rows that have the same keys, ``numbers`` flush right and ``whole`` never cut."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    title = printable(title)
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in rows[0] if rows else ():
        side: Literal["left", "right"] = "right" if name in numbers else "left"
        table.add_column(
            Text(printable(name)), justify=side, overflow="fold" if name in whole else "ellipsis"
        )
    for row in rows:
        texts = (_text(value) if name in whole else cell(value) for name, value in row.items())
        table.add_row(*(Text(text) for text in texts))
    _console().print(table if rows else Text(f"{title}: none"))


def as_pairs(row: Row, *, title: str) -> None:
    """Print one row upright, a line for each key that has a value."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=printable(title), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in row.items():
        if text := _text(value):
            table.add_row(Text(printable(name)), Text(text))
    _console().print(table)


def _console() -> "Console":
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = WIDEST_LINE
    return console


def cell(value: object) -> str:
    """Return short text for one cell of a table."""
    text = _text(value)
    return text if len(text) <= WIDEST_CELL else f"{text[: WIDEST_CELL - 1]}…"


def size(count: int | None) -> str:
    """Return a number of bytes with a unit."""
    if count is None:
        return "unknown"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("the loop ends at the largest unit")


def plain(value: object) -> object:  # noqa: PLR0911 - one for each kind
    """Return the value in terms of what JSON knows.

    Bytes become base64 text, times ISO text, a span its seconds, and the numbers that JSON has
    no word for (not a number, infinities) their usual names.
    """
    match value:
        case enum.Enum():
            return value.name.lower()
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return _plain_container(value)


def _plain_container(value: object) -> object:
    record = records.plain(value)
    if record is not value and not isinstance(value, list | tuple | Mapping):
        return plain(record)
    if isinstance(value, tuple) and isinstance(record, Mapping):
        value = record
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def _text(value: object) -> str:
    """Return text for one cell, which a terminal shows and does not act upon."""
    return printable(_unsafe_text(value), keep="\n\t")


def _unsafe_text(value: object) -> str:
    match value:
        case None | str():
            return value or ""
        case bytes() | bytearray() | memoryview():
            return f"{bytes(value[:16]).hex()}{'…' if len(value) > 16 else ''}"
        case datetime():
            return value.isoformat(sep=" ")
        case list() if all(isinstance(item, str) for item in value):
            return ", ".join(value)
        case Mapping() | list() | tuple():
            return json.dumps(plain(value), ensure_ascii=False) if value else ""
        case _:
            return str(value)


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to go on.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone; without a terminal ``yes`` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        typer.echo(f"error: {question} cannot be undone; pass --yes to do it", err=True)
        raise typer.Exit(1)
    typer.confirm(f"{question}, which cannot be undone. Go on?", abort=True, err=True)
