"""The command that writes fragments anew."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from lancetable.cli import show
from lancetable.cli.options import Branch, Json, Pick, Uri, Where, split_columns
from lancetable.cli.show import bar
from lancetable.errors import printable

if TYPE_CHECKING:
    from lancetable.operations.compact.options import CompactSettings

TargetRows = Annotated[
    int | None, typer.Option(min=1, help="Join fragments with fewer rows, up to about so many.")
]
TargetBytes = Annotated[
    int | None, typer.Option(min=1, help="Leave fragments with more bytes as they are.")
]
MaxBytesPerFile = Annotated[
    int | None, typer.Option(min=1, help="About the most bytes of a new data file.")
]
DeletedShare = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Write a fragment anew when more of it is deleted."),
]
SortBy = Annotated[str | None, typer.Option(help="Columns to sort by, separated by commas.")]
ZOrderBy = Annotated[
    str | None, typer.Option(help="Columns to order alike along a curve, separated by commas.")
]
Indices = Annotated[
    Literal["reuse", "remap", "uncover"] | None,
    typer.Option(help="Record moved rows for indices, write indices anew, or let them go."),
]
Memory = Annotated[int | None, typer.Option(min=16, help="Megabytes that the work may take.")]
Threads = Annotated[int | None, typer.Option(min=1, help="How many tasks run at a time.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Message = Annotated[str | None, typer.Option("--message", "-m", help="A note for the history.")]


def compact(  # noqa: PLR0913 - each has a default
    uri: Uri,
    *,
    where: Where = None,
    target_rows: TargetRows = None,
    target_bytes: TargetBytes = None,
    max_bytes_per_file: MaxBytesPerFile = None,
    deleted_share: DeletedShare = None,
    sort_by: SortBy = None,
    z_order_by: ZOrderBy = None,
    indices: Indices = None,
    memory: Memory = None,
    threads: Threads = None,
    dry_run: DryRun = False,
    branch: Branch = None,
    message: Message = None,
    json: Json = False,
) -> None:
    """Join small fragments and give back the place of deleted rows."""
    table = Pick(branch=branch).open(uri)
    given = {
        "target_rows": target_rows,
        "target_bytes": target_bytes,
        "max_bytes_per_file": max_bytes_per_file,
        "deleted_share": deleted_share,
        "sort_by": split_columns(sort_by),
        "z_order_by": split_columns(z_order_by),
        "indices": indices,
        "memory_bytes": None if memory is None else memory * 1024 * 1024,
        "threads": threads,
    }
    settings = cast(
        "CompactSettings", {name: value for name, value in given.items() if value is not None}
    )
    if dry_run and not json:
        typer.echo(printable(table.explain_compact(where=where, **settings), keep="\n"))
        return
    with bar("compacting") as tell:
        done = table.compact(
            where=where, dry_run=dry_run, progress=tell, commit_message=message, **settings
        )
    row = {"uri": uri, **asdict(done)}
    if json:
        show.as_json(row)
        return
    row["bytes_before"], row["bytes_after"] = map(show.size, (done.bytes_before, done.bytes_after))
    row.pop("is_dry_run")
    show.as_pairs(row, title="compacted" if done.fragments_removed else "nothing to compact")
