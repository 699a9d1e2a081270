"""Commands for changes, and to compact, clean up, check and repair a table."""

from typing import TYPE_CHECKING, Annotated

import typer

import lancetable
from lancetable.cli import show
from lancetable.cli.options import (
    Branch,
    Columns,
    Json,
    Limit,
    Message,
    Uri,
    Where,
    offers,
    opens,
    split_columns,
)
from lancetable.cli.show import Yes, confirm
from lancetable.errors import printable
from lancetable.operations.check.model import CheckOptions
from lancetable.operations.cleanup.options import CleanupOptions
from lancetable.operations.compact.options import CompactOptions
from lancetable.records import row_of

if TYPE_CHECKING:
    from typing import Unpack

    from lancetable import CleanupResult, RepairPlan
    from lancetable.table import Table
    from lancetable.table.settings import CheckSettings, CleanupSettings, CompactSettings

Level = Annotated[
    str, typer.Option("--level", help="How closely to look: metadata, files, data or indices.")
]
Journal = Annotated[
    str | None,
    typer.Option(help="File that notes what was looked at, to go on after an interruption."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]


@opens("branch")
def changes(  # noqa: PLR0913 - each has a default
    table: "Table",
    from_version: Annotated[int, typer.Argument(help="Version to start from; 0 for none.")],
    to_version: Annotated[int | None, typer.Argument(help="Last version; the latest.")] = None,
    *,
    columns: Columns = None,
    limit: Limit = 100,
    counts: Annotated[bool, typer.Option("--counts", help="Only count the changes.")] = False,
    row_ids: Annotated[bool, typer.Option("--row-ids", help="Show row ids.")] = False,
    json: Json = False,
) -> None:
    """What the versions after one did to the rows, oldest first."""
    feed = table.changes(
        from_version, to_version, columns=split_columns(columns), with_row_id=row_ids
    )
    rows: list[dict[str, object]] = []
    if counts:
        rows = [{"version": version, **kinds} for version, kinds in feed.counts().items()]
        keys = list(dict.fromkeys(key for row in rows for key in row))
        rows = [{key: row.get(key, 0) for key in keys} for row in rows]
    else:
        for batch in feed.to_batches():
            rows.extend(batch.to_pylist()[: limit - len(rows)])
            if len(rows) >= limit:
                break
    if json:
        show.as_json(rows)
    else:
        show.as_table(rows, title=f"{len(rows)} changes" if not counts else "changes by version")


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


@offers(CleanupOptions)
@opens("branch")
def cleanup(
    table: "Table",
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
    **options: "Unpack[CleanupSettings]",
) -> None:
    """Remove old versions, and files that no version needs."""
    result = table.maintenance.cleanup(dry_run=True, **options)
    if result.files and not dry_run:
        if not json:
            _show_cleanup(result)
        confirm(f"removing {result.files} files", yes=yes)
        result = table.maintenance.cleanup(progress=True, **options)
    if json:
        show.as_json({**row_of(result), "files": result.files, "bytes": result.bytes})
    else:
        _show_cleanup(result)


@offers(CheckOptions)
def check(
    uri: Uri, *, branch: Branch = None, json: Json = False, **options: "Unpack[CheckSettings]"
) -> None:
    """Look for damage; exits with code 1 when there is any."""
    found = lancetable.check_table(uri, branch=branch, progress=True, **options)
    if json:
        show.as_json({**row_of(found), "is_ok": found.is_ok})
    else:
        title = f"{len(found.problems)} problems in {found.versions} versions, {found.files} files"
        rows = [
            {"kind": one.kind, "file": one.path, "problem": one.message, "effect": one.consequence}
            for one in found.problems
        ]
        show.as_table(rows, title=title, whole=("file", "problem", "effect"))
    if not found.is_ok:
        raise typer.Exit(1)


def repair(  # noqa: PLR0913 - each has a default
    uri: Uri,
    *,
    level: Level = "files",
    revive: Annotated[
        bool,
        typer.Option("--revive", help="Deleted rows come back where a deletion file is broken."),
    ] = False,
    journal: Journal = None,
    branch: Branch = None,
    message: Message = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Create a version without what is damaged."""
    plan = lancetable.repair_table(uri, level, branch=branch, revive=revive, journal=journal)
    is_done = False
    if plan.is_needed and not dry_run:
        if not json:
            _show_plan(plan)
        confirm(f"creating version {plan.version} without {plan.lost_rows} rows", yes=yes)
        plan.execute(message=message)
        is_done = True
    if json:
        show.as_json(
            {
                "is_done": is_done,
                "is_needed": plan.is_needed,
                "base": plan.base.version,
                "version": plan.version if plan.is_needed else plan.base.version,
                "lost_rows": plan.lost_rows,
                "losses": plan.losses,
            }
        )
    elif is_done:
        show.as_pairs({"version": plan.version, "lost rows": plan.lost_rows}, title="repaired")
    else:
        _show_plan(plan)


def _show_cleanup(result: "CleanupResult") -> None:
    gone = len(result.removed_versions)
    word = "would be removed" if result.is_dry_run else "removed"
    rows = [
        {"kind": kind, "files": amount.files, "bytes": show.size(amount.bytes)}
        for kind, amount in result.removed.items()
    ]
    title = f"{word}: {gone} versions, {result.files} files, {show.size(result.bytes)}"
    show.as_table(rows, title=title, numbers=("files", "bytes"))
    if result.too_young:
        files = sum(amount.files for amount in result.too_young.values())
        typer.echo(f"{files} files that no version names are too young to remove; they stay")
    for path in result.failed:
        typer.echo(f"could not be removed: {printable(path)}", err=True)


def _show_plan(plan: "RepairPlan") -> None:
    rows = [{"loss": one.kind, "what": one.what, "file": one.path} for one in plan.losses]
    title = (
        f"version {plan.version}, made of version {plan.base.version}, would lose"
        if plan.is_needed
        else f"version {plan.base.version} is sound; losses"
    )
    show.as_table(rows, title=title, whole=("what", "file"))
