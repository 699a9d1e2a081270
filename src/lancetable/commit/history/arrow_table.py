"""A history as an Arrow table: one row for each version."""

from collections.abc import Sequence
from dataclasses import fields

import pyarrow as pa

from lancetable.commit.history.effects import Effect
from lancetable.commit.history.entry import HistoryEntry

_COUNTS = {
    field.name: pa.string() if field.name in {"predicate", "detail"} else pa.int64()
    for field in fields(Effect)
}
SCHEMA = pa.schema(
    [
        pa.field("version", pa.uint64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("operation", pa.string()),
        *(pa.field(name, kind) for name, kind in _COUNTS.items()),
        pa.field("writer", pa.string()),
        pa.field("message", pa.string()),
        pa.field("properties", pa.map_(pa.string(), pa.string())),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("read_version", pa.uint64()),
        pa.field("uuid", pa.string()),
    ]
)


def as_table(entries: Sequence[HistoryEntry]) -> pa.Table:
    """Return entries as rows."""
    columns: dict[str, list[object]] = {
        name: [getattr(entry.effect, name) for entry in entries] for name in _COUNTS
    }
    for name in ("version", "timestamp", "operation", "message", "read_version", "uuid"):
        columns[name] = [getattr(entry, name) for entry in entries]
    columns["writer"] = [entry.writer and entry.writer.text for entry in entries]
    columns["properties"] = [list(entry.properties.items()) for entry in entries]
    columns["tags"] = [list(entry.tags) for entry in entries]
    return pa.table([pa.array(columns[one.name], one.type) for one in SCHEMA], schema=SCHEMA)
