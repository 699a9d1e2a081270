"""Arguments that several commands share, and the version of a table they name."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

import lancetable
from lancetable.errors import InputError, RefNotFoundError

if TYPE_CHECKING:
    from lancetable.table import Table

Uri = Annotated[str, typer.Argument(metavar="TABLE", help="Path or address of the table.")]
Version = Annotated[int | None, typer.Option("--version", "-v", help="Version to open.")]
Tag = Annotated[str | None, typer.Option(help="Tag to open.")]
Branch = Annotated[str | None, typer.Option(help="Branch to open.")]
AsOf = Annotated[
    str | None,
    typer.Option(help="Newest version at this ISO time; local time unless it names an offset."),
]


def _print_kernels(wanted: bool) -> None:  # noqa: FBT001
    if not wanted:
        return
    from lancetable.format.encoding.kernels import compiled

    note = "" if compiled.LIBRARY is None else f" ({compiled.PATH})"
    typer.echo(f"kernels: {compiled.NAME}{note}")
    raise typer.Exit


Kernels = Annotated[
    bool,
    typer.Option(
        "--kernels",
        help="Print which kernels encode and decode, compiled C or NumPy, and leave.",
        callback=_print_kernels,
        is_eager=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print plain JSON for other programs.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="How many rows.")]
Columns = Annotated[
    str | None,
    typer.Option("--columns", "-c", help="Names or nested paths, separated by commas."),
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="A note for the history.")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="SQL condition on the rows.")]


@dataclass(frozen=True, slots=True)
class Pick:
    """The version of a table that the arguments name."""

    version: int | None = None
    tag: str | None = None
    branch: str | None = None
    as_of: str | None = None

    def open(self, uri: str) -> "Table":
        """Open the table at this version."""
        return lancetable.open_table(
            uri, version=self.version, tag=self.tag, branch=self.branch, as_of=_moment(self.as_of)
        )


def named(uri: str, text: str) -> "Table":
    """Open the version that a text names: a number, a tag, a branch, or a version of a branch."""
    if text.isdigit():
        return lancetable.open_table(uri, version=int(text))
    branch, sign, version = text.rpartition("@")
    if sign and version.isdigit():
        return lancetable.open_table(uri, version=int(version), branch=branch)
    try:
        return lancetable.open_table(uri, tag=text)
    except (InputError, RefNotFoundError):
        return lancetable.open_table(uri, branch=text)


def _moment(text: str | None) -> datetime | None:
    """Turn ISO text into a time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--as-of {text!r} is not a time; write it like 2026-03-01T12:00:00"
        ) from None


def split_columns(text: str | None) -> list[str] | None:
    """Turn the text of ``--columns`` into names; a comma inside backticks belongs to the name."""
    if text is None:
        return None
    names, current, quoted = [], "", False
    for character in text:
        quoted ^= character == "`"
        if character == "," and not quoted:
            names.append(current.strip())
            current = ""
        else:
            current += character
    names.append(current.strip())
    return [name for name in names if name]
