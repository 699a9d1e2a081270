"""The command that compacts a table."""

from typing import TYPE_CHECKING, Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import Json, Message, Where, offers, opens
from lancetable.errors import printable
from lancetable.operations.compact.options import CompactOptions
from lancetable.records import row_of

if TYPE_CHECKING:
    from typing import Unpack

    from lancetable.table import Table
    from lancetable.table.settings import CompactSettings

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]


@offers(CompactOptions)
@opens("branch")
def compact(
    table: "Table",
    *,
    where: Where = None,
    dry_run: DryRun = False,
    message: Message = None,
    json: Json = False,
    **options: "Unpack[CompactSettings]",
) -> None:
    """Join small fragments and remove deleted rows from the files."""
    done = table.compact(where=where, dry_run=dry_run, progress=True, commit=message, **options)
    if dry_run and not json:
        typer.echo(printable(done.explain(), keep="\n"))
        return
    row = {"uri": table.uri, **row_of(done)}
    if json:
        show.as_json(row)
        return
    row["bytes_before"], row["bytes_after"] = map(show.size, (done.bytes_before, done.bytes_after))
    row.pop("is_dry_run")
    show.as_pairs(row, title="compacted" if done.fragments_removed else "nothing to compact")
