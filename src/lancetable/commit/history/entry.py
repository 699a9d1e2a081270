"""One version of a table and what it did; the fields are the columns of a history."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lancetable.commit.history.effects import UNKNOWN, Effect
from lancetable.format.manifest import WriterVersion
from lancetable.records import DETAIL


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
    properties: Mapping[str, str] = field(default_factory=dict, metadata=DETAIL)
    tags: tuple[str, ...] = ()
    read_version: int | None = field(default=None, metadata=DETAIL)
    """The version that the change was based on; others may have been committed in between."""
    uuid: str | None = field(default=None, metadata=DETAIL)
