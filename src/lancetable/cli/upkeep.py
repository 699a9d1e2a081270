"""The commands that look after a table: what changed, what can go, what is broken."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

import lancetable
from lancetable.cli import show
from lancetable.cli.options import Branch, Columns, Json, Limit, Message, Pick, Uri, split_columns
from lancetable.cli.show import Yes, bar, confirm
from lancetable.errors import InputError, printable

if TYPE_CHECKING:
    from lancetable import CheckResult, CleanupResult, RepairPlan

_AGE = re.compile(r"(\d+)\s*([smhdw]?)")
_UNITS = {"": "days", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Level = Annotated[
    str, typer.Option("--level", help="How closely to look: metadata, files or data.")
]
Journal = Annotated[
    str | None,
    typer.Option(help="File that notes what was looked at, to go on after an interruption."),
]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; otherwise it is only shown.")]


def changes(  # noqa: PLR0913 - each has a default
    uri: Uri,
    from_version: Annotated[int, typer.Argument(help="Version to start from; 0 for none.")],
    to_version: Annotated[int | None, typer.Argument(help="Last version; the latest.")] = None,
    *,
    columns: Columns = None,
    limit: Limit = 100,
    counts: Annotated[bool, typer.Option("--counts", help="Only count the changes.")] = False,
    row_ids: Annotated[bool, typer.Option("--row-ids", help="Show row ids.")] = False,
    branch: Branch = None,
    json: Json = False,
) -> None:
    """What the versions after one did to the rows, oldest first."""
    table = Pick(branch=branch).open(uri)
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


def cleanup(  # noqa: PLR0913 - each has a default
    uri: Uri,
    *,
    older_than: Annotated[
        str, typer.Option(help="Versions older than this go, such as 14d, 12h or 0.")
    ] = "14d",
    keep_last: Annotated[int, typer.Option(help="So many of the last versions stay.")] = 1,
    unverified_after: Annotated[
        str, typer.Option(help="Files that no version names go when they are older.")
    ] = "7d",
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Clean the histories of all branches.")
    ] = False,
    clone: Annotated[
        list[str] | None, typer.Option(help="A shallow clone whose files stay; may be repeated.")
    ] = None,
    remove_damaged: Annotated[
        bool, typer.Option("--remove-damaged", help="Versions that cannot be read go, too.")
    ] = False,
    files_per_second: Annotated[
        float | None, typer.Option(help="How many files go in a second at most.")
    ] = None,
    branch: Branch = None,
    execute: Execute = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove old versions, and files that nobody needs; shows what would go unless told to."""
    table = Pick(branch=branch).open(uri)

    def run(*, dry_run: bool) -> "CleanupResult":
        with bar("removing files", is_quiet=dry_run) as told:
            return table.cleanup(
                age(older_than),
                keep_last,
                dry_run=dry_run,
                unverified_after=age(unverified_after),
                all_branches=all_branches,
                clones=clone or (),
                remove_damaged=remove_damaged,
                files_per_second=files_per_second,
                progress=told,
            )

    result = run(dry_run=True)
    if execute and result.files:
        if not json:
            _show_cleanup(result)
        confirm(f"removing {result.files} files for good", yes=yes)
        result = run(dry_run=False)
    if json:
        show.as_json(_cleanup_row(result))
    else:
        _show_cleanup(result)


def check(
    uri: Uri,
    *,
    level: Level = "files",
    latest: Annotated[
        bool, typer.Option("--latest", help="Look at the latest version only.")
    ] = False,
    journal: Journal = None,
    branch: Branch = None,
    json: Json = False,
) -> None:
    """Look for damage; ends with code 1 when there is any."""
    with bar("looking at versions") as told:
        found = lancetable.check_table(
            uri, level, branch=branch, all_versions=not latest, journal=journal, progress=told
        )
    if json:
        show.as_json(_check_row(found))
    else:
        title = f"{len(found.problems)} problems in {found.versions} versions, {found.files} files"
        rows = [
            {"kind": one.kind, "file": one.path, "problem": one.message, "so": one.consequence}
            for one in found.problems
        ]
        show.as_table(rows, title=title, whole=("file", "problem", "so"))
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
    execute: Execute = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Make a version without what is broken; shows what would be lost unless told to do it."""
    plan = lancetable.repair_table(uri, level, branch=branch, revive=revive, journal=journal)
    is_done = False
    if execute and plan.is_needed:
        if not json:
            _show_plan(plan)
        confirm(f"making version {plan.version} without {plan.lost_rows} rows", yes=yes)
        plan.execute(message=message)
        is_done = True
    if json:
        show.as_json(_repair_row(plan, is_done=is_done))
    elif is_done:
        show.as_pairs({"version": plan.version, "lost rows": plan.lost_rows}, title="repaired")
    else:
        _show_plan(plan)


def age(text: str) -> timedelta:
    """Return the time that a text such as 14d or 12h stands for; days without a unit.

    Raises:
        InputError: it stands for none.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is no age; write it like 14d, 12h, 30m or 0")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise InputError(f"{text!r} is longer than time itself; choose a shorter age") from None


def _show_cleanup(result: "CleanupResult") -> None:
    gone = len(result.removed_versions)
    word = "would go" if result.is_dry_run else "removed"
    rows = [
        {"kind": kind, "files": amount.files, "bytes": show.size(amount.bytes)}
        for kind, amount in result.removed.items()
    ]
    title = f"{word}: {gone} versions, {result.files} files, {show.size(result.bytes)}"
    show.as_table(rows, title=title, numbers=("files", "bytes"))
    if result.too_young:
        files = sum(amount.files for amount in result.too_young.values())
        typer.echo(f"{files} files that no version names are too young to be sure; they stay")
    for path in result.failed:
        typer.echo(f"could not be removed: {printable(path)}", err=True)


def _cleanup_row(result: "CleanupResult") -> dict[str, object]:
    return {
        "dry_run": result.is_dry_run,
        "removed_versions": [one._asdict() for one in result.removed_versions],
        "kept_versions": [one._asdict() for one in result.kept_versions],
        "files": result.files,
        "bytes": result.bytes,
        "removed": {kind: amount._asdict() for kind, amount in result.removed.items()},
        "too_young": {kind: amount._asdict() for kind, amount in result.too_young.items()},
        "failed": list(result.failed),
    }


def _check_row(found: "CheckResult") -> dict[str, object]:
    return {
        "level": found.level.name.lower(),
        "ok": found.is_ok,
        "latest": found.latest,
        "versions": found.versions,
        "files": found.files,
        "coverage": dict(found.coverage),
        "problems": [
            {
                "kind": one.kind,
                "path": one.path,
                "message": one.message,
                "consequence": one.consequence,
                "branch": one.branch,
                "versions": list(one.versions),
                "fragments": list(one.fragments),
                "damage": one.is_damage,
            }
            for one in found.problems
        ],
    }


def _show_plan(plan: "RepairPlan") -> None:
    rows = [{"loss": one.kind, "what": one.what, "file": one.path} for one in plan.losses]
    title = (
        f"version {plan.version}, made of version {plan.base.version}, would lose"
        if plan.is_needed
        else f"version {plan.base.version} is sound; losses"
    )
    show.as_table(rows, title=title, whole=("what", "file"))


def _repair_row(plan: "RepairPlan", *, is_done: bool) -> dict[str, object]:
    return {
        "done": is_done,
        "needed": plan.is_needed,
        "base": plan.base.version,
        "version": plan.version if plan.is_needed else plan.base.version,
        "lost_rows": plan.lost_rows,
        "losses": [
            {
                "kind": one.kind,
                "path": one.path,
                "what": one.what,
                "fragment": one.fragment,
                "rows": one.rows,
            }
            for one in plan.losses
        ],
    }
