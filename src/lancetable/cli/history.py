"""Commands for the history of a table and the difference of two versions."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from lancetable.cli import show
from lancetable.cli.options import Json, Pick, Uri, named, opens
from lancetable.records import row_of

if TYPE_CHECKING:
    from lancetable.table import Table

_NAMED = "a number, a tag, a branch, or branch@number"
Before = Annotated[str, typer.Argument(metavar="FROM", help=f"The older version: {_NAMED}.")]
After = Annotated[
    str | None, typer.Argument(metavar="TO", help=f"The newer one: {_NAMED}; the latest.")
]
Most = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="How many versions.")]


@opens("version", "tag", "branch", "as_of")
def history(
    table: "Table",
    *,
    limit: Most = None,
    json: Json = False,
) -> None:
    """What each version did, newest first."""
    rows = [row_of(entry, detail=json) for entry in table.history(limit=limit)]
    if json:
        show.as_json(rows)
    else:
        numbers = ("version", "rows_added", "rows_removed", "rows_updated")
        show.as_table(rows, title=f"{len(rows)} versions", numbers=numbers)


def diff(uri: Uri, before: Before, after: After = None, *, json: Json = False) -> None:
    """How two versions differ: columns, rows, fragments and files."""
    old = named(uri, before)
    new = Pick(branch=old.branch).open(uri) if after is None else named(uri, after)
    found = old.diff(new)
    row: dict[str, object] = {
        "from": {"version": old.version, "branch": old.branch},
        "to": {"version": new.version, "branch": new.branch},
        "rows": {"before": found.rows_before, "after": found.rows_after},
        "rows_new": found.rows_new,
        "rows_gone": found.rows_gone,
        "fragments_added": list(found.fragments_added),
        "fragments_removed": list(found.fragments_removed),
        "fragments_changed": list(found.fragments_changed),
        "columns": [change._asdict() for change in found.columns],
        "files": [change._asdict() for change in found.files],
    }
    if json:
        show.as_json(row)
        return
    columns, files = row.pop("columns"), row.pop("files")
    show.as_pairs(row, title="no difference" if found.is_empty else "difference")
    show.as_table(cast("list[dict[str, object]]", columns), title="columns", numbers=("id",))
    show.as_table(
        cast("list[dict[str, object]]", files), title="files", numbers=("bytes",), whole=("path",)
    )
