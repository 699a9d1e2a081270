"""Commands for the indices of a table."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import Json, Message, offers, opens, pairs
from lancetable.cli.show import Yes, confirm
from lancetable.cli.upkeep import DryRun
from lancetable.errors import printable
from lancetable.operations.index.create import IndexOptions
from lancetable.operations.index.optimize import OptimizeOptions
from lancetable.records import row_of

if TYPE_CHECKING:
    from typing import Unpack

    from lancetable.operations.index.describe import IndexInfo
    from lancetable.table import Table
    from lancetable.table.settings import IndexSettings, OptimizeSettings

index_app = typer.Typer(
    help="List, create, optimize and drop indices.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the index.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Names of indices; all when left out.")
]
Column = Annotated[str, typer.Argument(metavar="COLUMN", help="A column, or a path such as at.x.")]
Kind = Annotated[
    str, typer.Argument(metavar="KIND", help="Such as btree, bitmap, label_list or json.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the kind, as key=value; may be repeated."),
]


@opens("version", "tag", "branch", "as_of")
def list_indices(table: "Table", *, json: Json = False) -> None:
    """The indices of a table with their coverage."""
    rows = [_row(info) for info in table.indices.list()]
    if json:
        show.as_json(rows)
        return
    numbers = ("segments", "fragments_covered", "fragments", "rows_uncovered", "bytes")
    show.as_table(rows, title=f"{len(rows)} indices", numbers=numbers, whole=("unusable",))


@opens("version", "tag", "branch", "as_of")
def show_index(table: "Table", name: Name, *, json: Json = False) -> None:
    """One index with its segments."""
    row = _row(table.indices[name])
    found = table.inspect.indices().to_pylist()
    segments = [one for one in found if one.pop("name") == name]
    if json:
        show.as_json({**row, "segments": segments})
        return
    show.as_pairs(row, title=str(row.pop("name")))
    shown = ("uuid", "version", "index_version", "fragments_covered", "rows_covered", "files")
    rows = [{key: one[key] for key in (*shown, "bytes", "unusable")} for one in segments]
    numbers = ("version", "index_version", "rows_covered", "files", "bytes")
    show.as_table(rows, title=f"{len(rows)} segments", numbers=numbers, whole=("uuid",))


@offers(IndexOptions)
@opens("branch")
def create_index(
    table: "Table",
    column: Column,
    kind: Kind,
    *,
    set: Parameters = None,  # noqa: A002 - the word on the command line
    message: Message = None,
    json: Json = False,
    **options: "Unpack[IndexSettings]",
) -> None:
    """Create an index on a column."""
    from lancetable.index.specs import parse_spec

    spec = parse_spec(kind, pairs(set, "--set"))
    done = table.indices.create(column, spec, progress=True, commit=message, **options)
    _result(table, done, "index created", json=json)


@offers(OptimizeOptions)
@opens("branch")
def optimize_indices(
    table: "Table",
    names: Names = None,
    *,
    dry_run: DryRun = False,
    message: Message = None,
    json: Json = False,
    **options: "Unpack[OptimizeSettings]",
) -> None:
    """Cover new fragments, and merge small segments."""
    done = table.indices.optimize(
        names or None, dry_run=dry_run, progress=True, commit=message, **options
    )
    if dry_run and not json:
        typer.echo(printable(done.explain() or "no indices", keep="\n"))
        return
    title = "indices optimized" if done.segments_added else "nothing to optimize"
    steps = {step.name: step.reason for step in done.steps}
    _result(table, done, title, json=json, steps=steps)


@opens("branch")
def drop_index(
    table: "Table", name: Name, *, message: Message = None, yes: Yes = False, json: Json = False
) -> None:
    """Drop an index; its files stay until a cleanup."""
    confirm(f"dropping index {name!r}", yes=yes)
    done = table.indices.drop(name, commit=message)
    _result(table, done, "index dropped", json=json)


COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_indices,
    "show": show_index,
    "create": create_index,
    "optimize": optimize_indices,
    "drop": drop_index,
}


def _row(info: "IndexInfo") -> dict[str, object]:
    return {**row_of(info), "segments": len(info.segments)}


def _result(
    table: "Table", done: object, title: str, *, json: bool, steps: dict[str, str] | None = None
) -> None:
    row: dict[str, object] = {
        "uri": table.uri,
        **row_of(done),
        **({"steps": steps} if steps else {}),
    }
    if json:
        show.as_json(row)
    else:
        show.as_pairs(row, title=title)
