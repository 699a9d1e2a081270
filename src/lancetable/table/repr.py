"""Text and HTML that describe a table in a terminal and in a notebook."""

import html
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lancetable.errors import printable
from lancetable.format.schema.types import arrow_schema

if TYPE_CHECKING:
    from lancetable.commit.snapshot import Snapshot
    from lancetable.table.handle import Handle

SHOWN_COLUMNS = 60


class Portrait(NamedTuple):
    """What is shown of a table."""

    uri: str
    version: int
    branch: str | None
    timestamp: datetime | None
    rows: int
    fragments: int
    size: int
    indices: Sequence[str]
    """A line for each, with its coverage."""
    schema: pa.Schema


def portrait(handle: "Handle") -> Portrait:
    """Return what is shown of the table that a handle holds."""
    snapshot = handle.snapshot
    manifest = snapshot.manifest
    return Portrait(
        uri=handle.location.uri,
        version=manifest.version,
        branch=snapshot.branch,
        timestamp=manifest.timestamp,
        rows=handle.count(),
        fragments=len(manifest.fragments),
        size=handle.size(),
        indices=_coverage(snapshot),
        schema=arrow_schema(manifest.schema),
    )


def _coverage(snapshot: "Snapshot") -> Sequence[str]:
    if snapshot.manifest.index_section is None:
        return ()
    from lancetable.operations.index.describe import coverage

    return coverage(snapshot)


def _facts(table: Portrait) -> list[tuple[str, str]]:
    """Return what there is to say about a table as a whole."""
    moment = "" if table.timestamp is None else f" of {table.timestamp:%Y-%m-%d %H:%M:%S} UTC"
    found = [
        ("table", table.uri),
        ("version", f"{table.version}{moment}"),
        ("rows", f"{table.rows:,}"),
        ("fragments", f"{table.fragments:,}"),
        ("size", readable(table.size)),
    ]
    if table.branch is not None:
        found.append(("branch", table.branch))
    places = ["indices", *[""] * len(table.indices)]
    return [*found, *zip(places, table.indices, strict=False)]


def readable(size: int) -> str:
    """Return a number of bytes as people say it."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _columns(schema: pa.Schema) -> list[tuple[str, str]]:
    shown = [
        (field.name, f"{field.type}{'' if field.nullable else ' not null'}") for field in schema
    ]
    if len(shown) > SHOWN_COLUMNS:
        more = len(shown) - SHOWN_COLUMNS
        shown = [*shown[:SHOWN_COLUMNS], ("…", f"and {more} more columns")]
    return shown


def as_text(table: Portrait) -> str:
    """Return a few lines for a terminal."""
    lines = [f"{name:>10}  {text}" for name, text in _facts(table)]
    columns = _columns(table.schema)
    width = min(max((len(name) for name, _ in columns), default=0), 40)
    lines += [
        f"{'columns' if not number else '':>10}  {name:<{width}}  {type_}"
        for number, (name, type_) in enumerate(columns)
    ]
    return "\n".join(printable(line) for line in lines)


def as_html(table: Portrait) -> str:
    """Return two small tables for a notebook."""
    head = _rows(_facts(table))
    columns = _rows(_columns(table.schema))
    return (
        f"<div><table>{head}</table>"
        f"<table><tr><th>column</th><th>type</th></tr>{columns}</table></div>"
    )


def _rows(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f"<tr><td style='text-align:left'><b>{html.escape(name)}</b></td>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in pairs
    )
