"""Entries of a history, and their form as an Arrow table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING

from lancetable.commit.history.effects import UNKNOWN, Effect
from lancetable.format.manifest import WriterVersion

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version, and what it did."""

    version: int
    timestamp: datetime | None
    operation: str | None
    """The name of the operation; ``None`` when the writer left no record."""
    effect: Effect = UNKNOWN
    writer: WriterVersion | None = None
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    read_version: int | None = None
    """The version that the change was based on; others may have been committed in between."""
    uuid: str | None = None


def as_table(entries: Sequence[HistoryEntry]) -> "pa.Table":
    """Return entries as an Arrow table with one row for each version."""
    import pyarrow as pa  # noqa: PLC0415 - a history itself needs none

    texts = {"predicate", "detail"}
    effects = {one.name: pa.string() if one.name in texts else pa.int64() for one in fields(Effect)}
    schema = pa.schema(
        [
            pa.field("version", pa.uint64(), nullable=False),
            pa.field("timestamp", pa.timestamp("us", "UTC")),
            pa.field("operation", pa.string()),
            *(pa.field(name, kind) for name, kind in effects.items()),
            pa.field("writer", pa.string()),
            pa.field("message", pa.string()),
            pa.field("properties", pa.map_(pa.string(), pa.string())),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("read_version", pa.uint64()),
            pa.field("uuid", pa.string()),
        ]
    )
    columns: dict[str, list[object]] = {
        name: [getattr(entry.effect, name) for entry in entries] for name in effects
    }
    for name in ("version", "timestamp", "operation", "message", "read_version", "uuid"):
        columns[name] = [getattr(entry, name) for entry in entries]
    columns["writer"] = [entry.writer and entry.writer.text for entry in entries]
    columns["properties"] = [list(entry.properties.items()) for entry in entries]
    columns["tags"] = [list(entry.tags) for entry in entries]
    return pa.table([pa.array(columns[one.name], one.type) for one in schema], schema=schema)
