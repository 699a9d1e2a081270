"""The commands that look back: what each version did, and how two of them differ."""

from typing import TYPE_CHECKING, Annotated

import typer

from lancetable.cli import show
from lancetable.cli.options import AsOf, Branch, Json, Pick, Tag, Uri, Version

if TYPE_CHECKING:
    from lancetable.commit.history_entry import HistoryEntry

Most = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="How many versions.")]


def history(  # noqa: PLR0913 - each has a default
    uri: Uri,
    *,
    limit: Most = None,
    version: Version = None,
    tag: Tag = None,
    branch: Branch = None,
    as_of: AsOf = None,
    json: Json = False,
) -> None:
    """What each version did, newest first."""
    table = Pick(version, tag, branch, as_of).open(uri)
    rows = [_row(entry, whole=json) for entry in table.history(limit=limit)]
    if json:
        show.as_json(rows)
    else:
        numbers = ("version", "added", "removed", "updated")
        show.as_table(rows, title=f"{len(rows)} versions", numbers=numbers)


def _row(entry: "HistoryEntry", *, whole: bool) -> dict[str, object]:
    effect = entry.effect
    row: dict[str, object] = {
        "version": entry.version,
        "timestamp": entry.timestamp,
        "operation": entry.operation,
        "added": effect.rows_added,
        "removed": effect.rows_removed,
        "updated": effect.rows_updated,
        "what": effect.predicate or effect.detail,
        "message": entry.message,
        "tags": list(entry.tags),
        "writer": entry.writer and entry.writer.text,
    }
    if whole:
        row |= {
            "predicate": effect.predicate,
            "detail": effect.detail,
            "fragments_added": effect.fragments_added,
            "fragments_removed": effect.fragments_removed,
            "fragments_changed": effect.fragments_changed,
            "properties": dict(entry.properties),
            "read_version": entry.read_version,
            "uuid": entry.uuid,
        }
    return row
